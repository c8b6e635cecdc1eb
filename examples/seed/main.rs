//! The seed: a conversation is a durable topic, so killing the process loses nothing.
//!
//! Every line of standard input is a prompt. Its reply is a fold over the whole conversation, here and now: there is no
//! other state. Kill it at any moment and start it again: it prints what was said, answers the prompt that had no reply,
//! and goes on. `--crash-after N` aborts the process right after commit N, to show it.
//!
//! ```text
//! printf 'hello\nhow long have we talked?\n' | cargo run --example seed -- talk.db
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::{
    collections::BTreeMap,
    io::{BufRead as _, Read as _},
    path::PathBuf,
};

use clap::Parser;
use neuron::{
    Author, ConversationId, Draft, Envelope, Error, Fold, Ledger, Parent, Topic,
    store::{Crash, Options, Point, Select},
    topic::catalog,
};

/// The first artifact of a store: what the conversation promises. The second line of it is revised once, below.
const SPECIFICATION: &str = "A conversation is a topic.\nEvery prompt gets one reply.\n";
const REVISED: &str = "A conversation is a topic.\nEvery prompt gets one reply, also after a crash.\n";

#[derive(Parser)]
#[command(about = "A conversation that survives kill -9")]
struct Args {
    /// The store.
    #[arg(default_value = "seed.db")]
    store: PathBuf,
    /// Abort the process right after this many commits.
    #[arg(long)]
    crash_after: Option<u64>,
}

/// What was said, as a fold: prompts by place, and which of them have a reply.
struct Talk(Topic);

#[derive(Debug, Default)]
struct Said {
    lines: Vec<String>,
    prompts: BTreeMap<u64, String>,
    answered: usize,
    words: usize,
}

impl Said {
    /// The first prompt without a reply.
    fn open(&self) -> Option<(u64, &str)> {
        self.prompts
            .iter()
            .nth(self.answered)
            .map(|(seq, text)| (*seq, text.as_str()))
    }

    /// The reply is made of the log alone, so that after a crash it comes out the same.
    fn reply(&self, prompt: &str) -> String {
        let place = self.answered + 1;
        format!("reply {place} to “{prompt}”: we have said {} words so far", self.words)
    }
}

impl Fold for Talk {
    type State = Said;

    fn init(&self) -> Said {
        Said::default()
    }

    fn apply(&self, said: &mut Said, envelope: &Envelope) -> Result<(), Error> {
        let text: String = envelope.decode()?;
        said.lines
            .push(format!("{:>3} {}: {text}", envelope.seq, envelope.author));
        if envelope.body.kind == "prompt" {
            said.words += text.split_whitespace().count();
            said.prompts.insert(envelope.seq, text);
        } else {
            said.answered += 1;
        }
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(self.0.clone())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let fault = args.crash_after.map(|commit| Crash::at(Point::AfterCommit, commit));
    let options = Options {
        fault,
        ..Options::default()
    };
    let ledger = Ledger::open(&args.store, options)?;
    specify(&ledger).await?;
    let topic = catalog::conversation(&ConversationId::new("seed")?);
    let talk = Talk(topic.clone());
    let mut said = ledger.fold(&talk, None)?;
    for line in &said.state.lines {
        println!("{line}");
    }
    let mut lines = std::io::stdin().lock().lines();
    loop {
        // A prompt that a crash left without its reply comes first.
        while let Some((seq, prompt)) = said.state.open() {
            let reply = said.state.reply(prompt);
            say(&ledger, &topic, Author::new("seed")?, "reply", &reply, Some(seq)).await?;
            ledger.fold_on(&talk, &mut said, None)?;
            println!("{}", said.state.lines.last().map_or("", String::as_str));
        }
        let Some(prompt) = lines.next().transpose()? else {
            return Ok(());
        };
        say(&ledger, &topic, Author::human("you")?, "prompt", &prompt, None).await?;
        ledger.fold_on(&talk, &mut said, None)?;
        println!("{}", said.state.lines.last().map_or("", String::as_str));
    }
}

async fn say(
    ledger: &Ledger,
    topic: &Topic,
    author: Author,
    kind: &str,
    text: &str,
    parent: Option<u64>,
) -> Result<(), Error> {
    let mut draft = Draft::new(topic.clone(), author, kind)?.payload(&text.to_owned())?;
    if let Some(seq) = parent {
        draft = draft.parent(Parent::Seq(seq));
    }
    ledger.publish(draft).await.map(|_| ())
}

/// Stores the specification as the first artifact, and supersedes it once; a second run finds both done.
async fn specify(ledger: &Ledger) -> Result<(), Error> {
    let author = Author::human("you")?;
    let first = ledger.store_blob(SPECIFICATION.as_bytes())?;
    let second = ledger.store_blob(REVISED.as_bytes())?;
    let lineage = ledger.lineage()?;
    if lineage.heads(&first).contains(&first) {
        ledger
            .supersede(&first, &second, "said what happens after a crash", &author)
            .await?;
    }
    let mut text = String::new();
    ledger.blob(&second)?.read_to_string(&mut text)?;
    println!(
        "specification {}: {}",
        &second.to_string()[..8],
        text.lines().last().unwrap_or_default()
    );
    Ok(())
}
