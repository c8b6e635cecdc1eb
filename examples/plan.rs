//! A plan: values that flow make the graph, and the whole of it is on the log and cleared before any of it runs.
//!
//! ```text
//! $ cargo run --example plan -- plan.db
//! declared: fetch, fetch, compare
//! the second is longer
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use neuron::vocabulary::{Message as _, clearance::PlanDeclared};
use neuron::{Kind, plan::Outline, store::Select};
use orchestrator::prelude::*;

#[step(uses("net"))]
async fn fetch(_cx: &Cx, page: String) -> Result<String> {
    Ok(page.repeat(3))
}

#[step]
async fn compare(_cx: &Cx, one: String, other: String) -> Result<String> {
    let longer = if one.len() > other.len() { "first" } else { "second" };
    Ok(format!("the {longer} is longer"))
}

/// Both fetches run beside one another, `compare` after them: nobody says so but the values.
#[plan]
fn comparison(plan: &Plan, one: Node<String>, other: Node<String>) -> Node<String> {
    plan.step(compare, (plan.step(fetch, one), plan.step(fetch, other)))
}

#[orchestrator]
async fn work(board: &Board) -> Result<String> {
    Ok(board.assign(comparison, ("ab".to_owned(), "abc".to_owned())).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "plan.db".into());
    let neuron = Neuron::open(store).await?;
    let answer = neuron.run(work, ()).await?;
    for envelope in neuron
        .ledger()
        .read(Select::Kind(Kind::new(PlanDeclared::TYPE)?))
        .envelopes()
    {
        let declared: PlanDeclared = envelope?.decode()?;
        let outline: Outline = declared.outline.decode()?;
        let steps: Vec<_> = outline.rows.iter().map(|row| row.step.as_str()).collect();
        println!("declared: {}", steps.join(", "));
    }
    println!("{answer}");
    Ok(())
}
