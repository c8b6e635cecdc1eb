//! `neuron consumers`, `consumer` and `redrive`: who handles messages, how far they came, and what they laid aside.

use neuron::{
    ConsumerId, ErrorKind, Ledger, Millis, Topic,
    consumer::{Parked, Progress, Redrive as Which, Standing, Waits},
    store::{Range, Select},
};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    find, moment,
    order::Reason,
    outcome::{Failure, Outcome},
    owner::{self, Owner},
    table::{Cell, Column, Table},
    text::{count, span},
};

/// Arguments of `consumers`.
#[derive(Clone, Debug, clap::Args)]
pub struct Consumers {}

/// Arguments of `consumer`.
#[derive(Clone, Debug, clap::Args)]
pub struct Consumer {
    /// Its name (`neuron consumers`)
    #[arg(value_name = "NAME")]
    name: String,
}

/// Arguments of `redrive`.
#[derive(Clone, Debug, clap::Args)]
#[command(override_usage = "neuron redrive [OPTIONS] <NAME> <POS>\n       neuron redrive [OPTIONS] <NAME> --all")]
pub struct Redrive {
    /// The consumer (`neuron consumers`)
    #[arg(value_name = "NAME")]
    name: String,
    /// The parked message: its POS (`neuron consumer NAME`), or TOPIC@SEQ
    #[arg(value_name = "POS", required_unless_present = "all")]
    message: Option<String>,
    /// All parked messages, oldest first
    #[arg(long, conflicts_with = "message")]
    all: bool,
    #[command(flatten)]
    reason: Reason,
}

/// A consumer and the process that has it open.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    #[serde(flatten)]
    standing: Standing,
    #[serde(skip_serializing_if = "Option::is_none")]
    owner: Option<Owner>,
    /// It is told as it stood at some time.
    #[serde(skip)]
    past: bool,
}

/// A message that is tried again.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Retrying {
    pos: u64,
    topic: Topic,
    seq: u64,
    attempts: u32,
    #[serde(flatten)]
    waits: Waits,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Whole {
    #[serde(flatten)]
    told: Told,
    retrying: Vec<Retrying>,
    parked_messages: Vec<Parked>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Redriven {
    redriven: usize,
    left: usize,
}

impl Told {
    fn of(ledger: &Ledger, standing: Standing) -> Outcome<Self> {
        let owner = owner::of_name(ledger, &format!("consumer:{}", standing.name))?;
        let past = ledger.store().path().is_none();
        Ok(Self { standing, owner, past })
    }

    fn lag(&self) -> String {
        let more = if self.standing.lags_more { "+" } else { "" };
        format!("{}{more}", self.standing.lag)
    }
}

impl Consumers {
    #[allow(clippy::unused_self, reason = "every command is run alike")]
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let consumers = ledger.consumers()?.into_iter();
        let told = consumers.map(|standing| Told::of(ledger, standing));
        let told = told.collect::<Outcome<Vec<_>>>()?;
        if console.is_json() {
            return console.json(&told);
        }
        if told.is_empty() {
            return console.line("this store has no consumer");
        }
        print(&told, console)
    }
}

fn print(told: &[Told], console: &mut Console<'_>) -> Outcome {
    let mut table = Table::new([
        Column::Whole("CONSUMER"),
        Column::Text("TOPICS"),
        Column::Number("POSITION"),
        Column::Number("WAITING"),
        Column::Number("RETRYING"),
        Column::Number("PARKED"),
        Column::Spare("PROCESS"),
    ]);
    for told in told {
        let Standing {
            name,
            config,
            upto,
            in_flight,
            parked,
            ..
        } = &told.standing;
        let process = told.owner.as_ref().map(|owner| owner.pid.to_string());
        let paint = if *parked > 0 { Paint::Bad } else { Paint::Plain };
        table.row([
            Cell::painted(name.as_str(), Paint::Strong),
            topics(config.pattern.as_str()).into(),
            upto.to_string().into(),
            told.lag().into(),
            in_flight.to_string().into(),
            Cell::painted(parked.to_string(), paint),
            process.unwrap_or_default().into(),
        ]);
    }
    table.print(console)
}

/// The pattern of all topics has no form that a person would write.
fn topics(pattern: &str) -> &str {
    if pattern == neuron::Pattern::all().as_str() {
        return "all";
    }
    pattern
}

impl Consumer {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let name = known(ledger, &self.name)?;
        let Some(standing) = ledger.consumer(&name)? else {
            return Err(none(ledger, &self.name)?);
        };
        let parked = ledger.parked(&name)?.collect::<Result<Vec<_>, _>>()?;
        let whole = Whole {
            told: Told::of(ledger, standing)?,
            retrying: retrying(ledger, &name)?,
            parked_messages: parked,
        };
        if console.is_json() {
            return console.json(&whole);
        }
        describe(&whole, console)?;
        print_retrying(&whole.retrying, console)?;
        print_parked(&whole.parked_messages, console)?;
        if !whole.parked_messages.is_empty() {
            console.say(&format!(
                "hand them out again with `neuron redrive {name} POS` or `--all`"
            ));
        }
        Ok(())
    }
}

fn describe(whole: &Whole, console: &mut Console<'_>) -> Outcome {
    let Standing { name, config, upto, .. } = &whole.told.standing;
    let heading = console.paint(Paint::Strong, name.as_str());
    let process = match &whole.told.owner {
        Some(owner) => format!("  process {} has it open", owner.pid),
        // Of the past nobody knows.
        None if whole.told.past => String::new(),
        None => "  nobody has it open".into(),
    };
    console.line(&format!("{heading}{process}"))?;
    let mut given = match topics(config.pattern.as_str()) {
        "all" => vec!["is given all topics".to_owned()],
        pattern => vec![format!("is given the topics {pattern}")],
    };
    if !config.types.is_empty() {
        let types: Vec<_> = config.types.iter().map(neuron::Kind::as_str).collect();
        given.push(format!("of type {}", types.join(" or ")));
    }
    let headers = config.headers.iter();
    given.extend(headers.map(|(key, value)| format!("with {key}={}", value.as_str())));
    console.prose(&given.join(", "))?;
    let schedule: Vec<_> = config.schedule_ms.iter().map(|ms| span(*ms)).collect();
    let schedule = if schedule.is_empty() {
        "at once".into()
    } else {
        format!("after {}", schedule.join(", "))
    };
    console.prose(&format!(
        "hands a message out at most {}, again {schedule}; {} in flight, {} for each",
        count(config.max_deliveries.into(), "time"),
        config.in_flight,
        span(config.ack_wait_ms)
    ))?;
    console.prose(&format!(
        "stands at pos {upto}; {} waiting, {} to be tried again, {} parked",
        whole.told.lag(),
        whole.retrying.len(),
        whole.parked_messages.len()
    ))
}

fn print_retrying(retrying: &[Retrying], console: &mut Console<'_>) -> Outcome {
    if retrying.is_empty() {
        return Ok(());
    }
    console.line("")?;
    let mut table = Table::new([
        Column::Number("POS"),
        Column::Whole("RETRYING"),
        Column::Number("ATTEMPTS"),
        Column::Whole("NEXT"),
        Column::Text("BECAUSE"),
    ]);
    for message in retrying {
        let (next, because) = match &message.waits {
            Waits::End => ("handed out".into(), String::new()),
            Waits::Turn => ("redriven".into(), String::new()),
            Waits::Time { due, because, .. } => (moment::brief(*due, console.local()), because.clone()),
        };
        table.row([
            message.pos.to_string().into(),
            Cell::painted(format!("{}@{}", message.topic, message.seq), Paint::Strong),
            message.attempts.to_string().into(),
            Cell::painted(next, Paint::Open),
            because.into(),
        ]);
    }
    table.print(console)
}

fn print_parked(parked: &[Parked], console: &mut Console<'_>) -> Outcome {
    if parked.is_empty() {
        return Ok(());
    }
    console.line("")?;
    let mut table = Table::new([
        Column::Number("POS"),
        Column::Whole("PARKED"),
        Column::Spare("TYPE"),
        Column::Number("ATTEMPTS"),
        Column::Spare("SINCE"),
        Column::Text("BECAUSE"),
    ]);
    for message in parked {
        let since: Millis = message.at;
        table.row([
            message.pos.to_string().into(),
            Cell::painted(format!("{}@{}", message.topic, message.seq), Paint::Strong),
            Cell::painted(message.kind.as_str(), Paint::Kind),
            message.attempts.to_string().into(),
            Cell::painted(moment::brief(since, console.local()), Paint::Faint),
            message.because.clone().into(),
        ]);
    }
    table.print(console)
}

fn retrying(ledger: &Ledger, name: &ConsumerId) -> Outcome<Vec<Retrying>> {
    let state = ledger.fold(&Progress::new(name.clone()), None)?.state;
    let mut retrying = Vec::new();
    for (pos, pending) in state.pending {
        for row in ledger.store().page(&Select::All, Range::at(pos))?.rows {
            retrying.push(Retrying {
                pos,
                topic: row.topic,
                seq: row.seq,
                attempts: pending.attempts,
                waits: pending.waits.clone(),
            });
        }
    }
    Ok(retrying)
}

impl Redrive {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let name = known(ledger, &self.name)?;
        let which = match &self.message {
            None => Which::All,
            Some(message) => Which::One(place(ledger, message)?),
        };
        let author = self.reason.author()?;
        let redriven = ledger.redrive_blocking(&name, which, &author, self.reason.because().as_deref());
        let redriven = redriven.map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::TooLarge => Failure::Negative(error.to_string()),
            _ => Failure::Fault(error),
        })?;
        let told = Redriven {
            redriven: redriven.receipts.len(),
            left: redriven.left,
        };
        if console.is_json() {
            return console.json(&told);
        }
        if told.redriven == 0 {
            return console.line(&format!("consumer {name} has no parked message"));
        }
        let messages = count(told.redriven as u64, "message");
        let left = match told.left {
            0 => String::new(),
            left => format!("; {left} more stay parked until it has taken those up"),
        };
        console.prose(&format!("consumer {name} will be handed {messages} again{left}"))
    }
}

/// The place in the store that is meant.
fn place(ledger: &Ledger, message: &str) -> Outcome<u64> {
    match message.parse() {
        Ok(pos) => Ok(pos),
        Err(_) if message.contains('@') => Ok(find::envelope(ledger, message)?.pos),
        Err(_) => Err(Failure::Usage(format!(
            "`{message}` names no message: give its POS (`neuron consumer NAME`) or TOPIC@SEQ"
        ))),
    }
}

/// The consumer of this name, or a sentence that says which there are.
fn known(ledger: &Ledger, name: &str) -> Outcome<ConsumerId> {
    match ConsumerId::new(name) {
        Ok(name) => Ok(name),
        Err(_) => Err(none(ledger, name)?),
    }
}

fn none(ledger: &Ledger, name: &str) -> Outcome<Failure> {
    let names: Vec<_> = ledger.consumers()?.iter().map(|it| it.name.to_string()).collect();
    let known = match names.as_slice() {
        [] => "it has none".into(),
        some => format!("its consumers are {}", some.join(", ")),
    };
    let name = name.escape_debug();
    Ok(Failure::Negative(format!(
        "there is no consumer `{name}` in this store: {known}"
    )))
}
