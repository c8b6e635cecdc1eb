//! The files of a commit, one at a time: their kinds and sizes, or their lines.

use super::{GitError, Running, number, numstat, token};

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A file.
    File,
    /// A symbolic link. It is never followed.
    Symlink,
    /// A submodule: the commit of another repository. It is never entered.
    Submodule,
}

/// One entry of a commit's tree.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    /// Where it is, in bytes, with `/` between the segments.
    pub(crate) path: &'a [u8],
    /// What it is.
    pub(crate) kind: Kind,
    /// The blob's id, or the commit's for a submodule.
    pub(crate) id: &'a str,
    /// Bytes of the content; 0 for a submodule.
    pub(crate) size: u64,
}

/// A stream of a commit's entries, in the order of their names' bytes.
#[derive(Debug)]
pub(crate) struct Tree {
    running: Running,
    token: Vec<u8>,
}

impl Tree {
    pub(super) fn new(running: Running) -> Self {
        Self {
            running,
            token: Vec::new(),
        }
    }

    /// The next entry; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<Entry<'_>>, GitError> {
        if !token(&mut self.running, &mut self.token)? {
            return Ok(None);
        }
        parse(&self.token)
            .map(Some)
            .ok_or_else(|| self.running.malformed(&self.token))
    }

    /// Waits for the end of `git ls-tree` and says whether it went well.
    pub(crate) fn finish(self) -> Result<(), GitError> {
        self.running.finish()
    }
}

fn parse(token: &[u8]) -> Option<Entry<'_>> {
    let tab = token.iter().position(|byte| *byte == b'\t')?;
    let path = &token[tab + 1..];
    let mut parts = token[..tab].split(|byte| *byte == b' ').filter(|part| !part.is_empty());
    let (mode, _type, id, size) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let kind = match mode {
        b"120000" => Kind::Symlink,
        b"160000" => Kind::Submodule,
        _ => Kind::File,
    };
    let size = if size == b"-" { 0 } else { number(size)? };
    Some(Entry {
        path,
        kind,
        id: std::str::from_utf8(id).ok()?,
        size,
    })
}

/// A file's path and how many lines it has; absent if Git takes it for binary.
pub(crate) type FileLines<'a> = (&'a [u8], Option<u64>);

/// A stream of a commit's files with how many lines each has.
#[derive(Debug)]
pub(crate) struct Lines {
    running: Running,
    token: Vec<u8>,
}

impl Lines {
    pub(super) fn new(running: Running) -> Self {
        Self {
            running,
            token: Vec::new(),
        }
    }

    /// The next file; `None` after the last one.
    pub(crate) fn next(&mut self) -> Result<Option<FileLines<'_>>, GitError> {
        if !token(&mut self.running, &mut self.token)? {
            return Ok(None);
        }
        match numstat(&self.token) {
            Some((lines, path)) => Ok(Some((path, lines.map(|(added, _)| added)))),
            None => Err(self.running.malformed(&self.token)),
        }
    }

    /// Waits for the end of `git diff-tree` and says whether it went well.
    pub(crate) fn finish(self) -> Result<(), GitError> {
        self.running.finish()
    }
}
