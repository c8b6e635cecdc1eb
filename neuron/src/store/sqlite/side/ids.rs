//! The index from ids to places: runs of places that follow on each other, each sorted by id.

use rusqlite::{Connection, OptionalExtension as _, Row as SqlRow, Transaction, TransactionBehavior, params};

use super::super::{
    fault::At as _,
    number::{signed, unsigned},
    read::Reader,
};
use crate::{Digest, Error, Result, limits, store::prefix::Prefix};

/// Bytes of one entry: the first eight of an id, then how far behind the first of its run it stands. Entries sort as
/// ids do; what shares eight bytes is told apart in the store.
const ENTRY: usize = WORD + 4;
const WORD: usize = 8;

/// What the index gives for a prefix.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Up to which `pos` it has looked.
    upto: i64,
    /// Where envelopes may stand whose id begins so.
    candidates: Vec<i64>,
}

impl Found {
    /// Takes a run into account that joins on.
    fn look_into(&mut self, run: &Run, prefix: &Prefix) {
        self.upto = run.last;
        let before = self.candidates.len();
        self.candidates.extend(run.places(prefix));
        self.candidates[before..].sort_unstable();
        if self.is_enough() {
            self.candidates.truncate(CANDIDATES_MAX);
            self.upto = self.candidates[CANDIDATES_MAX - 1];
        }
    }

    fn is_enough(&self) -> bool {
        self.candidates.len() >= CANDIDATES_MAX
    }
}

/// More than are told apart, as some may share only the first bytes.
const CANDIDATES_MAX: usize = 4 * limits::ID_MATCHES_MAX;

/// The index of some places that follow on each other.
#[derive(Debug)]
struct Run {
    first: i64,
    last: i64,
    /// The id at `last`.
    id: Vec<u8>,
    entries: Vec<u8>,
}

impl Run {
    fn of(row: &SqlRow<'_>) -> rusqlite::Result<(Self, Vec<u8>)> {
        let run = Self {
            first: row.get(0)?,
            last: row.get(1)?,
            id: row.get(2)?,
            entries: row.get(3)?,
        };
        Ok((run, row.get(4)?))
    }

    fn checksum(&self) -> Digest {
        let mut sum = Digest::stream();
        sum.update(b"neuron-side-ids");
        sum.update(&self.first.to_be_bytes());
        sum.update(&self.last.to_be_bytes());
        sum.update(&self.id);
        sum.update(&self.entries);
        sum.finish()
    }

    /// The next run of the store after `upto`; none if nothing stands there.
    fn next(store: &Reader, upto: i64) -> Result<Option<Self>, Error> {
        let mut entries: Vec<[u8; ENTRY]> = Vec::new();
        let mut end = None;
        let first = upto + 1;
        each_id(store, upto, |pos, id| {
            let Ok(offset) = u32::try_from(pos - first) else {
                return false;
            };
            let mut entry = [0; ENTRY];
            entry
                .iter_mut()
                .zip(&id[..WORD.min(id.len())])
                .for_each(|(to, from)| *to = *from);
            entry[WORD..].copy_from_slice(&offset.to_be_bytes());
            entries.push(entry);
            end = Some((pos, id.to_vec()));
            entries.len() < limits::ID_INDEX_BATCH_MAX
        })?;
        entries.sort_unstable();
        Ok(end.map(|(last, id)| Self {
            first,
            last,
            id,
            entries: entries.concat(),
        }))
    }

    /// Where ids stand whose first bytes may be those of the prefix.
    fn places(&self, prefix: &Prefix) -> impl Iterator<Item = i64> {
        let (entries, _) = self.entries.as_chunks::<ENTRY>();
        let from = entries.partition_point(|entry| entry[..WORD] < prefix.first[..WORD]);
        let behind = entries[from..]
            .iter()
            .take_while(|entry| entry[..WORD] <= prefix.last[..WORD]);
        behind.map(|entry| {
            let offset = entry[WORD..]
                .iter()
                .fold(0, |offset, byte| offset << 8 | i64::from(*byte));
            self.first + offset
        })
    }

    /// Whether it is short, so that what follows is better entered into it than into one more.
    fn has_room(&self) -> bool {
        self.entries.len() < limits::ID_INDEX_BATCH_MAX * ENTRY
    }
}

/// What the index knows of a prefix. Everything in it is compared with its checksum and with the store; what does not
/// join on is removed, and what is missing entered, if that is allowed.
pub(super) fn find(side: &Connection, store: &Reader, prefix: &Prefix, writes: bool) -> rusqlite::Result<Found> {
    let mut found = Found::default();
    // The places of the last run that is whole, and what was found before it.
    let mut last = None;
    {
        let mut statement = side.prepare("SELECT first, last, id, entries, checksum FROM ids ORDER BY first")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (run, checksum) = Run::of(row)?;
            let whole = run.first == found.upto + 1 && checksum == run.checksum().as_bytes();
            if !whole || !stands(store, run.last, &run.id) {
                break;
            }
            last = Some((run.first, run.has_room()));
            found.look_into(&run, prefix);
            if found.is_enough() {
                return Ok(found);
            }
        }
    }
    if writes && has_after(store, found.upto) {
        let mut kept = last.map_or(0, |(first, _)| first);
        if let Some((first, true)) = last {
            // It is entered anew with what follows, so what it gave is taken back.
            found.upto = first - 1;
            found.candidates.retain(|pos| *pos < first);
            kept = first - 1;
        }
        fill(side, store, prefix, &mut found, kept)?;
    }
    Ok(found)
}

/// Enters what the index does not cover, run by run, in place of all that it holds behind the run that begins at `kept`.
fn fill(side: &Connection, store: &Reader, prefix: &Prefix, found: &mut Found, mut kept: i64) -> rusqlite::Result<()> {
    // The store is not read inside the transaction, so that another process never waits for that.
    while let Ok(Some(run)) = Run::next(store, found.upto) {
        let checksum = run.checksum();
        let entering = Transaction::new_unchecked(side, TransactionBehavior::Immediate)?;
        entering.execute("DELETE FROM ids WHERE first < 1 OR first > ?1", [kept])?;
        entering.execute(
            "INSERT INTO ids (first, last, id, entries, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
            params![run.first, run.last, run.id, run.entries, checksum.as_bytes()],
        )?;
        entering.commit()?;
        kept = run.first;
        found.look_into(&run, prefix);
        if found.is_enough() {
            break;
        }
    }
    Ok(())
}

/// The places of the ids that begin so, in order: the candidates that the store confirms, and what it holds behind them.
pub(super) fn complete(indexed: Found, store: &Reader, prefix: &Prefix) -> Result<Vec<u64>, Error> {
    let mut found = Vec::new();
    for pos in indexed.candidates {
        if id_at(store, pos)?.is_some_and(|id| prefix.holds(&id)) {
            found.push(unsigned(pos));
        }
    }
    if found.len() < limits::ID_MATCHES_MAX {
        each_id(store, indexed.upto, |pos, id| {
            if prefix.holds(id) {
                found.push(unsigned(pos));
            }
            found.len() < limits::ID_MATCHES_MAX
        })?;
    }
    found.truncate(limits::ID_MATCHES_MAX);
    Ok(found)
}

fn stands(store: &Reader, pos: i64, id: &[u8]) -> bool {
    id_at(store, pos).is_ok_and(|there| there.as_deref() == Some(id))
}

fn has_after(store: &Reader, pos: i64) -> bool {
    store.last().is_ok_and(|(last, _)| signed(last) > pos)
}

fn id_at(store: &Reader, pos: i64) -> Result<Option<Vec<u8>>, Error> {
    let mut statement = store.prepare("SELECT id FROM envelope WHERE pos = ?1")?;
    let id = statement.query_row([pos], |row| row.get(0)).optional();
    id.at(&store.path)
}

/// Shows the ids after `pos`, in order, until `see` has enough.
fn each_id(store: &Reader, pos: i64, mut see: impl FnMut(i64, &[u8]) -> bool) -> Result<(), Error> {
    let mut statement = store.prepare("SELECT pos, id FROM envelope WHERE pos > ?1 ORDER BY pos")?;
    let mut rows = statement.query([pos]).at(&store.path)?;
    while let Some(row) = rows.next().at(&store.path)? {
        let id = row.get_ref(1).at(&store.path)?;
        let id = id.as_blob().map_err(rusqlite::Error::from).at(&store.path)?;
        if !see(row.get(0).at(&store.path)?, id) {
            break;
        }
    }
    Ok(())
}
