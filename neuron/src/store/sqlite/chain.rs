//! Ids in their order, without the envelopes that they are of.

use std::path::Path;

use super::{
    connect::{self, Reach, Stamp},
    fault::At as _,
    number::{signed, unsigned},
    read::Reader,
};
use crate::{Digest, Error, ErrorKind, Result, limits, store::verify::Head};

impl Reader {
    pub(super) fn ids(&self, from: u64, to: u64) -> Result<Vec<(u64, Digest)>, Error> {
        let mut statement =
            self.prepare("SELECT pos, id FROM envelope WHERE pos BETWEEN ?1 AND ?2 ORDER BY pos LIMIT ?3")?;
        let limit = signed(limits::ID_PAGE_MAX as u64);
        let mut rows = statement.query([signed(from), signed(to), limit]).at(&self.path)?;
        let mut ids = Vec::new();
        while let Some(row) = rows.next().at(&self.path)? {
            let (pos, id): (i64, [u8; 32]) = (row.get(0).at(&self.path)?, row.get(1).at(&self.path)?);
            ids.push((unsigned(pos), id.into()));
        }
        Ok(ids)
    }

    pub(super) fn count_before(&self, pos: u64) -> Result<u64, Error> {
        let count: i64 = self
            .prepare("SELECT count(*) FROM envelope WHERE pos < ?1")?
            .query_row([signed(pos)], |row| row.get(0))
            .at(&self.path)?;
        Ok(unsigned(count))
    }
}

/// The head of a store that nobody has open.
pub(super) fn head(path: &Path) -> Result<Head, Error> {
    let stamp =
        Stamp::of_still(path).ok_or_else(|| Error::new(ErrorKind::Io, format!("{} is gone", path.display())))?;
    let reader = Reader::new(
        path.into(),
        connect::reader(path, Reach::Still(stamp), limits::READ_WAIT_MAX).at(path)?,
    );
    let (mut head, mut from) = (Head::default(), 1);
    loop {
        let ids = reader.ids(from, u64::MAX)?;
        let Some((last, _)) = ids.last() else { return Ok(head) };
        from = last + 1;
        head = ids.iter().fold(head, |head, (_, id)| head.then(*id));
    }
}
