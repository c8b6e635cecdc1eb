//! `neuron pause`, `resume` and `cancel`: orders from outside, on the log.

use std::collections::BTreeMap;

use neuron::{
    Append, Author, ErrorKind, Ledger, Receipt, RunId, TokenId, Topic,
    store::Select,
    token::Control,
    topic::catalog,
    vocabulary::{
        Message,
        control::{ControlCancelled, ControlPaused, ControlResumed},
        orchestration::{
            OrchestrationCancelled, OrchestrationCompleted, OrchestrationCreated, OrchestrationFailed, PackageAssigned,
        },
        step::{ThreadCompleted, ThreadFailed, ThreadStarted},
    },
};
use serde::Serialize;

use super::{
    console::Console,
    moment,
    outcome::{Failure, Outcome},
    text::{SHORT, means, short},
};

/// Arguments of `pause`, `resume` and `cancel`.
#[derive(Clone, Debug, clap::Args)]
pub struct Order {
    /// A run (`neuron runs`), or the token of one package (`neuron board RUN`)
    #[arg(value_name = "RUN|TOKEN")]
    whom: String,
    /// Only this thread of the package, and what is below it: its name, or its key or the first digits of it
    #[arg(long, value_name = "THREAD")]
    thread: Option<String>,
    #[command(flatten)]
    reason: Reason,
}

/// Who gives an order, and why.
#[derive(Clone, Debug, clap::Args)]
pub struct Reason {
    /// The reason, for whoever reads the log
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
    /// Sign as this person (`human:NAME`) in place of `cli`
    #[arg(long = "as", value_name = "NAME")]
    person: Option<String>,
}

impl Reason {
    pub(super) fn because(&self) -> Option<String> {
        self.because.clone()
    }

    pub(super) fn author(&self) -> Outcome<Author> {
        match &self.person {
            Some(name) => Author::human(name).map_err(|error| Failure::Usage(error.to_string())),
            None => Ok(Author::cli()),
        }
    }
}

/// What an order says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// Start nothing more.
    Pause,
    /// Go on.
    Resume,
    /// Stop for good.
    Cancel,
}

/// Who is to follow it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Whom {
    /// A whole run.
    Run(RunId),
    /// One package attempt.
    Token(TokenId),
}

impl Whom {
    /// Where orders for it stand.
    fn topic(&self) -> Topic {
        match self {
            Self::Run(run) => catalog::run_control(run),
            Self::Token(token) => catalog::control(token),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    topic: Topic,
    seq: u64,
    id: neuron::Digest,
    pos: u64,
    at: neuron::Millis,
}

impl From<&Receipt> for Told {
    fn from(receipt: &Receipt) -> Self {
        Self {
            topic: receipt.topic.clone(),
            seq: receipt.seq,
            id: receipt.id,
            pos: receipt.pos,
            at: receipt.at,
        }
    }
}

impl Order {
    pub(super) fn run(&self, verb: Verb, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let whom = whom(ledger, &self.whom)?;
        let thread = match &self.thread {
            Some(thread) => Some(meant(ledger, &whom, thread)?),
            None => None,
        };
        let orders = ledger.fold(&Control::new(whom.topic()), None)?.state;
        let of_thread = thread.as_ref().and_then(|thread| orders.threads.get(thread));
        let cancelled = of_thread
            .and_then(|orders| orders.cancelled.clone())
            .map(|why| (why, self.thread.as_ref()));
        if let Some((because, thread)) = orders.cancelled.map(|why| (why, None)).or(cancelled) {
            let because = because.map_or_else(String::new, |because| format!(" ({because})"));
            return Err(Failure::Negative(format!(
                "`{}` was cancelled already{because}, and a cancel is final",
                thread.unwrap_or(&self.whom)
            )));
        }
        let because = self.reason.because();
        match verb {
            Verb::Pause => give(&ControlPaused { because, thread }, &whom, &self.reason, ledger, console),
            Verb::Resume => give(
                &ControlResumed { because, thread },
                &whom,
                &self.reason,
                ledger,
                console,
            ),
            Verb::Cancel => give(
                &ControlCancelled { because, thread },
                &whom,
                &self.reason,
                ledger,
                console,
            ),
        }
    }
}

/// The key of the one thread of a package that is meant, by its name or the beginning of its key.
fn meant(ledger: &Ledger, whom: &Whom, thread: &str) -> Outcome<String> {
    let Whom::Token(token) = whom else {
        return Err(Failure::Usage(
            "a thread belongs to one package: name that by its token (`neuron board RUN`)".into(),
        ));
    };
    let mut threads: BTreeMap<String, (String, bool)> = BTreeMap::new();
    for envelope in ledger.read(Select::Topic(catalog::steps(token))).envelopes() {
        let envelope = envelope?;
        if let Some(started) = ThreadStarted::read(&envelope)? {
            threads.insert(started.key, (started.name, true));
        } else if let Some(completed) = ThreadCompleted::read(&envelope)? {
            threads.insert(completed.key, (completed.name, false));
        } else if let Some(failed) = ThreadFailed::read(&envelope)? {
            threads.insert(failed.key, (failed.name, false));
        }
    }
    let is_meant = |(key, (name, _)): &(&String, &(String, bool))| *name == thread || means(thread, key);
    let known: Vec<_> = threads.iter().filter(is_meant).collect();
    let going_on: Vec<_> = known.iter().filter(|(_, (_, goes_on))| *goes_on).collect();
    match going_on[..] {
        [(key, _)] => Ok((*key).clone()),
        [] if !known.is_empty() => Err(Failure::Negative(format!(
            "thread `{}` of {token} has ended: there is nothing left to order",
            thread.escape_debug()
        ))),
        _ => {
            let lines: Vec<_> = threads
                .iter()
                .filter(|(_, (_, goes_on))| *goes_on)
                .map(|(key, (name, _))| format!("\n  {}  {}", short(key), name.escape_debug()))
                .collect();
            let thread = thread.escape_debug();
            Err(Failure::Negative(match (going_on.is_empty(), lines.is_empty()) {
                (false, _) => format!(
                    "`{thread}` may be any of several threads of {token}: give a key{}",
                    lines.concat()
                ),
                (true, true) => format!("no thread of {token} goes on"),
                (true, false) => format!(
                    "there is no thread `{thread}` of {token}; these go on:{}",
                    lines.concat()
                ),
            }))
        }
    }
}

/// Puts an order on the log, and says where it stands.
pub(super) fn give<M: Message>(
    order: &M,
    whom: &Whom,
    reason: &Reason,
    ledger: &Ledger,
    console: &mut Console<'_>,
) -> Outcome {
    let draft = order.draft(whom.topic(), reason.author()?)?;
    let receipts = ledger.append_blocking(Append::of([draft]))?;
    let Some(receipt) = receipts.first() else {
        return Err(neuron::Error::new(ErrorKind::Corrupt, "the store gave no receipt").into());
    };
    told(M::TYPE, receipt, console)
}

/// Says where an order stands.
pub(super) fn told(kind: &str, receipt: &Receipt, console: &mut Console<'_>) -> Outcome {
    if console.is_json() {
        return console.json(&Told::from(receipt));
    }
    let id = receipt.id.to_string();
    let when = moment::full(receipt.at, console.local());
    let line = format!(
        "{kind} is on the log: {}@{}  {}  {when}",
        receipt.topic,
        receipt.seq,
        &id[..SHORT]
    );
    console.prose(&line)
}

/// The run or token that a name means; one that has ended takes no orders.
fn whom(ledger: &Ledger, name: &str) -> Outcome<Whom> {
    if let Some(run) = run(ledger, name)? {
        if let Some(end) = end(ledger, &run)? {
            return Err(Failure::Negative(format!(
                "run {run} has ended ({end}): there is nothing left to order"
            )));
        }
        return Ok(Whom::Run(run));
    }
    if let Some(token) = token(ledger, name)? {
        return Ok(Whom::Token(token));
    }
    let known = runs(ledger)?;
    let hint = match known.as_slice() {
        [] => "it holds no run".into(),
        some => format!("its runs are {}", some.join(", ")),
    };
    Err(Failure::Negative(format!(
        "there is no run or token `{}` in this store: {hint} (`neuron runs`, and `neuron board RUN` for tokens)",
        name.escape_debug()
    )))
}

/// The run of this name, if there is one.
pub(super) fn run(ledger: &Ledger, name: &str) -> Outcome<Option<RunId>> {
    let Ok(run) = RunId::new(name) else { return Ok(None) };
    let exists = ledger.store().head(&catalog::lifecycle(&run))? > 0;
    Ok(exists.then_some(run))
}

/// How a run has ended, if it has.
fn end(ledger: &Ledger, run: &RunId) -> Outcome<Option<&'static str>> {
    let ends = [
        (OrchestrationCompleted::TYPE, "completed"),
        (OrchestrationFailed::TYPE, "failed"),
        (OrchestrationCancelled::TYPE, "cancelled"),
    ];
    let mut last = ledger
        .read(Select::Topic(catalog::lifecycle(run)))
        .newest_first()
        .limit(16);
    let rows = last.page()?;
    let found = rows
        .iter()
        .find_map(|row| ends.iter().find(|(kind, _)| row.kind == *kind));
    Ok(found.map(|(_, how)| *how))
}

/// The token of this name, if it was ever given to a package.
fn token(ledger: &Ledger, name: &str) -> Outcome<Option<TokenId>> {
    let Ok(token) = TokenId::new(name) else { return Ok(None) };
    for topic in [catalog::plan(&token), catalog::steps(&token)] {
        if ledger.store().head(&topic)? > 0 {
            return Ok(Some(token));
        }
    }
    // It may not have said anything yet.
    let assigned = Select::Kind(neuron::Kind::new(PackageAssigned::TYPE)?);
    for envelope in ledger.read(assigned).newest_first().envelopes() {
        if PackageAssigned::read(&envelope?)?.is_some_and(|package| package.token == token) {
            return Ok(Some(token));
        }
    }
    Ok(None)
}

/// The last runs, newest first; enough to find a slip of the pen.
fn runs(ledger: &Ledger) -> Outcome<Vec<String>> {
    let created = Select::Kind(neuron::Kind::new(OrchestrationCreated::TYPE)?);
    let rows = ledger.read(created).newest_first().limit(10).page()?;
    let name = |topic: &Topic| topic.segments().nth(1).map(str::to_owned);
    Ok(rows.iter().filter_map(|row| name(&row.topic)).collect())
}

/// The run of this name, or a sentence that says which there are.
pub(super) fn known_run(ledger: &Ledger, name: &str) -> Outcome<RunId> {
    match run(ledger, name)? {
        Some(run) => Ok(run),
        None => Err(no_run(ledger, name)?),
    }
}

/// The sentence that says which runs there are.
pub(super) fn no_run(ledger: &Ledger, name: &str) -> Outcome<Failure> {
    let known = match runs(ledger)?.as_slice() {
        [] => "it holds no run yet".into(),
        some => format!("the last ones are {} (`neuron runs` lists all)", some.join(", ")),
    };
    let name = name.escape_debug();
    Ok(Failure::Negative(format!(
        "there is no run `{name}` in this store: {known}"
    )))
}
