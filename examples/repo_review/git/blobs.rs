//! The content of files, through one `git cat-file` pipe.

use std::io::{BufRead as _, Read as _, Write as _};
use std::process::ChildStdin;

use super::{GitError, Running, number};

/// Bytes of one file that are read. What is longer is read to here, and the review says so.
pub(crate) const READ_MAX: u64 = 1024 * 1024;

/// Bytes of a header line: an id, a type and a size.
const HEADER_MAX: u64 = 1024;

/// What came of asking for a blob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    /// All of it is in the buffer.
    Whole,
    /// The first [`READ_MAX`] bytes are in the buffer.
    Start,
    /// The repository does not have it (a partial clone, or a damaged one).
    Missing,
}

/// A running `git cat-file --batch`.
#[derive(Debug)]
pub(crate) struct Blobs {
    running: Running,
    stdin: Option<ChildStdin>,
    header: Vec<u8>,
}

impl Blobs {
    pub(super) fn new(mut running: Running) -> Self {
        let stdin = running.take_stdin();
        Self {
            running,
            stdin,
            header: Vec::new(),
        }
    }

    /// Reads the blob `id` into `buffer`, which is emptied first.
    pub(crate) fn read(&mut self, id: &str, buffer: &mut Vec<u8>) -> Result<Content, GitError> {
        buffer.clear();
        self.ask(id)?;
        let Some(size) = self.size()? else {
            return Ok(Content::Missing);
        };
        let wanted = size.min(READ_MAX);
        let got = (&mut self.running.stdout).take(wanted).read_to_end(buffer);
        let got = got.map_err(|error| self.running.read_error(error))?;
        if u64::try_from(got).unwrap_or(u64::MAX) < wanted {
            return Err(self.cut_off());
        }
        self.pass_over(size - wanted + 1)?; // the rest, and the line break that ends every blob
        Ok(if wanted == size { Content::Whole } else { Content::Start })
    }

    /// Ends the pipe and says whether it went well.
    pub(crate) fn finish(mut self) -> Result<(), GitError> {
        self.stdin = None; // closed, so that the command ends
        self.running.finish()
    }

    fn ask(&mut self, id: &str) -> Result<(), GitError> {
        let Some(stdin) = self.stdin.as_mut() else {
            return Err(self.running.read_error(std::io::ErrorKind::BrokenPipe.into()));
        };
        // One write: a line that came in two would be two wake-ups of the command.
        let sent = stdin.write_all(format!("{id}\n").as_bytes());
        sent.map_err(|error| self.running.read_error(error))
    }

    fn size(&mut self) -> Result<Option<u64>, GitError> {
        self.header.clear();
        let read = (&mut self.running.stdout)
            .take(HEADER_MAX)
            .read_until(b'\n', &mut self.header);
        if read.map_err(|error| self.running.read_error(error))? == 0 {
            return Err(self.cut_off());
        }
        let header = self.header.trim_ascii_end();
        if header.ends_with(b" missing") {
            return Ok(None);
        }
        let size = header.rsplit(|byte| *byte == b' ').next().and_then(number);
        size.map(Some).ok_or_else(|| self.running.malformed(header))
    }

    fn pass_over(&mut self, bytes: u64) -> Result<(), GitError> {
        let copied = std::io::copy(&mut (&mut self.running.stdout).take(bytes), &mut std::io::sink());
        let copied = copied.map_err(|error| self.running.read_error(error))?;
        if copied == bytes { Ok(()) } else { Err(self.cut_off()) }
    }

    fn cut_off(&mut self) -> GitError {
        self.stdin = None; // or the command would wait for more
        self.running.cut_off()
    }
}
