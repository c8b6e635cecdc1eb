//! What is wrong with a store, in plain sentences, and what can be done about it.
//!
//! [`examine`] looks and changes nothing. [`mend`] puts right what is no record: guards and indexes are made anew, a
//! write-ahead log is moved in, slots of the dead and a damaged side file are removed. What was recorded is never
//! touched: damage there is told, with what can still be read, and a copy is what helps.

mod beside;
mod finding;

use std::{collections::BTreeSet, path::Path};

pub use finding::{Diagnosis, Finding, Severity};

use crate::{
    Error, ErrorKind, Result, limits, ownership,
    store::{
        Access, Options, Sqlite, Store,
        sqlite::{
            layout::{Drift, How},
            mend::{self, Condition},
            salvage::{self, Salvage},
        },
        verify::{self, Bad},
    },
};

/// Examines the store at `path` and everything beside it. Others may write meanwhile. Blocks.
///
/// ```
/// use neuron::{doctor, store::{Options, Sqlite}};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("notes.db");
/// drop(Sqlite::open(&path, Options::default())?);
/// assert_eq!(doctor::examine(&path)?.severity(), None);
/// # Ok::<(), neuron::BoxError>(())
/// ```
///
/// # Errors
/// [`ErrorKind::NotFound`] if there is no file, [`ErrorKind::Busy`] if somebody holds it for too long, or a kind of the
/// disk. What is wrong with a file that is there is no error.
pub fn examine(path: impl AsRef<Path>) -> Result<Diagnosis, Error> {
    let path = path.as_ref();
    let mut found = Diagnosis::default();
    let reading = Options {
        access: Access::Read,
        ..Options::default()
    };
    match Sqlite::open(path, reading) {
        Ok(store) => {
            let path = store.path().unwrap_or(path).to_owned();
            beside::examine(&path, &mut found);
            content(&store, &path, &mut found)?;
        }
        Err(error) if error.kind() == ErrorKind::NotAStore => {
            found.tell(Severity::Damaged, error.to_string(), "nothing of it was touched");
        }
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            beside::examine(path, &mut found);
            let left = left(path).map_or_else(String::new, |left| format!("; {left}"));
            found.tell(Severity::Damaged, format!("{error}{left}"), RESTORE);
        }
        Err(error) => return Err(error),
    }
    found
        .findings
        .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(found)
}

const RESTORE: &str = "restore it from a backup; what can be read can be exported: `neuron export`";

/// What can still be read of a damaged file, as a sentence; nothing if no page of it is.
pub fn left(path: &Path) -> Option<String> {
    let Some(Salvage {
        page_bytes,
        pages,
        cut,
        first_bad,
        upto,
    }) = salvage::salvage(path)
    else {
        return Some("the list of its tables cannot be read, and so nothing of it".to_owned());
    };
    let where_ = match first_bad {
        Some(page) if cut => {
            format!("the file was cut off after its page {pages}: page {page} and those after it are missing")
        }
        Some(page) => {
            let from = (page - 1) * page_bytes;
            format!(
                "page {page} of {pages} (bytes {from} to {}) is the first that is damaged",
                from + page_bytes - 1
            )
        }
        None => return None,
    };
    let read = match upto {
        0 => "no envelope can be read".to_owned(),
        _ => format!("envelopes can be read up to pos {upto}"),
    };
    Some(format!("{where_}; {read}"))
}

fn content(store: &Sqlite, path: &Path, found: &mut Diagnosis) -> Result<(), Error> {
    if let Some(why) = store.refusal() {
        found.tell(Severity::Note, why.to_string(), "nothing need be done to read it");
    }
    let Condition { drift, check, orphans } = store.condition()?;
    for drift in &drift {
        if drift.how == How::Foreign {
            found.mendable(
                format!("{drift}: it may change or refuse what is appended"),
                "it is removed; nothing stored is changed by that",
            );
        } else if drift.is_mendable() {
            found.mendable(
                drift.to_string(),
                "it keeps the past as it is, or finds it: it is made as it was, and nothing stored is changed by that",
            );
        } else {
            found.tell(Severity::Damaged, drift.to_string(), RESTORE);
        }
    }
    checked(path, &check, found);
    match verify::content(store) {
        Ok(verified) => found.verified = Some(verified),
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            let what = match error.detail::<Bad>() {
                Some(_) => format!("the first bad envelope: {error}"),
                None => error.to_string(),
            };
            found.tell(Severity::Damaged, what, RESTORE);
        }
        // Its rules are not known here, which has been said.
        Err(error) if error.kind() == ErrorKind::NotAStore => {}
        Err(error) => return Err(error),
    }
    if orphans.0 > 0 {
        let (chunks, bytes) = orphans;
        found.tell(
            Severity::Note,
            format!("of the stored chunks {chunks} ({bytes} bytes) belong to no artifact"),
            "an artifact was begun and not finished, or is being stored now; they harm nobody, and serve whoever stores \
             the same content",
        );
    }
    Ok(())
}

/// What SQLite's own check has found.
fn checked(path: &Path, check: &[String], found: &mut Diagnosis) {
    let indexes: BTreeSet<&str> = check.iter().filter_map(|line| mend::index_of(line)).collect();
    for index in indexes {
        found.mendable(
            format!("index `{index}` does not say what its table says"),
            "the table is the truth: the index is made anew from it",
        );
    }
    let pages: Vec<_> = check.iter().filter(|line| mend::index_of(line).is_none()).collect();
    if let Some(first) = pages.first() {
        let left = left(path).map_or_else(String::new, |left| format!("; {left}"));
        let what = format!(
            "the file is damaged in {} places, the first: {first}{left}",
            pages.len()
        );
        found.tell(Severity::Damaged, what, RESTORE);
    }
}

/// Puts right what [`examine`] calls mendable by repair, and says what was done. What was recorded is not touched. Blocks.
///
/// # Errors
/// As [`examine`]; the first thing that could not be done, after those that could.
pub fn mend(path: impl AsRef<Path>) -> Result<Vec<String>, Error> {
    let reading = Options {
        access: Access::Read,
        ..Options::default()
    };
    let store = Sqlite::open(path, reading)?;
    let path = store.path().map(Path::to_owned).unwrap_or_default();
    let Condition { drift, check, .. } = store.condition()?;
    let refusal = store
        .refusal()
        .filter(|_| !store.archive().is_ok_and(|archive| archive.is_some()));
    drop(store);
    let mut done = Vec::new();
    let indexes: BTreeSet<String> = check
        .iter()
        .filter_map(|line| mend::index_of(line))
        .map(str::to_owned)
        .collect();
    let mended: Vec<_> = drift.iter().filter(|drift| drift.is_mendable()).collect();
    if refusal.is_none() && (!mended.is_empty() || !indexes.is_empty()) {
        mend::layout(&path, &drift, &indexes.iter().cloned().collect::<Vec<_>>())?;
        done.extend(mended.iter().map(|Drift { part, how, .. }| {
            let what = if *how == How::Foreign {
                "was removed"
            } else {
                "was made as it should be"
            };
            format!("{} `{}` {what}", part.kind, part.name)
        }));
        let anew = |index: &String| format!("index `{index}` was made anew from its table");
        done.extend(indexes.iter().map(anew));
    }
    if mend::log_bytes(&path).is_some_and(|bytes| bytes > 4 * limits::WAL_BYTES_MAX) && mend::checkpoint(&path)? {
        done.push("the write-ahead log was moved into the store".to_owned());
    }
    if mend::side(&path).is_some() {
        mend::remove_side(&path)?;
        done.push("the side file was removed; it is made anew when it is needed".to_owned());
    }
    for slot in ownership::stale(&ownership::folder(&path)) {
        if ownership::remove_if_stale(&slot) {
            done.push(format!(
                "the slot {} of a process that has died was removed",
                fs_name(&slot)
            ));
        }
    }
    Ok(done)
}

fn fs_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
