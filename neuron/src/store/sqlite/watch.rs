//! Looks for what other processes have committed.

use std::{
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread::JoinHandle,
};

use tokio::sync::watch;

use super::{page, pool::Pool};
use crate::{
    Error, Result, limits,
    store::{Select, observer::Observers},
};

#[derive(Debug, Default)]
struct Stop {
    asked: Mutex<bool>,
    changed: Condvar,
}

/// A thread that looks every [`limits::FOREIGN_POLL`], until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(
        path: Arc<Path>,
        writes: bool,
        tail: watch::Sender<u64>,
        observers: Arc<Observers>,
    ) -> Result<Self, Error> {
        let stop = Arc::<Stop>::default();
        let asked = stop.clone();
        // A pool of its own, so that it always looks through the same connection.
        let pool = Pool::new(path, writes, limits::READ_WAIT_MAX);
        let thread = std::thread::Builder::new()
            .name("neuron-watch".into())
            .spawn(move || look(&asked, &pool, &tail, &observers))?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }
}

fn look(stop: &Stop, pool: &Pool, tail: &watch::Sender<u64>, observers: &Observers) {
    let mut asked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
    while !*asked {
        drop(asked);
        match pool.read(super::read::Reader::news) {
            Ok(Some(last)) => {
                observers.noticed(last, &|range| {
                    pool.read(|reader| page::page(reader, &Select::All, range))
                });
                advance(tail, last);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "commits of other processes cannot be looked for; trying again"),
        }
        let locked = stop.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = stop.changed.wait_timeout(locked, limits::FOREIGN_POLL);
        asked = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// Moves the tail, never back.
pub(super) fn advance(tail: &watch::Sender<u64>, last: u64) {
    tail.send_if_modified(|tail| {
        let newer = last > *tail;
        *tail = last.max(*tail);
        newer
    });
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.stop.asked.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has no result, and a panic of it was reported by the runtime.
            let _ = thread.join();
        }
    }
}
