//! Who works on a run or has a consumer open at this moment, without asking it and without a claim.

use std::{fs, path::PathBuf};

use neuron::{Ledger, RunId, ownership::LeaseClaimed, topic::catalog, vocabulary::Message as _};
use rustix::{io::Errno, process};
use serde::Serialize;

use super::outcome::Outcome;

/// The process that owns a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Owner {
    /// Its process id on this machine.
    pub(super) pid: i32,
    /// Its slot.
    pub(super) incarnation: String,
}

/// The owner of a run, if it lives: the last claim on the run is its, its slot is there, and so is the process.
pub(super) fn of(ledger: &Ledger, run: &RunId) -> Outcome<Option<Owner>> {
    of_name(ledger, &format!("run:{run}"))
}

/// The owner of a name, if it lives.
pub(super) fn of_name(ledger: &Ledger, name: &str) -> Outcome<Option<Owner>> {
    let store = ledger.store();
    let Some(seq) = store.keyed(&catalog::leases(), name)? else {
        return Ok(None);
    };
    let Some(row) = store.row(&catalog::leases(), seq)? else {
        return Ok(None);
    };
    let Some(claimed) = LeaseClaimed::read(&row.checked()?)? else {
        return Ok(None);
    };
    let Some(path) = store.path() else { return Ok(None) };
    let mut slot = path.as_os_str().to_owned();
    slot.push(".owners");
    let slot = PathBuf::from(slot).join(&claimed.incarnation);
    let text = fs::read_to_string(slot).unwrap_or_default();
    let pid = text.split_whitespace().next().and_then(|pid| pid.parse().ok());
    let Some(pid) = pid.and_then(process::Pid::from_raw) else {
        return Ok(None);
    };
    // A process of another user cannot be asked, which shows that it is there.
    let lives = matches!(process::test_kill_process(pid), Ok(()) | Err(Errno::PERM)) && !is_dead(pid);
    Ok(lives.then(|| Owner {
        pid: pid.as_raw_nonzero().get(),
        incarnation: claimed.incarnation,
    }))
}

/// Whether a process that still has a number is dead, and only its parent has not looked yet.
fn is_dead(pid: process::Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold some itself.
    let state = status
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, Some('Z' | 'X'))
}

#[cfg(test)]
mod tests {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

    #[test]
    fn a_process_that_ended_and_was_not_looked_at_is_dead() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        // Waits for its end, and leaves it unburied.
        waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        assert!(super::is_dead(pid));
        child.wait().unwrap();
        assert!(!super::is_dead(rustix::process::getpid()));
    }
}
