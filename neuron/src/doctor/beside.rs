//! What stands beside a store: locks, slots, the write-ahead log, the side file, permissions.

use std::{fs, path::Path};

use super::finding::{Diagnosis, Severity};
use crate::{
    limits, ownership,
    store::sqlite::{
        frames, holder,
        mend::{self, Side},
    },
};

/// Looks at everything but the file's content, and changes nothing.
pub(super) fn examine(path: &Path, found: &mut Diagnosis) {
    permissions(path, found);
    locks(path, found);
    slots(path, found);
    program(path, found);
    log(path, found);
    match mend::side(path) {
        Side::Whole => {}
        Side::Damaged(why) => found.mendable(
            format!("the side file beside the store is damaged ({why})"),
            "it holds nothing that is not in the store: it is deleted, and made anew when it is needed",
        ),
        Side::InTheWay(what) => found.tell(
            Severity::Mendable,
            what,
            "it holds nothing that is not in the store: move it away, or give it its rights; until then the store is \
             read without it, which takes longer",
        ),
    }
}

fn permissions(path: &Path, found: &mut Diagnosis) {
    let readonly = |path: &Path| fs::metadata(path).is_ok_and(|it| it.permissions().readonly());
    if readonly(path) {
        found.tell(
            Severity::Note,
            format!("{} is read-only", path.display()),
            "it can be read; give it write permission to append",
        );
    }
    let folder = path.parent().filter(|folder| readonly(folder));
    if let Some(folder) = folder {
        found.tell(
            Severity::Mendable,
            format!(
                "the folder {} is read-only, so no process can lock the store in it",
                folder.display()
            ),
            "give it write permission to append; reading needs none",
        );
    }
}

fn locks(path: &Path, found: &mut Diagnosis) {
    for lock in mend::locks(path) {
        let Ok(metadata) = lock.symlink_metadata() else {
            // It is made when somebody writes.
            continue;
        };
        let shown = lock.display();
        if !metadata.is_file() {
            let what = format!("{shown} is no regular file, so that no writer can lock it");
            found.tell(
                Severity::Mendable,
                what,
                "move it away while no process has the store open; it is made anew",
            );
        } else if metadata.permissions().readonly() {
            let what = format!("{shown} is read-only, so that no writer can lock it");
            found.tell(Severity::Mendable, what, "give it write permission");
        }
    }
    if mend::locks_hold(path) == Some(false) {
        found.tell(
            Severity::Mendable,
            "the file system of this store does not keep locks: two processes that write would not wait for each other",
            "keep the store on a local disk; until then only one process at a time may write to it",
        );
    }
}

fn program(path: &Path, found: &mut Diagnosis) {
    if let Some(pid) = holder::program(path) {
        found.tell(
            Severity::Note,
            format!("another program (pid {pid}) is inside a transaction on the file: whoever appends waits for it"),
            "let it finish, or end it",
        );
    }
}

fn slots(path: &Path, found: &mut Diagnosis) {
    let folder = ownership::folder(path);
    let Ok(metadata) = fs::metadata(&folder) else { return };
    let shown = folder.display();
    if !metadata.is_dir() {
        let what = format!("{shown} is no folder, so that no process can own a run");
        found.tell(Severity::Mendable, what, "move it away; it is made anew");
        return;
    }
    if metadata.permissions().readonly() {
        let what = format!("{shown} is read-only, so that no process can own a run");
        found.tell(Severity::Mendable, what, "give it write permission");
    }
    let stale = ownership::stale(&folder).len();
    if stale > 0 {
        let (slots, are) = if stale == 1 { ("slot", "is") } else { ("slots", "are") };
        found.mendable(
            format!("{stale} {slots} of processes that have died {are} left in {shown}"),
            "nobody comes back for one: they are removed",
        );
    }
}

fn log(path: &Path, found: &mut Diagnosis) {
    let Some(bytes) = mend::log_bytes(path).filter(|bytes| *bytes > 0) else {
        return;
    };
    if let Err(error) = frames::whole(path) {
        let remedy = "restore it from a backup, or go on in the store that `neuron backup` makes of what can be read; keep both files";
        return found.tell(Severity::Damaged, error.to_string(), remedy);
    }
    let most = 4 * limits::WAL_BYTES_MAX;
    if bytes > most {
        found.mendable(
            format!("the write-ahead log beside the store has grown to {bytes} bytes, more than {most}"),
            "it is moved into the store; if it grows again, a program holds a read transaction open",
        );
    } else {
        found.tell(
            Severity::Note,
            format!("a write-ahead log of {bytes} bytes stands beside the store"),
            "a process has the store open, or one has ended without closing it. It belongs to the store, was read to \
             its end, and is moved in by the next that opens it: copy both files, or use `neuron backup`",
        );
    }
}
