//! How this review starts `git`: fixed arguments, no shell, nothing of the user's taste in the output.

use std::ffi::OsStr;
use std::io::{BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::JoinHandle;

use super::GitError;

/// Bytes of what `git` says on its error output that are kept for a message.
const SAID_MAX: usize = 4 * 1024;

/// Variables of the caller that would point `git` elsewhere or colour its output. Its configuration (`GIT_CONFIG…`)
/// stays: it says which directories are safe to read.
const CLEARED: &[&str] = &[
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_DIFF_OPTS",
    "GIT_DIR",
    "GIT_EXTERNAL_DIFF",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_TRACE",
    "GIT_WORK_TREE",
];

/// A command with the environment of every command here, in the directory `within`.
pub(super) fn plain(within: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(within);
    for name in CLEARED {
        command.env_remove(name);
    }
    command
        .env("LC_ALL", "C")
        .env("GIT_NO_LAZY_FETCH", "1") // a partial clone must not go to the network
        .env("GIT_NO_REPLACE_OBJECTS", "1") // the review is of the commit, not of what replaces it here
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .stdin(Stdio::null());
    command
}

/// Runs a command to its end and gives its output, which must be short.
pub(super) fn output(mut command: Command, shown: &str) -> Result<std::process::Output, GitError> {
    command.output().map_err(|error| GitError::starting(shown, error))
}

/// A running `git` whose output is read as it comes.
///
/// Dropped before its end, it is killed: nobody waits for the rest of a log that is no longer wanted.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    /// What the command prints.
    pub(super) stdout: BufReader<ChildStdout>,
    said: Option<JoinHandle<Vec<u8>>>,
    shown: String,
}

impl Running {
    /// Starts `command`; `shown` is how an error names it.
    pub(super) fn start(command: &mut Command, shown: impl Into<String>) -> Result<Self, GitError> {
        let shown = shown.into();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| GitError::starting(&shown, error))?;
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(GitError::Read {
                command: shown,
                source: std::io::ErrorKind::BrokenPipe.into(),
            });
        };
        // Read beside the output: a full error pipe would stop the command for ever.
        let said = std::thread::spawn(move || first_bytes(stderr));
        Ok(Self {
            child,
            stdout: BufReader::with_capacity(64 * 1024, stdout),
            said: Some(said),
            shown,
        })
    }

    /// The command's input, if it was piped and not yet taken.
    pub(super) fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// An error of reading from the command.
    pub(super) fn read_error(&self, source: std::io::Error) -> GitError {
        GitError::Read {
            command: self.shown.clone(),
            source,
        }
    }

    /// An error about output that is not of the promised form.
    pub(super) fn malformed(&self, token: &[u8]) -> GitError {
        let start = &token[..token.len().min(120)];
        GitError::Malformed {
            command: self.shown.clone(),
            token: crate::name::printable(start),
        }
    }

    /// The error for output that ended too early: what the command itself says of it, if it failed.
    pub(super) fn cut_off(&mut self) -> GitError {
        match self.wait() {
            Err(failed) => failed,
            Ok(()) => self.malformed(b"the end, too early"),
        }
    }

    /// Waits for the end and says whether it went well.
    pub(super) fn finish(mut self) -> Result<(), GitError> {
        self.wait()
    }

    fn wait(&mut self) -> Result<(), GitError> {
        let status = self.child.wait().map_err(|error| self.read_error(error))?;
        let said = self
            .said
            .take()
            .and_then(|thread| thread.join().ok())
            .unwrap_or_default();
        if status.success() {
            return Ok(());
        }
        Err(GitError::Failed {
            command: self.shown.clone(),
            status: status.to_string(),
            said: spoken(&said),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when the command has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What `git` said, as one printable line.
pub(super) fn spoken(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    crate::name::printable(lines.join("; ").as_bytes())
}

/// Appends arguments and keeps the builder's shape.
pub(super) fn with<S: AsRef<OsStr>>(mut command: Command, args: impl IntoIterator<Item = S>) -> Command {
    command.args(args);
    command
}

fn first_bytes(mut stderr: impl Read) -> Vec<u8> {
    let mut kept = Vec::new();
    let mut chunk = [0; 1024];
    while let Ok(read @ 1..) = stderr.read(&mut chunk) {
        let room = SAID_MAX.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(&chunk[..room]);
    }
    kept
}
