//! `neuron log`: the log itself, as a stream.

use futures::executor::block_on;
use neuron::{
    Envelope, Ledger, Pattern, Topic,
    envelope::Kind,
    ledger::Reading,
    store::{Row, Select},
};
use serde::Serialize;

use super::{
    console::Console,
    line::Lines,
    moment,
    outcome::{Failure, Outcome},
};

/// Arguments of `log`.
#[derive(Clone, Debug, clap::Args)]
pub struct Log {
    /// A topic or a pattern: `*` is one segment, a last `**` any number of them; topics of the engine ($…) must be named.
    /// Without one: the whole store
    #[arg(value_name = "TOPIC|PATTERN")]
    topic: Option<Pattern>,
    /// Only this type; `step.*` means all of a family. May be given several times
    #[arg(long = "type", value_name = "TYPE")]
    kinds: Vec<KindFilter>,
    /// From this moment on: RFC 3339, 2026-11-30 (its first moment), 10m or 2h ago, or milliseconds since the epoch
    #[arg(long, value_name = "T")]
    since: Option<String>,
    /// Up to and with this moment
    #[arg(long, value_name = "T", conflicts_with = "follow")]
    until: Option<String>,
    /// Go on with what is committed from now on, by any process
    #[arg(long, short, conflicts_with = "reverse")]
    follow: bool,
    /// At most this many
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<u64>,
    /// Newest first
    #[arg(long, short)]
    reverse: bool,
}

/// A type, or a family of types.
#[derive(Clone, Debug)]
enum KindFilter {
    One(Kind),
    Family(Pattern),
}

impl std::str::FromStr for KindFilter {
    type Err = neuron::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(['*', '>']) {
            Pattern::new(text).map(Self::Family)
        } else {
            Kind::new(text).map(Self::One)
        }
    }
}

impl KindFilter {
    fn matches(&self, kind: &Kind) -> bool {
        match self {
            Self::One(one) => one == kind,
            Self::Family(family) => Topic::new(kind.as_str()).is_ok_and(|kind| family.matches(&kind)),
        }
    }
}

/// An envelope as `--json` shows it: the record with its id, and its place in the store.
#[derive(Debug, Serialize)]
pub(super) struct Placed<'a> {
    pos: u64,
    #[serde(flatten)]
    envelope: &'a Envelope,
}

impl<'a> Placed<'a> {
    pub(super) fn new(envelope: &'a Envelope) -> Self {
        Self {
            pos: envelope.pos,
            envelope,
        }
    }
}

/// Where a stream stands: its columns, and how many more are wanted.
struct Stream {
    lines: Option<Lines>,
    left: u64,
}

impl Log {
    /// Whether it goes on with what is committed from now on.
    pub(super) fn follows(&self) -> bool {
        self.follow
    }

    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let mut stream = Stream {
            lines: None,
            left: self.limit.unwrap_or(u64::MAX),
        };
        if self.follow {
            return self.follow(ledger, console, &mut stream);
        }
        if let Some(topic) = self.topic.as_ref().and_then(Pattern::literal)
            && ledger.store().head(&topic)? == 0
        {
            return Err(Failure::Negative(format!(
                "topic {topic} holds nothing in this store (`neuron topics` lists those that do)"
            )));
        }
        let mut reading = self.begin(ledger, console)?;
        if let Some(until) = &self.until {
            reading = reading.until(moment::parse(until, console.now(), console.local())?)?;
        }
        if self.reverse {
            reading = reading.newest_first();
        }
        self.print(reading, console, &mut stream)
    }

    /// What stands, then each commit as it comes.
    fn follow(&self, ledger: &Ledger, console: &mut Console<'_>, stream: &mut Stream) -> Outcome {
        let mut tail = ledger.store().tail();
        let mut upto = *tail.borrow_and_update();
        let mut reading = self.begin(ledger, console)?.to(upto);
        loop {
            self.print(reading, console, stream)?;
            console.flush()?;
            if stream.left == 0 {
                return Ok(());
            }
            while *tail.borrow_and_update() <= upto {
                if block_on(tail.changed()).is_err() {
                    return Ok(());
                }
            }
            let from = upto + 1;
            upto = *tail.borrow();
            reading = ledger.read(self.select()).from(from).to(upto);
        }
    }

    fn begin(&self, ledger: &Ledger, console: &Console<'_>) -> Outcome<Reading> {
        let reading = ledger.read(self.select());
        Ok(match &self.since {
            Some(since) => reading.since(moment::parse(since, console.now(), console.local())?)?,
            None => reading,
        })
    }

    /// What the store is asked for; the rest is sorted out here.
    fn select(&self) -> Select {
        match (&self.topic, self.kinds.as_slice()) {
            (Some(pattern), _) if pattern.literal().is_some() => pattern.literal().map_or(Select::All, Select::Topic),
            (_, [KindFilter::One(kind)]) => Select::Kind(kind.clone()),
            (Some(pattern), _) => Select::Pattern(pattern.clone()),
            (None, _) => Select::All,
        }
    }

    fn wants(&self, row: &Row) -> bool {
        let kind = self.kinds.is_empty() || self.kinds.iter().any(|filter| filter.matches(&row.kind));
        kind && self.topic.as_ref().is_none_or(|pattern| pattern.matches(&row.topic))
    }

    /// Page by page, so that memory stays constant.
    fn print(&self, mut reading: Reading, console: &mut Console<'_>, stream: &mut Stream) -> Outcome {
        while stream.left > 0 {
            let rows = reading.page()?;
            if rows.is_empty() {
                break;
            }
            let wanted = rows.iter().filter(|row| self.wants(row));
            let wanted = wanted.take(usize::try_from(stream.left).unwrap_or(usize::MAX));
            let page = wanted.map(Row::checked).collect::<Result<Vec<_>, _>>()?;
            stream.left -= page.len() as u64;
            if console.is_json() {
                page.iter().try_for_each(|it| console.json(&Placed::new(it)))?;
            } else if !page.is_empty() {
                let lines = stream.lines.get_or_insert_with(|| Lines::for_page(&page, console));
                page.iter().try_for_each(|it| lines.print(it, console))?;
            }
        }
        Ok(())
    }
}
