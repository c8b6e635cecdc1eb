//! The log, examined page by page on several threads, and handed over in order.

use std::{
    num::NonZero,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use super::bad::{Bad, told};
use crate::{
    Error, ErrorKind, Result, limits,
    store::{Page, Range, Row, Select, Store},
};

/// What a thread hands over of the stretch it is at.
enum Piece<T> {
    Page(Vec<T>),
    End,
    Failed(Error),
}

/// Examines the rows of a range wherever there is a thread for it, and takes what came of them in the order of the log.
/// Memory holds a few pages per thread.
///
/// # Errors
/// What `take` says, or why a page could not be read: only after all that stands before it was taken.
pub(super) fn each<T: Send>(
    store: &dyn Store,
    (from, to): (u64, u64),
    examine: impl Fn(&[Row]) -> Vec<T> + Sync,
    mut take: impl FnMut(T) -> Result<(), Error>,
) -> Result<(), Error> {
    let (threads, stretch) = shares(store, from, to)?;
    thread::scope(|scope| {
        let mut pieces: Vec<Receiver<Piece<T>>> = Vec::new();
        for first in 0..threads {
            let (sender, receiver) = sync_channel(limits::VERIFIED_PAGES_MAX);
            let examine = &examine;
            let work = move || {
                let starts = (from + first * stretch..=to).step_by(step(threads * stretch));
                for start in starts {
                    let end = to.min(start.saturating_add(stretch - 1));
                    if !walk(store, (start, end), examine, &sender) {
                        return;
                    }
                }
            };
            let started = thread::Builder::new()
                .name("neuron-verify".into())
                .spawn_scoped(scope, work);
            started.map_err(|error| Error::from(error).context("no thread can be started"))?;
            pieces.push(receiver);
        }
        let stretches = (to + 1).saturating_sub(from).div_ceil(stretch);
        for nth in 0..stretches {
            // Threads take stretches in turn, so this is the one that has it.
            let receiver = &pieces[step(nth % threads)];
            loop {
                match receiver.recv() {
                    Ok(Piece::Page(rows)) => rows.into_iter().try_for_each(&mut take)?,
                    Ok(Piece::End) => break,
                    Ok(Piece::Failed(error)) => return Err(error),
                    Err(_) => {
                        return Err(Error::new(
                            ErrorKind::Failed,
                            "a thread that examined the log has panicked",
                        ));
                    }
                }
            }
        }
        Ok(())
    })
}

fn step(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// How many threads, and how many places each takes at a time. Of a log with holes nobody knows where its rows are, so
/// one thread goes from row to row.
fn shares(store: &dyn Store, from: u64, to: u64) -> Result<(u64, u64), Error> {
    let holes = store.archive()?.is_some_and(|archive| archive.part.topics.is_some());
    let places = (to + 1).saturating_sub(from).max(1);
    if holes {
        return Ok((1, places));
    }
    let stretch = limits::PAGE_MAX as u64;
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = threads.min(limits::VERIFIERS_MAX) as u64;
    Ok((threads.min(places.div_ceil(stretch)), stretch))
}

/// Hands over one stretch; false once nothing more is wanted.
fn walk<T>(
    store: &dyn Store,
    (from, to): (u64, u64),
    examine: &impl Fn(&[Row]) -> Vec<T>,
    into: &SyncSender<Piece<T>>,
) -> bool {
    let mut range = Range { from, to, ..Range::ALL };
    loop {
        let (page, fault) = match store.page(&Select::All, range) {
            Ok(page) => (page, None),
            Err(error) if error.kind() == ErrorKind::Corrupt => readable(store, range, error),
            Err(error) => (Page::default(), Some(error)),
        };
        if !page.rows.is_empty() && into.send(Piece::Page(examine(&page.rows))).is_err() {
            return false;
        }
        if let Some(error) = fault {
            let _ = into.send(Piece::Failed(error));
            return false;
        }
        match page.next {
            Some(next) => range.from = next,
            None => return into.send(Piece::End).is_ok(),
        }
    }
}

/// The rows of a page that can be read before the damage in it, and the `pos` at which that begins.
fn readable(store: &dyn Store, range: Range, error: Error) -> (Page, Option<Error>) {
    let upto = |to: u64| store.page(&Select::All, Range { to, ..range });
    let (mut good, mut bad) = (range.from - 1, range.to);
    let (mut rows, mut why) = (Vec::new(), error);
    while good + 1 < bad {
        let middle = good + (bad - good) / 2;
        match upto(middle) {
            // A page that ends early, for its size, says nothing about what comes after it.
            Ok(page) if page.next.is_some() => return (page, None),
            Ok(page) => (good, rows) = (middle, page.rows),
            Err(error) if error.kind() == ErrorKind::Corrupt => (bad, why) = (middle, error),
            Err(error) => return (Page::default(), Some(error)),
        }
    }
    let page = Page { rows, next: None };
    let fault = told(&Bad {
        pos: bad,
        topic: None,
        seq: None,
        id: None,
        why: format!("{why}; the log can be read up to pos {good}"),
    });
    (page, Some(fault))
}
