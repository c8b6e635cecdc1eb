use super::{Page, Range, Row, Select, Store};
use crate::{Error, ErrorKind, Result};

/// As [`Store::page`]; of the whole log, the places follow on each other up to its end. One that is passed over in silence
/// might be what was asked for. Of an archive places may be missing.
pub(crate) fn page(store: &dyn Store, select: &Select, range: Range) -> Result<Page, Error> {
    let page = store.page(select, range)?;
    if *select != Select::All {
        return Ok(page);
    }
    match hole(store, range, &page)? {
        Some(pos) if store.archive()?.is_none() => Err(gone(pos)),
        _ => Ok(page),
    }
}

fn hole(store: &dyn Store, range: Range, Page { rows, next }: &Page) -> Result<Option<u64>, Error> {
    let apart = |pair: &&[Row]| pair[0].pos.abs_diff(pair[1].pos) != 1;
    if let Some(pair) = rows.windows(2).find(apart) {
        return Ok(Some(pair[0].pos.min(pair[1].pos) + 1));
    }
    let (first, last) = (range.from.max(1), range.to.min(store.last()?.0));
    if next.is_some() || first > last {
        return Ok(None);
    }
    let missing = match rows.last() {
        Some(row) if range.reverse => row.pos - 1,
        Some(row) => row.pos + 1,
        None if range.reverse => last,
        None => first,
    };
    if !(first..=last).contains(&missing) {
        return Ok(None);
    }
    // Either it was committed just now, or it cannot be reached.
    let stands = store
        .page(&Select::All, Range::at(missing))?
        .rows
        .iter()
        .any(|row| row.pos == missing);
    Ok((!stands).then_some(missing))
}

/// An envelope that stands before others is not there.
pub(super) fn gone(pos: u64) -> Error {
    let why =
        format!("the envelope at pos {pos} is missing or cannot be reached: `neuron verify` looks through the store");
    Error::new(ErrorKind::Corrupt, why)
}
