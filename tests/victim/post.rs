//! A handler, run by a process that serves.

use std::env;

use neuron::{
    Append, Author, ConsumerId, Contract, Draft, Event, Pattern, Topic, consumer::Progress, ledger::From, on,
    topic::catalog,
};
use orchestrator::{neuron, prelude::*};

use crate::fatal;

/// What is posted at the first start of all.
const LETTERS: [&str; 5] = ["one", "torn", "two", "late", "three"];

/// Stamps a letter: the stamp and the handler's position are one batch.
#[on("letters", name = "postman", from = start, retry(3, backoff = "1ms"))]
async fn stamp(event: &Event, letter: String) -> Result<Append> {
    println!("stamps {letter}");
    fatal(&letter);
    match letter.as_str() {
        "torn" => return Err(Error::terminal("it cannot be read").into()),
        "late" if event.attempt() == 1 => return Err("not yet".into()),
        "held" => drop(tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new())).await?),
        _ => {}
    }
    Ok(Append::of([said("stamps", &letter)?.cause(event.cause())]))
}

fn said(at: &str, text: &str) -> Result<Draft> {
    let draft = Draft::new(Topic::new(at)?, Author::cli(), "said")?;
    Ok(draft.payload(&text.to_owned())?)
}

/// Serves until every letter is settled.
pub(crate) async fn office(neuron: Neuron) -> Result<usize> {
    let ledger = neuron.ledger().clone();
    for name in ["letters", "stamps"] {
        let pattern = Pattern::new(name)?;
        ledger.declare(&pattern, Contract::Durable, &Author::cli()).await?;
    }
    let held = env::var("HELD").is_ok();
    let letters: &[&str] = if held { &["held"] } else { &LETTERS };
    let letters: Result<Vec<_>> = letters.iter().map(|letter| said("letters", letter)).collect();
    let letters = Append::of(letters?).idempotency_key("letters")?;
    let receipts = ledger.append(letters).await?;
    let name = ConsumerId::new("postman")?;
    let mut words = ledger.subscribe(Pattern::exactly(&catalog::consumer(&name)), From::Start)?;
    println!("serves");
    let settled = async {
        loop {
            words.next().await?;
            let state = ledger.fold(&Progress::new(name.clone()), None)?.state;
            if receipts.iter().all(|receipt| state.is_settled(receipt.pos)) {
                return Ok(state.parked.len());
            }
        }
    };
    tokio::select! {
        parked = settled => parked,
        ended = neuron.serve() => Err(ended.err().map_or_else(|| "it serves no more".into(), Into::into)),
    }
}
