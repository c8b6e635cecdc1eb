//! Tables of your own in the same file: what `cx.transaction` changes and the answer that tells of it are one commit. So
//! money is moved once, however often its step is tried and wherever the process dies, and half of it is never moved.
//!
//! ```text
//! $ cargo run --example transaction -- transaction.db
//! ada has 100, bob has 0
//! 30 moved, but the receipt is stuck in the printer
//! here is the receipt: ada has 70 left
//! refused: ada has less than 500
//! ada has 70, bob has 30
//! ```
//!
//! Other programs read them too: `sqlite3 transaction.db 'select * from account'`.
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use orchestrator::prelude::*;

/// The second attempt is told what the first has moved, and moves nothing.
#[step(retry(2))]
async fn transfer(cx: &Cx, from: String, to: String, cents: i64) -> Result<()> {
    let payer = from.clone();
    let moved = cx.transaction(move |tx| {
        tx.execute("UPDATE account SET cents = cents + ?2 WHERE name = ?1", (&to, cents))?;
        let left: Option<i64> = tx.query_one(
            "UPDATE account SET cents = cents - ?2 WHERE name = ?1 AND cents >= ?2 RETURNING cents",
            (&payer, cents),
        )?;
        // An error takes everything back, the first statement too. Another attempt would end the same way.
        left.ok_or_else(|| Error::terminal(format!("{payer} has less than {cents}")).into())
    });
    let left = moved.await?;
    if cx.attempt() == 1 {
        println!("{cents} moved, but the receipt is stuck in the printer");
        return Err("the receipt is stuck".into());
    }
    println!("here is the receipt: {from} has {left} left");
    Ok(())
}

async fn balance(cx: &Cx) -> Result<String> {
    let accounts = cx.transaction(|tx| Ok(tx.query("SELECT name, cents FROM account ORDER BY name", ())?));
    let accounts: Vec<(String, i64)> = accounts.await?;
    let lines = accounts.into_iter().map(|(name, cents)| format!("{name} has {cents}"));
    Ok(lines.collect::<Vec<_>>().join(", "))
}

#[agent]
async fn teller(cx: &Cx) -> Result<String> {
    cx.transaction(|tx| {
        tx.execute(
            "CREATE TABLE IF NOT EXISTS account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL)",
            (),
        )?;
        Ok(tx.execute("INSERT OR IGNORE INTO account VALUES ('ada', 100), ('bob', 0)", ())?)
    })
    .await?;
    println!("{}", balance(cx).await?);
    transfer(cx, "ada".into(), "bob".into(), 30).await?;
    if let Err(error) = transfer(cx, "ada".into(), "bob".into(), 500).await {
        println!("refused: {}", error.message());
    }
    balance(cx).await
}

#[orchestrator]
async fn bank(board: &Board) -> Result<String> {
    Ok(board.assign(teller, ()).await?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "transaction.db".into());
    let neuron = Neuron::open(store).await?;
    println!("{}", neuron.run(bank, ()).await?);
    Ok(())
}
