//! What is checked before a file is taken for a store, and how one is made.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use rusqlite::{Connection, ErrorCode, OptionalExtension as _, params};

use super::{
    connect::{self, Stamp, TIDY, log_of, unfinished},
    ddl::{self, Form},
    fault::{At as _, failed},
    options::{Access, Options},
};
use crate::{Digest, ENVELOPE_CONTEXT, Error, ErrorKind, Result, Schema, SchemaRef, limits};

/// Bytes of the head of a SQLite file.
const HEAD_BYTES: u64 = 100;

/// The one name of a store, whatever it was called by: symbolic links are followed, the file itself need not exist.
pub(super) fn canonical(path: &Path) -> Result<PathBuf, Error> {
    let shown = path.display();
    if let Ok(found) = fs::canonicalize(path) {
        if found.is_dir() {
            return Err(refuse(
                &found,
                "is a folder: give the path of a file in it, for instance `store.db`",
            ));
        }
        return Ok(found);
    }
    let Some(name) = path.file_name() else {
        return Err(refuse(path, "is no file name: give the path of a file"));
    };
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let found = fs::canonicalize(folder).map_err(|error| {
        let what = format!("the folder {} of the store {shown} cannot be used", folder.display());
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "create it first",
            _ => "check its permissions",
        };
        Error::from(error).context(format!("{what}: {hint}"))
    })?;
    if !found.is_dir() {
        let why = format!("{} is no folder, so {shown} cannot be in it", found.display());
        return Err(Error::new(ErrorKind::NotFound, why));
    }
    Ok(found.join(name))
}

fn refuse(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::NotAStore, format!("{} {why}", path.display()))
}

/// Whether other processes may make, open and close the store meanwhile.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// They may: a first look, which makes nothing and leaves it to the second to call a file damaged.
    Passing,
    /// They may not, or it does not matter.
    Steady,
}

/// Makes the store if it is missing and may be made, and checks that the file is one. Changes nothing else.
pub(super) fn checked(path: &Path, options: &Options, sight: Sight) -> Result<(), Error> {
    let make = || match sight {
        Sight::Passing if options.access == Access::Create => Ok(()),
        _ => create(path, options),
    };
    let Some(metadata) = found(path)? else {
        return make();
    };
    if !metadata.is_file() {
        return Err(refuse(path, "is no regular file: a store is one"));
    }
    let empty = metadata.len() == 0 && !log_of(path).exists();
    match options.access {
        Access::Create if empty => return make(),
        _ if empty => {
            return Err(refuse(
                path,
                "is empty: only an opening that may create makes it a store",
            ));
        }
        Access::Create | Access::Write if metadata.permissions().readonly() => {
            let why = format!(
                "{} is read-only: give it write permission, or open it for reading",
                path.display()
            );
            return Err(Error::new(ErrorKind::ReadOnly, why));
        }
        _ => {}
    }
    match probed(path) {
        Err(error) if sight == Sight::Passing && error.kind() == ErrorKind::Corrupt => Ok(()),
        probed => probed,
    }
}

fn found(path: &Path) -> Result<Option<fs::Metadata>, Error> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::from(error).context(format!("{} cannot be looked at", path.display()))),
    }
}

/// Whether the head of the file says that it is a store this program can read. What a look finds in a file that others
/// change meanwhile is not believed at once: the last of them moves its log into the file while it closes it.
fn probed(path: &Path) -> Result<(), Error> {
    let mut again = 0..limits::READ_AGAIN_MAX;
    loop {
        let before = Stamp::of_still(path);
        let found = probe(path);
        let is_still = before.is_some() && before == Stamp::of_still(path);
        if found.is_ok() || is_still || again.next().is_none() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(1 << again.start));
    }
}

fn probe(path: &Path) -> Result<(), Error> {
    let looked = connect::probe(path).and_then(|connection| {
        let pragma = |name| connection.query_row(name, [], |row| row.get::<_, i64>(0));
        Ok((pragma("PRAGMA application_id")?, pragma("PRAGMA user_version")?))
    });
    match looked {
        Ok((ddl::APPLICATION, ddl::FORMAT)) => Ok(()),
        Ok((ddl::APPLICATION, format)) => {
            let (known, newer) = (ddl::FORMAT, format > ddl::FORMAT);
            let hint = if newer {
                "use a newer version of this program"
            } else {
                "use the version that made it, and its `neuron export` if it has one"
            };
            Err(refuse(
                path,
                &format!("has format {format}, this program knows format {known}: {hint}"),
            ))
        }
        // Of a file without a whole page SQLite says nothing.
        Ok((0, 0)) if fs::metadata(path).is_ok_and(|metadata| metadata.len() < HEAD_BYTES) => Err(refuse(
            path,
            "is too short for a store, so it was cut off or is none: restore it from a copy, or give the path of a store",
        )),
        Ok((other, _)) => {
            let why = format!("is a SQLite file of another application (id {other:#x}): give the path of a store");
            Err(refuse(path, &why))
        }
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => Err(refuse(
            path,
            "is not a SQLite file, or its head is damaged: give the path of a store",
        )),
        // A writer may be moving its log into the file at this moment: the locks of an ordinary connection will tell.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) && log_of(path).exists() => Ok(()),
        Err(error) => Err(failed(path, &error)),
    }
}

/// What stands first in the registry of schemas: the root that a store was made with.
pub(super) fn root(path: &Path, connection: &Connection) -> Result<SchemaRef, Error> {
    let first: Option<Vec<u8>> = connection
        .query_row("SELECT hash FROM schema WHERE place = 1", [], |row| row.get(0))
        .optional()
        .at(path)?;
    let first = first.ok_or_else(|| {
        Error::new(
            ErrorKind::Corrupt,
            format!("{} has no root: its first schema is missing", path.display()),
        )
    })?;
    Digest::from_slice(&first).map(SchemaRef)
}

/// Why a store of another root is not written to; none if it has this program's.
pub(super) fn other_root(path: &Path, root: SchemaRef) -> Option<Error> {
    let own = Schema::plane0().reference();
    (root != own).then(|| {
        let why = format!(
            "{} has the root {}, this program writes the root {} ({ENVELOPE_CONTEXT}): it can be read, \
             write with the program it was made by",
            path.display(),
            root.0,
            own.0
        );
        Error::new(ErrorKind::ReadOnly, why)
    })
}

fn create(path: &Path, options: &Options) -> Result<(), Error> {
    if options.access != Access::Create {
        let why = format!("there is no store {}: check the path", path.display());
        return Err(Error::new(ErrorKind::NotFound, why));
    }
    build(path)
}

/// Builds the store under another name, so that a crash leaves either nothing or a whole one.
fn build(path: &Path) -> Result<(), Error> {
    let draft = unfinished(path);
    let outcome = clear(&draft).and_then(|()| {
        fill(&draft).map_err(|error| failed(path, &error))?;
        fs::rename(&draft, path)
            .and_then(|()| sync_folder(path))
            .map_err(|error| Error::from(error).context(format!("{} cannot be made", path.display())))
    });
    if outcome.is_err() {
        let _ = clear(&draft);
    }
    outcome
}

/// Removes what an interrupted creation left.
fn clear(draft: &Path) -> Result<(), Error> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = draft.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(&name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let what = format!("{} is in the way and cannot be removed", Path::new(&name).display());
                return Err(Error::from(error).context(what));
            }
            _ => {}
        }
    }
    Ok(())
}

fn fill(draft: &Path) -> rusqlite::Result<()> {
    let root = Schema::plane0();
    let connection = Connection::open(draft)?;
    connection.execute_batch(&format!(
        "{TIDY} PRAGMA synchronous = EXTRA; PRAGMA fullfsync = ON; BEGIN EXCLUSIVE; {}{}",
        ddl::tables(Form::Store),
        ddl::guards(Form::Store)
    ))?;
    connection.execute(
        "INSERT INTO schema (place, hash, definition) VALUES (1, ?1, ?2)",
        params![root.reference().0.as_bytes(), root.definition().as_str()],
    )?;
    connection.execute_batch("COMMIT")?;
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    connection.close().map_err(|(_, error)| error)
}

/// Makes the name of the new file durable.
fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent()
        .map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all())
}
