//! The write-ahead log, frame by frame, as the file format of SQLite describes it.
//!
//! SQLite takes the log to end before the first frame whose checksum does not fit, and says nothing about what stands
//! behind it. So a changed byte there would make commits vanish in silence; here they are found.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::Path,
};

use super::connect::log_of;
use crate::{Error, ErrorKind, Result};

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
/// The first word of a log; its last bit says in which order the words of checksums are read.
const MAGIC: u32 = 0x377f_0682;
/// Bytes of a page of a store.
const PAGE: usize = 4_096;
/// Looks at a log that others may be writing: what is only half written at one look is whole at the next.
const LOOKS: usize = 3;

/// Where a log breaks off although it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Break {
    /// The first frame that is not what was written, from 1; 0 = the head of the log.
    pub(super) frame: u64,
    /// Commits that stand behind it.
    pub(super) commits: u64,
}

/// The log of a store that breaks off before its end; nothing if it does not, or if there is none.
///
/// # Errors
/// [`ErrorKind::Corrupt`] with what is lost; a kind of the disk.
pub(crate) fn whole(store: &Path) -> Result<(), Error> {
    let path = log_of(store);
    let failed = |error: io::Error| Error::from(error).context(format!("{} cannot be read", path.display()));
    let Some(Break { frame, commits }) = stable(&path).map_err(failed)? else {
        return Ok(());
    };
    let place = match frame {
        0 => "its head is".to_owned(),
        frame => format!("its frame {frame} is"),
    };
    let readable = match frame {
        0 => "a copy of the file alone, without this log",
        _ => "the store that `neuron backup` makes of what can be read",
    };
    let (commits, stand) = match commits {
        1 => ("a commit".to_owned(), "stands"),
        commits => (format!("{commits} commits"), "stand"),
    };
    let why = format!(
        "the write-ahead log {} is damaged, or was not yet on the disk when the power failed: {place} not what was \
         written, and {commits} that nobody can read {stand} behind it. It is not written to, which would overwrite them: go on in a \
         backup, or in {readable}",
        path.display()
    );
    Err(Error::new(ErrorKind::Corrupt, why))
}

/// The same for the head of the log alone, which is read at once. SQLite takes a log whose head it cannot read for none, or
/// waits for whoever writes it.
///
/// # Errors
/// As [`whole`].
pub(super) fn headed(store: &Path) -> Result<(), Error> {
    let mut header = [0; HEADER];
    let read = File::open(log_of(store)).and_then(|mut log| filled(&mut log, &mut header));
    match read {
        Ok(true) if !is_head(&header) => whole(store),
        // What cannot be read is told by whoever needs it.
        _ => Ok(()),
    }
}

fn is_head(header: &[u8; HEADER]) -> bool {
    let sum = Sum::default().take(&header[..24], number(header, 0) & 1 == 1);
    number(header, 0) & !1 == MAGIC && sum.is(&header[24..])
}

/// The break that every look finds at the same place.
fn stable(path: &Path) -> io::Result<Option<Break>> {
    let mut known = None;
    for _ in 0..LOOKS {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let Some(found) = scan(BufReader::with_capacity(1 << 16, file))? else {
            return Ok(None);
        };
        let place = |(salts, at): &([u8; 8], Break)| (*salts, at.frame);
        if known.as_ref().is_some_and(|known| place(known) != place(&found)) {
            // It was begun anew meanwhile, or has grown past that frame: somebody writes to it, and it is whole.
            return Ok(None);
        }
        known = Some(found);
    }
    Ok(known.map(|(_, at)| at))
}

/// The running checksum of a log.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Sum(u32, u32);

impl Sum {
    fn take(self, bytes: &[u8], big: bool) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |word: [u8; 4]| {
            if big {
                u32::from_be_bytes(word)
            } else {
                u32::from_le_bytes(word)
            }
        };
        let (pairs, _) = words.as_chunks::<2>();
        pairs.iter().fold(self, |Self(first, second), [one, other]| {
            let first = first.wrapping_add(word(*one)).wrapping_add(second);
            Self(first, second.wrapping_add(word(*other)).wrapping_add(first))
        })
    }

    fn is(self, bytes: &[u8]) -> bool {
        bytes == [self.0.to_be_bytes(), self.1.to_be_bytes()].concat()
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .fold(0, |number, byte| number << 8 | u32::from(*byte))
}

/// Reads a log to its end: the salts of its present generation, and where it breaks off, if commits of that generation
/// stand behind.
fn scan(mut log: impl Read) -> io::Result<Option<([u8; 8], Break)>> {
    let mut header = [0; HEADER];
    if !filled(&mut log, &mut header)? {
        return Ok(None);
    }
    let big = number(&header, 0) & 1 == 1;
    let mut sum = Sum::default().take(&header[..24], big);
    let mut broken = (!is_head(&header)).then_some(0);
    // Of a head that is damaged the first frame tells the generation.
    let mut salts: Option<[u8; 8]> = broken.is_none().then(|| salts_of(&header[16..]));
    let page = usize::try_from(number(&header, 8)).unwrap_or(0);
    let is_size = page.is_power_of_two() && (512..=65_536).contains(&page);
    // Of a head that is damaged the size is not believed: a store is made with this one.
    let page = if is_size && broken.is_none() { page } else { PAGE };
    let (mut frame, mut commits) = (vec![0; FRAME_HEADER + page], 0);
    for place in 1.. {
        if !filled(&mut log, &mut frame)? {
            break;
        }
        let current = *salts.get_or_insert_with(|| salts_of(&frame[8..])) == salts_of(&frame[8..]);
        if broken.is_none() {
            let next = sum.take(&frame[..8], big).take(&frame[FRAME_HEADER..], big);
            if current && next.is(&frame[16..FRAME_HEADER]) {
                sum = next;
                continue;
            }
            broken = Some(place);
        }
        commits += u64::from(current && number(&frame, 4) != 0);
    }
    let at = broken.filter(|_| commits > 0).map(|frame| Break { frame, commits });
    Ok(salts.zip(at))
}

fn salts_of(bytes: &[u8]) -> [u8; 8] {
    let mut salts = [0; 8];
    salts.copy_from_slice(&bytes[..8]);
    salts
}

/// Whether there was enough to read.
fn filled(log: &mut impl Read, into: &mut [u8]) -> io::Result<bool> {
    match log.read_exact(into) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}
