//! Every file's content, one after the other.

use super::{Content, Entry, GitError, Kind, Progress, Reader};

/// Bytes above which a file is not even opened: Git would have to send all of it for its first part.
const OPEN_MAX: u64 = 64 * 1024 * 1024;

/// One file with what was read of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct File<'a> {
    /// Where it is.
    pub(crate) path: &'a [u8],
    /// Its bytes, all of them.
    pub(crate) size: u64,
    /// What was read: the whole, or its first [`READ_MAX`](super::READ_MAX) bytes.
    pub(crate) bytes: &'a [u8],
}

/// How much of what was asked for was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// Files read, at least in part.
    pub(crate) files: u64,
    /// Of those, files read only at their start.
    pub(crate) cut: u64,
    /// Files too large to open, or that the repository does not have.
    pub(crate) unread: u64,
}

impl Reader {
    /// Reads those files of `commit` that `wanted` names, in the order of their names, and gives each to `read`.
    /// Symbolic links and submodules are passed over. `progress` gets the number of entries passed.
    pub(crate) fn contents(
        &self,
        commit: &str,
        progress: Progress<'_>,
        wanted: impl Fn(&Entry<'_>) -> bool,
        mut read: impl FnMut(File<'_>),
    ) -> Result<Read, GitError> {
        let mut tree = self.tree(commit)?;
        let mut blobs = self.blobs()?;
        let (mut buffer, mut done, mut passed) = (Vec::new(), Read::default(), 0);
        while let Some(entry) = tree.next()? {
            passed += 1;
            progress(passed)?;
            if entry.kind != Kind::File || !wanted(&entry) {
                continue;
            }
            if entry.size > OPEN_MAX {
                done.unread += 1;
                continue;
            }
            match blobs.read(entry.id, &mut buffer)? {
                Content::Missing => {
                    done.unread += 1;
                    continue;
                }
                Content::Start => done.cut += 1,
                Content::Whole => {}
            }
            done.files += 1;
            read(File {
                path: entry.path,
                size: entry.size,
                bytes: &buffer,
            });
        }
        blobs.finish()?;
        tree.finish()?;
        Ok(done)
    }
}

/// Whether bytes are those of a binary file: Git's own rule, a NUL near the start.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(8000)].contains(&0)
}
