//! Where the processes that have a store open find each other: a folder beside it with one socket for each.

use std::{
    fs::{self, DirBuilder, File, Permissions},
    hash::{BuildHasher as _, Hasher as _, RandomState},
    io,
    os::{
        fd::AsRawFd as _,
        unix::{
            ffi::OsStrExt as _,
            fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
};

use crate::{Error, ErrorKind, Result, limits, store::beside};

/// Bytes of a path that a socket may have on every system.
const SOCKET_PATH_BYTES_MAX: usize = 103;
/// Digits of a socket's name.
const NAME_DIGITS: usize = 32;

/// The folder, and the socket of this process in it.
#[derive(Debug)]
pub(super) struct Meeting {
    folder: PathBuf,
    /// Held open, as a way to sockets whose path is too long.
    handle: File,
    pub(super) name: String,
    /// Which file the store is: a copy of it, or one that took its place, is another.
    pub(super) store: String,
}

impl Meeting {
    /// Opens this process's socket beside the store at `path`.
    pub(super) fn open(path: &Path) -> Result<(Self, UnixListener), Error> {
        let folder = beside(path, "bus");
        let here = |error: io::Error| {
            Error::new(ErrorKind::Io, error).context(format!("cannot open a socket in {}", folder.display()))
        };
        let stat = fs::metadata(path).map_err(here)?;
        let store = format!("{}:{}", stat.dev(), stat.ino());
        let mut last = None;
        for _ in 0..limits::BRIDGE_ATTEMPTS_MAX {
            match Self::attempt(&folder, &store) {
                // The last one to leave removes the folder, and a socket that does not listen yet looks like a dead one.
                Err(error) if error.kind() == io::ErrorKind::NotFound => last = Some(error),
                outcome => return outcome.map_err(here),
            }
        }
        Err(here(last.unwrap_or_else(|| io::ErrorKind::NotFound.into())))
    }

    fn attempt(folder: &Path, store: &str) -> io::Result<(Self, UnixListener)> {
        match DirBuilder::new().mode(0o700).create(folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let meeting = Self {
            handle: File::open(folder)?,
            folder: folder.to_owned(),
            name: fresh(),
            store: store.to_owned(),
        };
        // Nobody knows it by this name: it is there under its own only once it listens and has its permissions.
        let draft = format!(".{}", meeting.name);
        let listener = UnixListener::bind(meeting.reach(&draft)?)?;
        let path = folder.join(&draft);
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        fs::rename(&path, folder.join(&meeting.name))?;
        listener.set_nonblocking(true)?;
        Ok((meeting, listener))
    }

    /// The sockets of the others.
    pub(super) fn others(&self) -> io::Result<Vec<String>> {
        let mut others = Vec::new();
        for entry in fs::read_dir(&self.folder)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            if is_name(name) && *name != self.name {
                others.push(name.to_owned());
            } else if name.strip_prefix('.').is_some_and(is_name) {
                self.clear(name);
            }
        }
        Ok(others)
    }

    /// A path that leads to a socket of the folder and that a socket may have.
    pub(super) fn reach(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.folder.join(name);
        if path.as_os_str().as_bytes().len() <= SOCKET_PATH_BYTES_MAX {
            return Ok(path);
        }
        if cfg!(target_os = "linux") {
            return Ok(PathBuf::from(format!(
                "/proc/self/fd/{}/{name}",
                self.handle.as_raw_fd()
            )));
        }
        let why = format!(
            "the path of a socket may have {SOCKET_PATH_BYTES_MAX} bytes, and {} has more: move the store to a shorter one",
            path.display()
        );
        Err(io::Error::new(io::ErrorKind::InvalidFilename, why))
    }

    /// Removes the socket of a process that is dead.
    pub(super) fn bury(&self, name: &str) {
        let _ = fs::remove_file(self.folder.join(name));
    }

    /// Removes a socket whose process died before it was there under its name. One that is only just being made is made
    /// again.
    fn clear(&self, draft: &str) {
        let reached = self.reach(draft).and_then(UnixStream::connect);
        if reached.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            self.bury(draft);
        }
    }

    /// Removes this process's own socket. The folder goes with the last one: not while any socket is in it.
    pub(super) fn leave(&self) {
        self.bury(&self.name);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Whether this may be the name of a socket: nothing that leads out of the folder is.
pub(super) fn is_name(name: &str) -> bool {
    name.len() == NAME_DIGITS
        && name
            .bytes()
            .all(|digit| digit.is_ascii_digit() || matches!(digit, b'a'..=b'f'))
}

fn fresh() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}
