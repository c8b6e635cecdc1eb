//! Sales that stand in tables of the program's own: each row and the answer that tells of it are one commit.

use std::env;

use orchestrator::prelude::*;

use crate::fatal;

/// Sells one thing; how many are left.
#[step(retry(2))]
async fn sell(cx: &Cx, to: String) -> Result<i64> {
    let left = cx.transaction(move |tx| {
        tx.execute("CREATE TABLE IF NOT EXISTS stock (left INTEGER)", ())?;
        tx.execute(
            "INSERT INTO stock SELECT 1000 WHERE NOT EXISTS (SELECT 1 FROM stock)",
            (),
        )?;
        tx.execute("CREATE TABLE IF NOT EXISTS sale (customer TEXT)", ())?;
        tx.execute("INSERT INTO sale VALUES (?1)", [&to])?;
        fatal(&format!("sell-{to}"));
        tx.execute("UPDATE stock SET left = left - 1", ())?;
        Ok(tx.query_one("SELECT left FROM stock", ())?.unwrap_or(0))
    });
    let left = left.await?;
    // The second attempt finds what the first has sold.
    if cx.attempt() == 1 {
        return Err("the drawer is stuck".into());
    }
    Ok(left)
}

#[agent]
async fn till(cx: &Cx, name: String, customers: u32) -> Result<u32> {
    for customer in 0..customers {
        sell(cx, format!("{name}-{customer}")).await?;
    }
    let run = name.clone();
    // An agent's own, without a step.
    cx.transaction(move |tx| Ok(tx.execute("INSERT INTO sale VALUES (?1)", [format!("{run}-closed")])?))
        .await?;
    Ok(customers)
}

#[orchestrator]
pub(crate) async fn shop(board: &Board, run: String, customers: u32) -> Result<u32> {
    let tills = ["a", "b"].map(|name| board.assign(till, (format!("{run}-{name}"), customers)));
    let mut sold = 0;
    for sold_by_one in tills {
        sold += sold_by_one.await?;
    }
    Ok(sold)
}

/// How many customers each till has.
pub(crate) fn customers() -> u32 {
    env::var("CUSTOMERS")
        .ok()
        .and_then(|count| count.parse().ok())
        .unwrap_or(2)
}
