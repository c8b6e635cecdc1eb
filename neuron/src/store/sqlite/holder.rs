//! Which program holds SQLite's own lock on the file, where the system tells.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

use super::connect;
use crate::store::beside;

/// The byte of the shared index of the write-ahead log that SQLite locks while it writes (its file format, "WAL-index").
const WRITE_LOCK: u64 = 120;

/// The pid of a program that is inside a transaction on the file without having taken the lock that all processes of this
/// crate take. Nothing if there is none, and where the system keeps no public list of locks.
pub(crate) fn program(store: &Path) -> Option<u32> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let inode = |path: &Path| fs::metadata(path).map(|metadata| metadata.ino());
    let index = inode(&connect::index_of(store)).ok()?;
    let writers = inode(&beside(store, "lock")).ok();
    let held: Vec<_> = locks.lines().filter_map(Held::parse).collect();
    let inside = held
        .iter()
        .find(|lock| lock.writes && lock.inode == index && (lock.from..=lock.to).contains(&WRITE_LOCK))?;
    let is_ours = |lock: &Held| Some(lock.inode) == writers && lock.pid == inside.pid;
    (!held.iter().any(is_ours)).then_some(inside.pid)
}

/// How that program is named.
pub(super) fn named(store: &Path) -> String {
    program(store).map_or_else(
        || "another program".to_owned(),
        |pid| format!("another program (pid {pid})"),
    )
}

/// A line of the list.
struct Held {
    writes: bool,
    pid: u32,
    inode: u64,
    from: u64,
    to: u64,
}

impl Held {
    /// `1: POSIX  ADVISORY  WRITE 1234 08:01:5678 120 120`. One that waits (`1: -> POSIX …`) holds nothing, and of a
    /// process that cannot be seen from here no pid is told.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().skip(3);
        let (how, pid, file) = (words.next()?, words.next()?, words.next()?);
        let (from, to) = (words.next()?, words.next()?);
        Some(Self {
            writes: how == "WRITE",
            pid: pid.parse().ok().filter(|pid| *pid > 0)?,
            inode: file.rsplit(':').next()?.parse().ok()?,
            from: from.parse().ok()?,
            to: if to == "EOF" { u64::MAX } else { to.parse().ok()? },
        })
    }
}
