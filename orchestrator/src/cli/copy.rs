//! `neuron backup`, `export` and `import`: a store elsewhere, whole or in part.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use indicatif::{ProgressBar, ProgressStyle};
use neuron::{
    Error, Ledger, Millis, Pattern,
    store::{Part, export},
};
use serde_json::json;

use super::{
    console::{Console, Paint},
    moment,
    outcome::{Failure, Outcome},
    text::{bytes, count},
};

/// Arguments of `backup`.
#[derive(Clone, Debug, clap::Args)]
pub struct Backup {
    /// Where the copy is made; nothing is overwritten
    #[arg(value_name = "DEST")]
    to: PathBuf,
}

/// Arguments of `export`.
#[derive(Clone, Debug, clap::Args)]
pub struct Export {
    /// Only topics that match; without it all of them, those of the engine included
    #[arg(long, value_name = "PATTERN")]
    topic: Option<Pattern>,
    /// From this moment on: RFC 3339, 2026-11-30 (its first moment), 10m or 2h ago, or milliseconds since the epoch
    #[arg(long, value_name = "T", conflicts_with = "from")]
    since: Option<String>,
    /// Up to and with this moment
    #[arg(long, value_name = "T", conflicts_with = "to")]
    until: Option<String>,
    /// From this pos on
    #[arg(long, value_name = "POS", value_parser = clap::value_parser!(u64).range(1..))]
    from: Option<u64>,
    /// Up to and with this pos
    #[arg(long, value_name = "POS")]
    to: Option<u64>,
}

/// Arguments of `import`.
#[derive(Clone, Debug, clap::Args)]
pub struct Import {
    /// What `neuron export` wrote; `-` is the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The archive that is made of it; nothing is overwritten
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,
}

/// A path as the person who gave it means it.
fn from_home(path: &Path, console: &Console<'_>) -> PathBuf {
    if console.home() == Path::new(".") {
        return path.to_path_buf();
    }
    console.home().join(path)
}

/// A bar where there is a terminal to draw it on; it goes when it is done.
fn bar(console: &Console<'_>, total: Option<u64>, what: &str) -> ProgressBar {
    if console.columns().is_none() || console.is_json() {
        return ProgressBar::hidden();
    }
    let (bar, form) = match total {
        Some(total) => (ProgressBar::new(total), "{msg} {wide_bar} {percent:>3} %"),
        None => (ProgressBar::no_length(), "{msg} {spinner} {binary_bytes}"),
    };
    if let Ok(style) = ProgressStyle::with_template(form) {
        bar.set_style(style);
    }
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

impl Backup {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let to = from_home(&self.to, console);
        let bar = bar(console, Some(0), "copying");
        let copied = ledger.store().backup(&to, &mut |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        });
        bar.finish_and_clear();
        let copied = copied?;
        if console.is_json() {
            return console
                .json(&json!({ "path": to.display().to_string(), "head": copied.head, "bytes": copied.bytes }));
        }
        let envelopes = count(copied.head.pos, "envelope");
        let line = console.paint(Paint::Good, "copied: ") + &format!("{envelopes}, {}", bytes(copied.bytes));
        console.line(&line)?;
        console.line(&format!("head {}", copied.head))?;
        console.say(&format!(
            "it was copied as it stands: `neuron verify --store {}` looks whether that is what was written",
            self.to.display()
        ));
        Ok(())
    }
}

impl Export {
    /// Lines go to the standard output; what a person is told goes beside it.
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let part = self.part(ledger, console)?;
        let ended = export::export(&**ledger.store(), &part, |line| console.raw(line.as_bytes()))?;
        let said = [
            count(ended.envelopes, "envelope"),
            count(ended.schemas, "schema"),
            format!(
                "{} ({})",
                count(ended.artifacts, "artifact"),
                bytes(ended.artifact_bytes)
            ),
        ];
        console.flush()?;
        console.say(&format!("exported: {}", said.join(", ")));
        Ok(())
    }

    fn part(&self, ledger: &Ledger, console: &Console<'_>) -> Outcome<Part> {
        let time = |text: &String| moment::parse(text, console.now(), console.local());
        let upto = |time: Millis| -> Outcome<u64> { Ok(ledger.as_of_time(time)?.store().last()?.0) };
        let from = match &self.since {
            Some(since) => upto(Millis(time(since)?.0.saturating_sub(1)))? + 1,
            None => self.from.unwrap_or(1),
        };
        let to = match &self.until {
            Some(until) => upto(time(until)?)?,
            None => self.to.unwrap_or(u64::MAX),
        };
        if from > to {
            let why = format!("the part from pos {from} to pos {to} holds nothing: turn the ends round");
            return Err(Failure::Usage(why));
        }
        Ok(Part {
            topics: self.topic.clone(),
            from,
            to,
        })
    }
}

impl Import {
    pub(super) fn run(&self, console: &mut Console<'_>) -> Outcome {
        let archive = from_home(&self.archive, console);
        let (read, length): (Box<dyn Read>, _) = if self.file == Path::new("-") {
            (Box::new(io::stdin()), None)
        } else {
            let path = from_home(&self.file, console);
            let fault = |error: io::Error| Error::from(error).context(format!("{} cannot be read", path.display()));
            let file = File::open(&path).map_err(fault)?;
            let length = file.metadata().map_err(fault)?.len();
            (Box::new(file), Some(length))
        };
        let bar = bar(console, length, "importing");
        let imported = export::import(BufReader::new(read), &archive, |bytes| bar.set_position(bytes));
        bar.finish_and_clear();
        let imported = imported?;
        if console.is_json() {
            return console.json(&imported);
        }
        let found = &imported.verified;
        let said = [
            count(found.envelopes, "envelope"),
            count(found.topics, "topic"),
            count(found.schemas, "schema"),
            format!(
                "{} ({})",
                count(found.artifacts, "artifact"),
                bytes(found.artifact_bytes)
            ),
        ];
        let line = console.paint(Paint::Good, "sealed: ") + &said.join(", ");
        console.line(&line)?;
        let part = &imported.archive.part;
        let topics = part
            .topics
            .as_ref()
            .map_or_else(String::new, |topics| format!(", topics {topics}"));
        console.line(&format!(
            "holds pos {} to {}{topics} of a store with head {}",
            part.from, part.to, imported.archive.head
        ))?;
        console.say("read it with `--store ARCHIVE`; nothing can be appended to it");
        Ok(())
    }
}
