//! A Git repository, read through the program `git` and nothing else.
//!
//! Everything is read of one commit, resolved once, with output that no configuration of the user changes and in
//! `-z` formats, so that a name is bytes. Everything streams: no log, tree or file is ever whole in memory, except
//! the first [`READ_MAX`] bytes of the file at hand.

mod blobs;
mod command;
mod contents;
mod error;
mod log;
mod tree;

use std::cell::Cell;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) use blobs::{Blobs, Content, READ_MAX};
pub(crate) use contents::{File, is_binary};
pub(crate) use error::GitError;
pub(crate) use log::{Commit, Log};
pub(crate) use tree::{Entry, Kind, Lines, Tree};

use command::{Running, output, plain, spoken, with};

/// Lines added and removed; absent for a binary file, which has none.
pub(crate) type Changed = Option<(u64, u64)>;

/// Told how far a reading is: commits, entries or files so far. An error stops the reading.
pub(crate) type Progress<'a> = &'a mut dyn FnMut(u64) -> Result<(), GitError>;

/// Bytes of one token of a `-z` output; the longest is a path, and no system makes one this long.
const TOKEN_MAX: usize = 1024 * 1024;

/// What is reviewed: one commit, fixed before anything is read, so that a resumed review is of the same one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Subject {
    /// The commit's id in hex; absent for a repository without commits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<String>,
    /// Whether the history is cut off (a shallow clone): then what is said of it is of the part that is there.
    pub(crate) shallow: bool,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.commit {
            None => f.write_str("a repository without commits"),
            Some(commit) if self.shallow => write!(f, "commit {commit} of a shallow clone"),
            Some(commit) => write!(f, "commit {commit}"),
        }
    }
}

/// An opened repository. Cheap to clone; it holds no process and no file open.
#[derive(Clone, Debug)]
pub(crate) struct Repository {
    dir: PathBuf,
    empty_tree: String,
}

impl Repository {
    /// Opens the repository that `path` is in: a work tree, a directory of one, or a bare repository.
    pub(crate) fn open(path: &Path) -> Result<Self, GitError> {
        if !path.is_dir() {
            return Err(GitError::NoDirectory(path.to_owned()));
        }
        let found = output(with(plain(path), ["rev-parse", "--absolute-git-dir"]), "git rev-parse")?;
        if !found.status.success() {
            return Err(GitError::NoRepository {
                path: path.to_owned(),
                said: spoken(&found.stderr),
            });
        }
        let dir = path_of(found.stdout.trim_ascii_end());
        let mut opened = Self {
            dir,
            empty_tree: String::new(),
        };
        // Asked for, not written down: its id depends on the repository's hash.
        opened.empty_tree = opened
            .ask(&["hash-object", "-t", "tree", "--stdin"])?
            .unwrap_or_default();
        Ok(opened)
    }

    /// Resolves `HEAD` to a commit. A repository without commits is a subject too.
    pub(crate) fn subject(&self) -> Result<Subject, GitError> {
        let commit = self.ask(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"])?;
        let shallow = self
            .ask(&["rev-parse", "--is-shallow-repository"])?
            .is_some_and(|answer| answer == "true");
        Ok(Subject { commit, shallow })
    }

    /// Whether the repository holds a commit.
    pub(crate) fn holds(&self, commit: &str) -> Result<bool, GitError> {
        let peeled = format!("{commit}^{{commit}}");
        Ok(self
            .ask(&["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled])?
            .is_some())
    }

    /// A reader of its own, which counts the commands it starts.
    pub(crate) fn reader(&self) -> Reader {
        Reader {
            repository: self.clone(),
            calls: Cell::new(0),
        }
    }

    /// One short answer; `None` if `git` ended with status 1, its quiet "no".
    fn ask(&self, args: &[&str]) -> Result<Option<String>, GitError> {
        let shown = format!("git {}", args.join(" "));
        let answer = output(with(self.command(), args), &shown)?;
        match answer.status.code() {
            Some(0) => Ok(Some(String::from_utf8_lossy(answer.stdout.trim_ascii()).into_owned())),
            Some(1) => Ok(None),
            _ => Err(GitError::Failed {
                command: shown,
                status: answer.status.to_string(),
                said: spoken(&answer.stderr),
            }),
        }
    }

    /// `git` on this repository as if it were bare: a work tree's files (`.mailmap`, `.gitattributes`) may differ
    /// from the commit's, so none is read.
    fn command(&self) -> Command {
        let mut command = plain(&self.dir);
        command.arg("--bare").arg("--git-dir").arg(&self.dir);
        let attributes = format!("attr.tree={}", self.empty_tree);
        for setting in [
            "core.attributesFile=/dev/null",
            "log.showRoot=true",
            "mailmap.file=/dev/null",
            &attributes,
        ] {
            command.args(["-c", setting]);
        }
        command
    }
}

/// Reads one repository for one piece of work and counts the `git` commands it took.
#[derive(Debug)]
pub(crate) struct Reader {
    repository: Repository,
    calls: Cell<u64>,
}

impl Reader {
    /// How many `git` commands were started.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.get()
    }

    /// The commits that lead to `commit`, newest first, each with the files it changed.
    pub(crate) fn log(&self, commit: &str) -> Result<Log, GitError> {
        let mailmap = format!("mailmap.blob={commit}:.mailmap");
        let mut command = self.repository.command();
        command.args(["-c", &mailmap]).args(log::ARGS).args([commit, "--"]);
        Ok(Log::new(self.start(&mut command, "git log -z --numstat")?))
    }

    /// The files of `commit` with their sizes.
    pub(crate) fn tree(&self, commit: &str) -> Result<Tree, GitError> {
        let mut command = self.repository.command();
        command.args(["ls-tree", "-r", "-z", "-l", "--full-tree", commit]);
        Ok(Tree::new(self.start(&mut command, "git ls-tree -r -z -l")?))
    }

    /// The files of `commit` with their lines, which is what the commit adds to the empty tree.
    pub(crate) fn lines(&self, commit: &str) -> Result<Lines, GitError> {
        let mut command = self.repository.command();
        command.args([
            "diff-tree",
            "-r",
            "-z",
            "--numstat",
            "--no-renames",
            "--no-ext-diff",
            "--no-textconv",
        ]);
        command.args([&self.repository.empty_tree, commit, "--"]);
        Ok(Lines::new(self.start(&mut command, "git diff-tree -r -z --numstat")?))
    }

    /// A pipe that gives the content of blobs by their ids.
    pub(crate) fn blobs(&self) -> Result<Blobs, GitError> {
        let mut command = self.repository.command();
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped());
        Ok(Blobs::new(self.start(&mut command, "git cat-file --batch")?))
    }

    fn start(&self, command: &mut Command, shown: &str) -> Result<Running, GitError> {
        self.calls.set(self.calls.get() + 1);
        Running::start(command, shown)
    }
}

/// Reads one token up to its NUL into `token`; false at the end of the output.
fn token(running: &mut Running, token: &mut Vec<u8>) -> Result<bool, GitError> {
    use std::io::{BufRead as _, Read as _};

    token.clear();
    let mut bounded = (&mut running.stdout).take(TOKEN_MAX as u64);
    let read = bounded.read_until(0, token);
    let read = read.map_err(|error| running.read_error(error))?;
    match token.last() {
        Some(0) => {
            token.pop();
            Ok(true)
        }
        None if read == 0 => Ok(false),
        _ if token.len() < TOKEN_MAX => Err(running.cut_off()),
        _ => Err(running.malformed(token)),
    }
}

/// A numstat token: lines added, lines removed (absent for a binary file), path.
fn numstat(token: &[u8]) -> Option<(Changed, &[u8])> {
    let mut parts = token.splitn(3, |byte| *byte == b'\t');
    let (added, removed, path) = (parts.next()?, parts.next()?, parts.next()?);
    if (added, removed) == (&b"-"[..], &b"-"[..]) {
        return Some((None, path));
    }
    Some((Some((number(added)?, number(removed)?)), path))
}

fn number(digits: &[u8]) -> Option<u64> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(unix)]
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(not(unix))]
fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}
