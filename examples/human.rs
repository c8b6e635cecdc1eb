//! An agent asks a person and waits, for a year if need be: the question is on the log, and so is the answer. Here the
//! program answers itself after a moment; `neuron answer` does it from anywhere else.
//!
//! ```text
//! $ cargo run --example human -- human.db
//! asked: Refund 40 euros to Ada?
//! refunded: yes, by ada
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use orchestrator::prelude::*;
use orchestrator::waiting::{Waits, What};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the person decides.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Decision {
    refund: bool,
    by: String,
}

#[agent]
async fn clerk(cx: &Cx, euros: u64) -> Result<String> {
    let question = format!("Refund {euros} euros to Ada?");
    let Decision { refund, by } = cx.ask_human(question).await?;
    Ok(format!("{}, by {by}", if refund { "yes" } else { "no" }))
}

#[orchestrator]
async fn refund(board: &Board, euros: u64) -> Result<String> {
    Ok(board.assign(clerk, euros).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "human.db".into());
    let neuron = Neuron::open(store).await?;
    let running = neuron.run(refund, 40).start().await?;
    // What waits is a fold over the log, as everything is.
    let waits = neuron.ledger().view(Waits).await?;
    let mut tail = neuron.ledger().store().tail();
    let key = loop {
        let asked = waits.now().await?.read(|waiting| {
            let mut asked = waiting.items().filter_map(|item| match &item.what {
                What::Asked { key, question, .. } => Some((key.clone(), question.clone())),
                _ => None,
            });
            asked.next()
        })?;
        if let Some((key, question)) = asked {
            println!("asked: {question}");
            break key;
        }
        tail.changed().await?;
    };
    let decision = Decision {
        refund: true,
        by: "ada".into(),
    };
    neuron.answer(&key, &decision).await?;
    println!("refunded: {}", running.wait().await?);
    Ok(())
}
