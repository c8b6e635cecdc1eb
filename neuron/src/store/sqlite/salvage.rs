//! What can still be read of a file that SQLite calls damaged.

use std::{fs, path::Path};

use rusqlite::{Connection, config::DbConfig};

use super::{connect, layout, number::unsigned};
use crate::{Digest, ENVELOPE_CONTEXT};

/// What is left of a file, read as it stands, without a write-ahead log beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Salvage {
    /// Bytes of a page, and whole pages in the file.
    pub(crate) page_bytes: u64,
    pub(crate) pages: u64,
    /// The file is shorter than it says.
    pub(crate) cut: bool,
    /// The first page that is none; pages count from 1.
    pub(crate) first_bad: Option<u64>,
    /// The last `pos` up to which every envelope is there and its own.
    pub(crate) upto: u64,
}

/// Looks at what is left; nothing if not even the layout can be read.
pub(crate) fn salvage(path: &Path) -> Option<Salvage> {
    let bytes = fs::metadata(path).ok()?.len();
    let cut = reads(&connect::probe(path).ok()?).is_err();
    let connection = lenient(path).ok()?;
    reads(&connection).ok()?;
    let page_bytes = connection
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .map(unsigned)
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let pages = bytes / page_bytes;
    Some(Salvage {
        page_bytes,
        pages,
        cut,
        first_bad: if cut { Some(pages + 1) } else { first_bad(&connection) },
        upto: upto(&connection),
    })
}

fn reads(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
}

/// A connection that also reads a file which is shorter than it says. It writes nothing.
fn lenient(path: &Path) -> rusqlite::Result<Connection> {
    let connection = connect::probe(path)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true)?;
    connection.execute_batch("PRAGMA cell_size_check = ON")?;
    Ok(connection)
}

/// The first page that a look through all of them names.
fn first_bad(connection: &Connection) -> Option<u64> {
    let found = lines(connection, "PRAGMA quick_check(100)").unwrap_or_default();
    found.iter().filter_map(|line| page_of(line)).min()
}

/// The number after the last `page` that a line of SQLite's own check names.
pub(crate) fn page_of(line: &str) -> Option<u64> {
    let mut words = line.split([' ', ':', ',']);
    let mut found = None;
    while let Some(word) = words.next() {
        if word.eq_ignore_ascii_case("page") {
            found = words.next().and_then(|number| number.parse().ok()).or(found);
        }
    }
    found
}

/// What a check says, a finding each; nothing if all is well. Some findings are told in several lines.
pub(crate) fn lines(connection: &Connection, check: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(check)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    loop {
        match rows.next() {
            Ok(Some(row)) => {
                let text: String = row.get(0)?;
                found.extend(text.lines().filter(|line| !line.starts_with("***")).map(str::to_owned));
            }
            Ok(None) => break,
            // A page that stops the check itself.
            Err(error) => {
                found.push(error.to_string());
                break;
            }
        }
    }
    found.retain(|line| line != "ok");
    Ok(found)
}

/// The last envelope before the first that is missing, cannot be read, or is another than its id says.
fn upto(connection: &Connection) -> u64 {
    let sealed = layout::form(connection).is_ok_and(|form| form == super::ddl::Form::Archive);
    let mut last = 0;
    // What ends the walk is told by others.
    let _ = (|| -> rusqlite::Result<()> {
        let mut statement = connection.prepare("SELECT pos, id, record FROM envelope ORDER BY pos")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (pos, id): (i64, [u8; 32]) = (row.get(0)?, row.get(1)?);
            let found = Digest::derive(ENVELOPE_CONTEXT, row.get_ref(2)?.as_str()?.as_bytes());
            if *found.as_bytes() != id || (!sealed && unsigned(pos) != last + 1) {
                break;
            }
            last = unsigned(pos);
        }
        Ok(())
    })();
    last
}
