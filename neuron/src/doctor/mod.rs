//! What is wrong with a store, in plain sentences, and what can be done about it.
//!
//! [`examine`] looks and changes nothing. [`mend`] puts right what is no record: guards and indexes are made anew, a
//! write-ahead log is moved in, slots of the dead and a damaged side file are removed. What was recorded is never
//! touched: damage there is told, with what can still be read, and a copy is what helps.

mod beside;
mod finding;

use std::path::Path;

pub use finding::{Diagnosis, Finding, Severity};

use crate::{
    Error, ErrorKind, Result, limits, ownership,
    store::{
        Access, Options, Sqlite, Store,
        sqlite::{
            frames,
            layout::{Drift, How},
            mend::{self, Condition, Side},
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

const RESTORE: &str = "restore it from a backup";

/// What helps where everything up to a `pos` can be read.
fn restore_or_export(upto: u64) -> String {
    match upto {
        0 => RESTORE.to_owned(),
        upto => format!("{RESTORE}; what stands before it is written elsewhere by `neuron export --to {upto}`"),
    }
}

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
    let condition = store.condition()?;
    // Where pages or the write-ahead log are damaged nothing is written: it might be the last of what can be read.
    let by_repair = !condition.is_damaged() && found.severity() != Some(Severity::Damaged);
    let mut mendable = |what: String, remedy: &str| {
        if by_repair {
            found.mendable(what, remedy);
        } else {
            found.tell(
                Severity::Mendable,
                what,
                format!("once what is damaged is restored: {remedy}"),
            );
        }
    };
    let Condition { drift, check, orphans } = &condition;
    for drift in drift.iter().filter(|drift| drift.is_mendable()) {
        if drift.how == How::Foreign {
            let what = format!("{drift}: it may change or refuse what is appended");
            mendable(what, "it is removed; nothing stored is changed by that");
        } else if drift.keeps_the_past() {
            let remedy = "it keeps the past as it is: it is made as it was. Rows that were cut from the end meanwhile are \
                          seen only by `neuron check --since HEAD` with a head kept elsewhere";
            mendable(drift.to_string(), remedy);
        } else {
            let remedy = "what is stored is found by it: it is made as it was, and nothing stored is changed by that";
            mendable(drift.to_string(), remedy);
        }
    }
    for index in condition.indexes() {
        let what = format!("index `{index}` does not say what its table says");
        mendable(what, "the table is the truth: the index is made anew from it");
    }
    for drift in drift.iter().filter(|drift| !drift.is_mendable()) {
        found.tell(Severity::Damaged, drift.to_string(), RESTORE);
    }
    pages(path, check, found);
    match verify::content(store) {
        Ok(verified) if found.severity() == Some(Severity::Damaged) => {
            // Whether that is all that ever stood there nobody can say any more.
            let (envelopes, upto) = (verified.envelopes, store.last()?.0);
            let what = format!("{envelopes} envelopes, up to pos {upto}, can be read and are what their ids say");
            let remedy = format!("they are written elsewhere by `neuron export --to {upto}`");
            found.tell(Severity::Note, what, remedy);
        }
        Ok(verified) => found.verified = Some(verified),
        Err(error) if error.kind() == ErrorKind::Corrupt => match error.detail::<Bad>() {
            Some(Bad { pos, .. }) => {
                let what = format!("the first bad envelope: {error}");
                found.tell(Severity::Damaged, what, restore_or_export(pos - 1));
            }
            None => found.tell(Severity::Damaged, error.to_string(), RESTORE),
        },
        // Its rules are not known here, which has been said.
        Err(error) if error.kind() == ErrorKind::NotAStore => {}
        Err(error) => return Err(error),
    }
    let (chunks, bytes) = *orphans;
    if chunks > 0 {
        found.tell(
            Severity::Note,
            format!("of the stored chunks {chunks} ({bytes} bytes) belong to no artifact"),
            "an artifact was begun and not finished, or is being stored now; they harm nobody, and serve whoever stores \
             the same content",
        );
    }
    Ok(())
}

/// The pages that SQLite's own check finds damaged.
fn pages(path: &Path, check: &[String], found: &mut Diagnosis) {
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
    let mut path = path.as_ref().to_owned();
    let looked = Sqlite::open(&path, reading).and_then(|store| {
        path = store.path().map_or_else(|| path.clone(), Path::to_owned);
        let refusal = store.refusal();
        let refusal = refusal.filter(|_| !store.archive().is_ok_and(|archive| archive.is_some()));
        Ok((store.condition()?, refusal))
    });
    let (condition, refusal) = match looked {
        // What is told as damage is not mended; what stands beside it is.
        Err(error) if error.kind() == ErrorKind::Corrupt => Default::default(),
        looked => looked?,
    };
    let mut done = Vec::new();
    let sound = !condition.is_damaged() && frames::whole(&path).is_ok();
    let indexes: Vec<String> = condition.indexes().into_iter().map(str::to_owned).collect();
    let mended: Vec<_> = condition.drift.iter().filter(|drift| drift.is_mendable()).collect();
    if sound && refusal.is_none() && (!mended.is_empty() || !indexes.is_empty()) {
        mend::layout(&path, &condition.drift, &indexes)?;
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
    let is_huge = mend::log_bytes(&path).is_some_and(|bytes| bytes > 4 * limits::WAL_BYTES_MAX);
    if sound && is_huge && mend::checkpoint(&path)? {
        done.push("the write-ahead log was moved into the store".to_owned());
    }
    if let Side::Damaged(_) = mend::side(&path) {
        mend::remove_side(&path)?;
        done.push("the side file was removed; it is made anew when it is needed".to_owned());
    }
    let mut left = None;
    for slot in ownership::stale(&ownership::folder(&path)) {
        if ownership::remove_if_stale(&slot) {
            done.push(format!(
                "the slot {} of a process that has died was removed",
                fs_name(&slot)
            ));
        } else {
            left = left.or_else(|| slot.exists().then_some(slot));
        }
    }
    if let Some(slot) = left {
        let why = format!(
            "the slot {} of a process that has died cannot be removed: check the permissions of its folder",
            slot.display()
        );
        return Err(Error::new(ErrorKind::Io, why));
    }
    Ok(done)
}

/// Whether the write-ahead log beside a store is read to its end. SQLite passes over what stands behind damage in silence, so
/// whatever is read of such a store may be less than was recorded.
///
/// # Errors
/// [`ErrorKind::Corrupt`] with what is lost and what can be done; a kind of the disk.
pub fn log(path: impl AsRef<Path>) -> Result<(), Error> {
    frames::whole(path.as_ref())
}

fn fs_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
