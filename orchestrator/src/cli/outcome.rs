//! How a command ends.

use std::{io, process::ExitCode};

use neuron::{Error, ErrorKind};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// The question was answered, the order was given: 0.
    Success,
    /// The answer is no: not found, not intact, not an extension: 1.
    Negative,
    /// The question was wrong, or something is broken: 2.
    Fault,
}

impl Exit {
    /// The number that the process ends with.
    pub fn code(self) -> u8 {
        match self {
            Self::Success => 0,
            Self::Negative => 1,
            Self::Fault => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

/// Why a command did not end well.
#[derive(Debug)]
pub(super) enum Failure {
    /// The answer is no; the sentence says what is not there.
    Negative(String),
    /// The answer is no, and has been written in full.
    Answered,
    /// What was asked about is damaged, and that has been written in full.
    Broken,
    /// The question is wrong; the sentence says how to ask.
    Usage(String),
    /// Something is broken.
    Fault(Error),
    /// Nobody reads the answer any more, which is no failure of ours.
    Closed,
}

pub(super) type Outcome<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Fault(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::Closed;
        }
        Self::Fault(Error::new(
            ErrorKind::Io,
            format!("the output cannot be written: {error}"),
        ))
    }
}
