//! States of folds, put aside.

use rusqlite::{Connection, OptionalExtension as _, Transaction, TransactionBehavior, params};

use super::super::number::{signed, unsigned};
use crate::{Digest, limits, store::Snapshot};

fn checksum(key: &str, pos: i64, id: &[u8], state: &[u8]) -> Digest {
    let mut sum = Digest::stream();
    sum.update(b"neuron-side-snapshot");
    sum.update(&(key.len() as u64).to_be_bytes());
    sum.update(key.as_bytes());
    sum.update(&pos.to_be_bytes());
    sum.update(id);
    sum.update(state);
    sum.finish()
}

/// The snapshot under a key, if it is whole.
pub(super) fn get(side: &Connection, key: &str) -> rusqlite::Result<Option<Snapshot>> {
    let query = "SELECT pos, id, state, checksum FROM snapshot WHERE key = ?1";
    let found = side.query_row(query, [key], |row| {
        let (pos, id, state): (i64, Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let whole = row.get_ref(3)?.as_blob()? == checksum(key, pos, &id, &state).as_bytes();
        Ok(Digest::from_slice(&id).ok().filter(|_| whole).map(|id| Snapshot {
            pos: unsigned(pos),
            id,
            state,
        }))
    });
    Ok(found.optional()?.flatten())
}

/// Puts a snapshot aside, and lets go of those for which there is no room.
pub(super) fn put(side: &Connection, key: &str, snapshot: &Snapshot, last: u64) -> rusqlite::Result<()> {
    let (pos, id) = (signed(snapshot.pos), snapshot.id.as_bytes());
    let sum = checksum(key, pos, id, &snapshot.state);
    let putting = Transaction::new_unchecked(side, TransactionBehavior::Immediate)?;
    // No snapshot of this store goes further than it does.
    putting.execute("DELETE FROM snapshot WHERE pos > ?1", [signed(last)])?;
    putting.execute(
        "INSERT OR REPLACE INTO snapshot (key, pos, id, state, checksum) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![key, pos, id, snapshot.state, sum.as_bytes()],
    )?;
    for key in surplus(side)? {
        putting.execute("DELETE FROM snapshot WHERE key = ?1", [key])?;
    }
    putting.commit()
}

/// The keys of those that lie furthest back, beyond what is kept.
fn surplus(side: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = side.prepare("SELECT key, length(state) FROM snapshot ORDER BY pos DESC, key")?;
    let mut rows = statement.query([])?;
    let (mut count, mut bytes, mut surplus) = (0, 0, Vec::new());
    while let Some(row) = rows.next()? {
        count += 1;
        bytes += unsigned(row.get(1)?);
        if count > limits::SNAPSHOTS_MAX || bytes > limits::SNAPSHOTS_BYTES_MAX as u64 {
            surplus.push(row.get(0)?);
        }
    }
    Ok(surplus)
}
