//! A program that is killed on purpose: the tests of `it/crash` start it, abort it and start it again.
//!
//! ```text
//! victim STORE SCENARIO [--abort before|after COMMIT]
//! ```
//!
//! What its steps do leaves a line each in `STORE.marks`, which outlives every crash. Its result is the line that begins
//! with `result:` or `error:`; what its agents write to the log is told as it stands, type and name. The environment changes the program as an editor would between two starts: `EDIT` names
//! the change, `FATAL` the step that stops the process.
#![allow(
    clippy::print_stdout,
    clippy::exit,
    missing_docs,
    reason = "a program that talks to the test that started it"
)]

mod clerk;
mod marks;
mod porter;
mod post;
mod till;
mod workshop;

use std::{env, sync::Arc};

use marks::Marks;
use neuron::{
    ErrorKind, Pattern, Payload,
    store::{Crash, Fault, Point},
};
use orchestrator::prelude::*;

/// Whether the program is the one after this edit.
fn is_edited(name: &str) -> bool {
    env::var("EDIT").is_ok_and(|edit| edit == name)
}

/// Stops the process if this is where it is to stop, as `kill -9` would.
fn fatal(step: &str) {
    if env::var("FATAL").is_ok_and(|fatal| fatal == step) {
        std::process::abort();
    }
}

/// Where `--abort` says that the process stops.
fn crash(args: &[String]) -> Option<Arc<dyn Fault>> {
    let [_, point, commit] = args else { return None };
    let point = if point == "before" {
        Point::BeforeCommit
    } else {
        Point::AfterCommit
    };
    Some(Crash::at(point, commit.parse().ok()?))
}

/// The run of this process.
fn run_id() -> String {
    env::var("RUN").unwrap_or_else(|_| "r".into())
}

async fn tell<T: Payload + std::fmt::Debug>(run: orchestrator::Run<T>) {
    match run.id(run_id()).await {
        Ok(output) => println!("result: {output:?}"),
        Err(error) => println!("error: {:?} {error}", error.kind()),
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [store, scenario, rest @ ..] = &args[..] else {
        return Err("victim STORE SCENARIO [--abort before|after COMMIT]".into());
    };
    let mut builder = Neuron::builder()
        .durability(Durability::Process)
        .state(Marks::beside(store));
    if let Some(crash) = crash(rest) {
        builder = builder.fault(crash);
    }
    let neuron = builder.open(store).await?;
    let steps = Pattern::new("agent.*.steps")?;
    let _telling = neuron.ledger().bus().subscribe(steps, |envelope| async move {
        let payload = envelope.body.payload.as_ref().map(neuron::Json::to_value);
        let name = payload.as_ref().and_then(|payload| payload["name"].as_str());
        println!("{} {}", envelope.body.kind, name.unwrap_or_default());
    });
    match scenario.as_str() {
        "workshop" => tell(neuron.run(workshop::workshop, vec![3, 5, 8])).await,
        "clerk" => tell(neuron.run(clerk::office, ())).await,
        "porter" => tell(neuron.run(porter::station, porter::luggage())).await,
        "till" => tell(neuron.run(till::shop, (run_id(), till::customers()))).await,
        "post" => match post::office(neuron.clone()).await {
            Ok(parked) => println!("result: {parked}"),
            Err(error) => println!("error: {error}"),
        },
        other => return Err(Error::new(ErrorKind::Misuse, format!("no scenario `{other}`")).into()),
    }
    Ok(())
}
