use super::fixture::{Case, Fixture, draft, same, wrong};
use crate::{Append, Error, Result, limits, store::Snapshot};

pub(super) const CASES: &[Case] = &[
    (
        "a snapshot that is found under a key is the last one that was put there",
        last_wins,
    ),
    ("however many snapshots are put, a bounded number is kept", bounded),
];

fn snapshot(f: &Fixture, pos: u64, text: &str) -> Result<Snapshot, Error> {
    let rows = f.rows()?;
    let row = rows.iter().find(|row| row.pos == pos);
    Ok(Snapshot {
        pos,
        id: row.ok_or_else(|| wrong("a row is missing"))?.id,
        state: text.as_bytes().to_vec(),
    })
}

/// A store may lose what it keeps, and it may keep none.
fn found(f: &Fixture, key: &str, put: &Snapshot) -> Result<(), Error> {
    match f.store.snapshot(key)? {
        None => Ok(()),
        Some(found) => same(key, &found, put),
    }
}

fn last_wins(f: &Fixture) -> Result<(), Error> {
    f.append(Append::of([draft("a", "x", "1")?, draft("a", "x", "2")?]))?;
    same("nothing was put", &f.store.snapshot("one")?, &None)?;
    let (first, second, other) = (snapshot(f, 1, "first")?, snapshot(f, 2, "")?, snapshot(f, 2, "other")?);
    f.store.put_snapshot("one", &first)?;
    found(f, "one", &first)?;
    f.store.put_snapshot("two", &other)?;
    for next in [&second, &first, &second] {
        f.store.put_snapshot("one", next)?;
        found(f, "one", next)?;
        found(f, "two", &other)?;
    }
    same("another key", &f.store.snapshot("three")?, &None)?;
    // Snapshots are beside the log, not on it.
    same("rows", &f.rows()?.len(), &2)
}

fn bounded(f: &Fixture) -> Result<(), Error> {
    let count = limits::SNAPSHOTS_MAX as u64 + 5;
    let drafts = (0..count).map(|n| draft("a", "x", &n.to_string()));
    f.append(Append::of(drafts.collect::<Result<Vec<_>, _>>()?))?;
    let mut kept = 0;
    for pos in 1..=count {
        f.store.put_snapshot(&pos.to_string(), &snapshot(f, pos, "state")?)?;
    }
    for pos in 1..=count {
        found(f, &pos.to_string(), &snapshot(f, pos, "state")?)?;
        kept += usize::from(f.store.snapshot(&pos.to_string())?.is_some());
    }
    if kept > limits::SNAPSHOTS_MAX {
        return Err(wrong(format!("{kept} snapshots are kept")));
    }
    Ok(())
}
