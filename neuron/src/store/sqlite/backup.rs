//! A copy of a store, taken while others write.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, time::Duration};

use rusqlite::{
    Connection,
    backup::{Backup, StepResult},
};

use super::{chain, fault::failed, fresh::Fresh, open, pool::Pool};
use crate::{
    Error, Result, limits,
    store::{Copied, Progress},
};

/// Copies what stands now to a file that takes its name once it is whole.
///
/// One read transaction holds the state still, so that what is committed meanwhile neither disturbs the copy nor waits
/// for it; the write-ahead log cannot begin anew until it ends.
pub(super) fn backup(pool: &Pool, from: &Path, to: &Path, progress: &mut dyn FnMut(Progress)) -> Result<Copied, Error> {
    let to = open::canonical(to)?;
    let mode = fs::metadata(from)?.permissions().mode() & 0o777;
    let fresh = Fresh::begin(&to, mode)?;
    pool.read(|reader| {
        let copy = Connection::open(fresh.path()).and_then(|mut copy| {
            // Nobody sees the copy before it is whole and durable, so nothing of it has to survive a crash.
            copy.execute_batch("PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;")?;
            copy.query_row("PRAGMA journal_mode = OFF", [], |_| Ok(()))?;
            held(&reader.connection, || pages(&reader.connection, &mut copy, progress))?;
            copy.close().map_err(|(_, error)| error)
        });
        copy.map_err(|error| failed(fresh.path(), &error).context(format!("{} cannot be copied", from.display())))
    })?;
    let head = chain::head(fresh.path())?;
    let bytes = fs::metadata(fresh.path())?.len();
    fresh.finish()?;
    Ok(Copied { head, bytes })
}

/// Runs in a read transaction that sees one state throughout.
fn held(connection: &Connection, work: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN")?;
    let outcome = connection
        .query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))
        .and_then(|()| work());
    // Nothing was written: how it ends is all the same.
    let _ = connection.execute_batch("ROLLBACK");
    outcome
}

fn pages(from: &Connection, to: &mut Connection, progress: &mut dyn FnMut(Progress)) -> rusqlite::Result<()> {
    let backup = Backup::new(from, to)?;
    loop {
        let step = backup.step(limits::BACKUP_STEP_PAGES)?;
        let now = backup.progress();
        let pages = |count: i32| u64::try_from(count).unwrap_or(0);
        progress(Progress {
            done: pages(now.pagecount - now.remaining),
            total: pages(now.pagecount),
        });
        match step {
            StepResult::Done => return Ok(()),
            StepResult::More => {}
            // A process that closes the store, or moves its log, holds it for a moment.
            _ => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
