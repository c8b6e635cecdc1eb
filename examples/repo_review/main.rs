//! Reviews a Git repository with six agents, durably: `kill -9` it at any moment and give the same command again.

mod agents;
mod bounded;
mod choice;
mod closing;
mod dependencies;
mod docs;
mod export;
mod git;
mod history;
mod judgement;
mod language;
mod name;
mod orchestrate;
mod report;
mod risk;
mod rust_source;
mod share;
mod structure;
mod watch;

use std::fmt::Display;
use std::io::Write as _;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use neuron::store::{Crash, Point};
use neuron::{ArtifactRef, RunId};
use orchestrator::Neuron;
use orchestrator::runs::RunState;

use choice::Choice;
use git::Repository;
use watch::Watch;

/// Reviews a Git repository with six agents: five read it beside one another, one says what it means together.
///
/// Every step is on the log in the store. Stop the program in any way, give the same command again, and it goes on
/// where it was.
#[derive(Debug, Parser)]
#[command(name = "repo_review")]
struct Args {
    /// The repository, or a directory in it
    #[arg(default_value = ".", hide_default_value = true)]
    path: PathBuf,
    /// The store; the review is written beside it, as `review.md` beside `review.db`
    #[arg(long, value_name = "PATH", default_value = "review.db")]
    store: PathBuf,
    /// The run; else the one that was not finished, else one named after the commit
    #[arg(long, value_name = "ID", value_parser = |id: &str| RunId::new(id))]
    run: Option<RunId>,
    /// Abort this process right after its Nth commit, as hard as `kill -9`
    #[arg(long, value_name = "N")]
    crash_after: Option<NonZeroU64>,
}

/// Why there is no review, and the exit code that says so.
struct Failure {
    /// 1: the review failed. 2: it could not begin, or its store is broken.
    code: u8,
    why: String,
}

impl Failure {
    fn review(why: impl Display) -> Self {
        let why = why.to_string();
        Self { code: 1, why }
    }

    fn beginning(why: impl Display) -> Self {
        let why = why.to_string();
        Self { code: 2, why }
    }
}

/// A review that stands, and what this process had to do with it.
struct Review {
    neuron: Neuron,
    choice: Choice,
    document: ArtifactRef,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let reviewed = tokio::runtime::Runtime::new()
        .map_err(Failure::beginning)
        .and_then(|runtime| {
            let review = runtime.block_on(review(&args))?;
            closing::close(&args.store, &review)
        });
    match reviewed {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure { code, why }) => {
            tell(&format!("repo_review: {why}"));
            code.into()
        }
    }
}

async fn review(args: &Args) -> Result<Review, Failure> {
    let repository = Repository::open(&args.path).map_err(Failure::beginning)?;
    let present = repository.subject().map_err(Failure::beginning)?;
    let mut builder = Neuron::builder().state(repository.clone());
    if let Some(commit) = args.crash_after {
        builder = builder.fault(Crash::at(Point::AfterCommit, commit.get()));
        tell(&format!(
            "this process aborts right after its commit {commit}; the same command again goes on from there"
        ));
    }
    let neuron = builder.open(&args.store).await.map_err(Failure::beginning)?;
    let ledger = neuron.ledger();
    let choice = Choice::make(ledger, &repository, present, args.run.clone()).map_err(Failure::beginning)?;
    let console = closing::neuron_on(&args.store);
    tell(&choice.to_string());
    if choice.state == Some(RunState::Paused) {
        tell(&format!("it goes on after:\n  {console} resume {}", choice.id));
    }
    let mut watch = Watch::new(ledger, &choice.id, console).map_err(Failure::beginning)?;
    let run = neuron
        .run(orchestrate::review, choice.subject.clone())
        .id(choice.id.as_str());
    let run = run.start().await.map_err(Failure::beginning)?;
    let ended = tokio::select! {
        ended = run.wait() => ended,
        broken = watch.follow() => Err(broken),
    };
    watch.finish();
    match ended {
        Ok(document) => Ok(Review {
            neuron,
            choice,
            document,
        }),
        Err(error) if error.kind() == neuron::ErrorKind::RunIdConflict => Err(Failure::beginning(error)),
        Err(error) => Err(Failure::review(format!("run {}: {error}", choice.id))),
    }
}

/// Says something beside the answer. If nobody hears it, there is nobody to tell.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
