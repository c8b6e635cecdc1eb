//! What can go wrong between the review and `git`, said for the person at the terminal.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error of reading a repository.
#[derive(Debug)]
pub(crate) enum GitError {
    /// The program `git` was not found.
    NotInstalled,
    /// The path names no directory.
    NoDirectory(PathBuf),
    /// The directory is in no repository that `git` would open.
    NoRepository {
        /// The directory.
        path: PathBuf,
        /// What `git` said.
        said: String,
    },
    /// `git` could not be started for another reason.
    Start {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// The pipe from `git` broke.
    Read {
        /// The command.
        command: String,
        /// Why.
        source: io::Error,
    },
    /// `git` ended with an error.
    Failed {
        /// The command.
        command: String,
        /// Its exit status.
        status: String,
        /// What it said.
        said: String,
    },
    /// Nobody wants the answer any more.
    Stopped,
    /// `git` printed something of another form than its documentation says.
    Malformed {
        /// The command.
        command: String,
        /// The start of it.
        token: String,
    },
}

impl GitError {
    pub(super) fn starting(command: &str, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::NotFound {
            return Self::NotInstalled;
        }
        Self::Start {
            command: command.to_owned(),
            source,
        }
    }
}

impl fmt::Display for GitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInstalled => f.write_str("the program `git` was not found; install Git 2.31 or newer"),
            Self::NoDirectory(path) => {
                write!(
                    f,
                    "there is no directory `{}`; give the path of a Git repository",
                    path.display()
                )
            }
            Self::NoRepository { path, said } => write!(
                f,
                "`{}` is not in a Git repository; give the path of one, or make one with `git init` (git said: {said})",
                path.display()
            ),
            Self::Start { command, .. } => write!(f, "`{command}` could not be started"),
            Self::Read { command, .. } => write!(f, "the output of `{command}` could not be read"),
            Self::Failed { command, status, said } => write!(
                f,
                "`{command}` failed with {status}; `git fsck` tells whether the repository is whole (git said: {said})"
            ),
            Self::Stopped => f.write_str("the reading was stopped"),
            Self::Malformed { command, token } => write!(f, "`{command}` printed something unexpected: `{token}`"),
        }
    }
}

impl std::error::Error for GitError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Start { source, .. } | Self::Read { source, .. } => Some(source),
            Self::NotInstalled
            | Self::NoDirectory(_)
            | Self::NoRepository { .. }
            | Self::Failed { .. }
            | Self::Stopped
            | Self::Malformed { .. } => None,
        }
    }
}
