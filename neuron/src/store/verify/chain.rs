//! Heads: the chain of all ids up to a place, kept elsewhere and compared.

use super::Head;
use crate::{
    Error, ErrorKind, Result, Topic,
    store::{Range, Select, Store, gapless::gone},
};

/// The head of a store, from its ids alone: to be kept elsewhere.
///
/// # Errors
/// As [`Store::page`].
pub fn head(store: &dyn Store) -> Result<Head, Error> {
    chain(store, Head::default(), u64::MAX)
}

/// The head that a store had when `upto` was its last `pos`.
///
/// # Errors
/// As [`Store::page`].
pub fn head_at(store: &dyn Store, upto: u64) -> Result<Head, Error> {
    chain(store, Head::default(), upto)
}

/// The head of one topic; its `pos` is the topic's last `seq`.
///
/// # Errors
/// As [`Store::page`].
pub fn head_of(store: &dyn Store, topic: &Topic) -> Result<Head, Error> {
    let (mut head, mut range) = (Head::default(), Range::ALL);
    loop {
        let page = store.page(&Select::Topic(topic.clone()), range)?;
        head = page.rows.iter().fold(head, |head, row| head.then(row.id));
        match page.next {
            Some(next) => range.from = next,
            None => return Ok(head),
        }
    }
}

/// Proves that a store still begins with what `since` was the head of, and gives its present head.
///
/// This compares ids; that each id is the hash of its record is for [`verify`](super::verify()) to say.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if rows were cut off, changed or put between; [`ErrorKind::Misuse`] for an archive; as
/// [`Store::page`].
pub fn check(store: &dyn Store, since: &Head) -> Result<Head, Error> {
    grows(store)?;
    let head = chain(store, Head::default(), since.pos)?;
    begins(since, head, store.last()?.0)?;
    chain(store, head, u64::MAX)
}

/// Goes on with a chain of ids. They are counted as they come, so that a hole in the log shows as another hash.
pub(super) fn chain(store: &dyn Store, mut head: Head, upto: u64) -> Result<Head, Error> {
    let (end, mut from) = (upto.min(store.last()?.0), head.pos + 1);
    loop {
        let ids = store.ids(from, upto)?;
        let Some((last, _)) = ids.last() else {
            // An archive may end before its last place was asked for.
            return if from <= end && store.archive()?.is_none() {
                Err(gone(from))
            } else {
                Ok(head)
            };
        };
        from = last + 1;
        head = ids.iter().fold(head, |head, (_, id)| head.then(*id));
    }
}

/// Whether the chain up to a kept head is that head's, in a store that goes up to `last`.
pub(super) fn begins(since: &Head, found: Head, last: u64) -> Result<(), Error> {
    if last < since.pos {
        return Err(cut(since, last));
    }
    if found == *since {
        return Ok(());
    }
    let why = format!(
        "the store does not begin with what {since} was the head of: an envelope up to there is another one now, or gone"
    );
    Err(Error::new(ErrorKind::Corrupt, why))
}

pub(super) fn cut(since: &Head, last: u64) -> Error {
    let why = format!(
        "the store ends at pos {last}, the head {since} was taken at pos {}: envelopes were cut from its end",
        since.pos
    );
    Error::new(ErrorKind::Corrupt, why)
}

/// Refuses an archive: only a store goes on after a head.
pub(super) fn grows(store: &dyn Store) -> Result<(), Error> {
    let Some(archive) = store.archive()? else { return Ok(()) };
    let why = format!(
        "an archive is sealed, so that nothing comes after a head of it: verify the whole of it. The store that it was \
         taken of had the head {}",
        archive.head
    );
    Err(Error::new(ErrorKind::Misuse, why))
}
