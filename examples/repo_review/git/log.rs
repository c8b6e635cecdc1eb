//! The commits and what they changed, one at a time.

use super::{Changed, GitError, Running, number, numstat, token};

/// The arguments of `git log`. Each turns off a setting of the user that would change the numbers; renames stay a
/// removal and an addition, since finding them costs more than the whole rest.
pub(super) const ARGS: &[&str] = &[
    "log",
    "-z",
    "--numstat",
    "--no-renames",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-notes",
    "--no-show-signature",
    "--no-relative",
    "--diff-algorithm=myers",
    "--submodule=short",
    "--encoding=UTF-8",
    "--use-mailmap",
    "--format=tformat:%x00%P%x00%ct%x00%aE%x00%aN",
];

/// One commit, without its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Commit {
    /// How many parents it has: 0 for a root, 2 or more for a merge.
    pub(crate) parents: usize,
    /// When it was committed, in seconds since 1970; 0 if the commit says nothing readable.
    pub(crate) at: i64,
    /// The author's address in lower case, after the commit's own `.mailmap`.
    pub(crate) email: Vec<u8>,
    /// The author's name, after the same.
    pub(crate) name: Vec<u8>,
}

/// A stream of commits, newest first.
#[derive(Debug)]
pub(crate) struct Log {
    running: Running,
    token: Vec<u8>,
    /// Whether `token` holds the start of the next commit or a change, read but not yet used.
    pending: bool,
}

impl Log {
    pub(super) fn new(running: Running) -> Self {
        Self {
            running,
            token: Vec::new(),
            pending: false,
        }
    }

    /// Reads the next commit and calls `change` with each file it changed: path, and lines added and removed (absent
    /// for a binary file). `None` after the last one. A merge shows no changes.
    pub(crate) fn next(&mut self, mut change: impl FnMut(&[u8], Changed)) -> Result<Option<Commit>, GitError> {
        // A commit begins with an empty token; no change is one.
        if !self.read()? {
            return Ok(None);
        }
        if !self.token.is_empty() {
            return Err(self.running.malformed(&self.token));
        }
        let commit = self.commit()?;
        while self.read()? {
            if self.token.is_empty() {
                self.pending = true;
                break;
            }
            // Git parts the header from the first change by a line break, also with `-z`.
            let start = usize::from(self.token[0] == b'\n');
            let Some((lines, path)) = numstat(&self.token[start..]) else {
                return Err(self.running.malformed(&self.token));
            };
            change(path, lines);
        }
        Ok(Some(commit))
    }

    /// Waits for the end of `git log` and says whether it went well.
    pub(crate) fn finish(self) -> Result<(), GitError> {
        self.running.finish()
    }

    fn commit(&mut self) -> Result<Commit, GitError> {
        let parents = self
            .field()?
            .split(|byte| *byte == b' ')
            .filter(|id| !id.is_empty())
            .count();
        let at = self.field()?;
        let at = number(at).and_then(|at| i64::try_from(at).ok()).unwrap_or(0);
        let email = self.field()?.to_ascii_lowercase();
        let name = self.field()?.to_vec();
        Ok(Commit {
            parents,
            at,
            email,
            name,
        })
    }

    fn field(&mut self) -> Result<&[u8], GitError> {
        if token(&mut self.running, &mut self.token)? {
            return Ok(&self.token);
        }
        Err(self.running.cut_off())
    }

    fn read(&mut self) -> Result<bool, GitError> {
        if std::mem::take(&mut self.pending) {
            return Ok(true);
        }
        token(&mut self.running, &mut self.token)
    }
}
