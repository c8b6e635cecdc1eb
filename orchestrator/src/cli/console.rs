//! Where a command writes, and what it knows of whoever reads.

use std::{
    env, fmt, io,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::tz::TimeZone;
use neuron::{Clock, Error, Millis, Result, SystemClock, def::Registry, schema::Upcasters, scope::State};
use serde::Serialize;

use super::{
    outcome::Outcome,
    text::{self, clean},
};
use crate::shell::{Builder, builder::program_name};

/// Where a command writes, and what it knows of its surroundings. Everything that differs between a terminal, a pipe and
/// a test is here.
pub struct Console<'a> {
    out: &'a mut (dyn Write + 'a),
    err: &'a mut (dyn Write + 'a),
    width: Option<u16>,
    colour: bool,
    json: bool,
    zone: TimeZone,
    clock: Arc<dyn Clock>,
    folder: PathBuf,
    store: Option<PathBuf>,
    /// The code of the program that this is part of, until it is asked for.
    program: Option<Builder>,
}

impl<'a> Console<'a> {
    /// A console that is no terminal: plain text of any width. The zone, the clock, the folder and `NEURON_STORE` are
    /// those of the process.
    pub fn new(out: &'a mut (dyn Write + 'a), err: &'a mut (dyn Write + 'a)) -> Self {
        Self {
            out,
            err,
            width: None,
            colour: false,
            json: false,
            zone: TimeZone::system(),
            clock: Arc::new(SystemClock),
            folder: PathBuf::from("."),
            store: env::var_os("NEURON_STORE")
                .filter(|path| !path.is_empty())
                .map(PathBuf::from),
            program: None,
        }
    }

    /// A terminal of this many columns, in colour or not.
    #[must_use]
    pub fn terminal(mut self, columns: u16, colour: bool) -> Self {
        self.width = Some(columns.max(40));
        self.colour = colour;
        self
    }

    /// The zone that moments are shown and read in.
    #[must_use]
    pub fn zone(mut self, zone: TimeZone) -> Self {
        self.zone = zone;
        self
    }

    /// The clock that `10m` ago is counted from, and that stamps orders.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The folder in which a store is looked for.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = folder.into();
        self
    }

    /// The store that is meant when none is named; in place of `NEURON_STORE`.
    #[must_use]
    pub fn store(mut self, path: Option<PathBuf>) -> Self {
        self.store = path;
        self
    }

    /// The code and the state that `replay` drives runs with; all that is linked, without any state, unless said
    /// otherwise.
    ///
    /// ```
    /// use orchestrator::{Neuron, cli::Console};
    ///
    /// struct Prices(u64);
    /// let (mut out, mut err) = (Vec::new(), Vec::new());
    /// let console = Console::new(&mut out, &mut err).program(Neuron::builder().state(Prices(5)));
    /// # drop(console);
    /// ```
    #[must_use]
    pub fn program(mut self, builder: Builder) -> Self {
        self.program = Some(builder);
        self
    }

    /// What the log calls the program that mounts the commands.
    pub(super) fn build(&self) -> String {
        self.program.as_ref().map_or_else(program_name, Builder::name_of_build)
    }

    /// The code and the state of the program.
    pub(super) fn code(&mut self) -> Result<((Registry, Upcasters), State), Error> {
        let mut builder = self.program.take().unwrap_or_default();
        Ok((builder.code()?, builder.shared()))
    }

    pub(super) fn coloured(&mut self, colour: bool) {
        self.colour = colour;
    }

    pub(super) fn machine(&mut self, json: bool) {
        self.json = json;
    }

    /// Whether answers are JSON.
    pub(super) fn is_json(&self) -> bool {
        self.json
    }

    /// Columns of the terminal; `None` if it is none.
    pub(super) fn columns(&self) -> Option<usize> {
        self.width.map(usize::from)
    }

    pub(super) fn is_coloured(&self) -> bool {
        self.colour
    }

    pub(super) fn home(&self) -> &Path {
        &self.folder
    }

    pub(super) fn named_store(&self) -> Option<&Path> {
        self.store.as_deref()
    }

    pub(super) fn local(&self) -> &TimeZone {
        &self.zone
    }

    pub(super) fn ticking(&self) -> Arc<dyn Clock> {
        self.clock.clone()
    }

    pub(super) fn now(&self) -> Millis {
        self.clock.now()
    }

    /// A text in a colour, if colours are wanted. The text is made harmless first.
    pub(super) fn paint(&self, paint: Paint, text: &str) -> String {
        let text = clean(text);
        match paint.code().filter(|_| self.colour && !text.is_empty()) {
            Some(code) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            None => text.into_owned(),
        }
    }

    /// One line for a person; what steers a terminal in it must have been made harmless.
    pub(super) fn line(&mut self, line: &str) -> Outcome {
        writeln!(self.out, "{}", line.trim_end())?;
        Ok(())
    }

    /// A paragraph for a person, broken between words where the terminal ends.
    pub(super) fn prose(&mut self, sentence: &str) -> Outcome {
        let sentence = clean(sentence).into_owned();
        match self.columns() {
            Some(columns) => text::wrap(&sentence, columns)
                .iter()
                .try_for_each(|line| self.line(line)),
            None => self.line(&sentence),
        }
    }

    /// One JSON value on one line.
    pub(super) fn json(&mut self, value: &(impl Serialize + ?Sized)) -> Outcome {
        serde_json::to_writer(&mut *self.out, value).map_err(io::Error::from)?;
        writeln!(self.out)?;
        Ok(())
    }

    /// Bytes as they are.
    pub(super) fn raw(&mut self, bytes: &[u8]) -> Outcome {
        Ok(self.out.write_all(bytes)?)
    }

    /// Lets the reader see what was written so far.
    pub(super) fn flush(&mut self) -> Outcome {
        Ok(self.out.flush()?)
    }

    /// A sentence beside the answer. If nobody hears it, there is nobody to tell.
    pub(super) fn say(&mut self, sentence: &str) {
        let lines: Vec<_> = sentence.lines().map(clean).collect();
        let _ = writeln!(self.err, "{}", lines.join("\n"));
    }

    /// What the parser of arguments says, to the one side or the other.
    pub(super) fn parser(&mut self, styled: &clap::builder::StyledStr, fault: bool) {
        let text = if self.colour {
            styled.ansi().to_string()
        } else {
            styled.to_string()
        };
        let side = if fault { &mut *self.err } else { &mut *self.out };
        let _ = side.write_all(text.as_bytes());
    }
}

impl fmt::Debug for Console<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            width, colour, folder, ..
        } = self;
        f.debug_struct("Console")
            .field("width", width)
            .field("colour", colour)
            .field("folder", folder)
            .finish_non_exhaustive()
    }
}

/// What a colour is to say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Paint {
    /// Nothing.
    #[default]
    Plain,
    /// The name of something.
    Strong,
    /// There if it is needed.
    Faint,
    /// A kind or a type.
    Kind,
    /// It went well.
    Good,
    /// It goes on, or waits.
    Open,
    /// It went wrong.
    Bad,
}

impl Paint {
    fn code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("1"),
            Self::Faint => Some("2"),
            Self::Kind => Some("36"),
            Self::Good => Some("32"),
            Self::Open => Some("33"),
            Self::Bad => Some("31"),
        }
    }
}
