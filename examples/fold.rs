//! State is never stored, it is folded: here the balance of each account, over all that was said of it. A fold goes on where
//! it was, can be asked for the state of any moment, and a view of it stays current by itself.
//!
//! ```text
//! $ cargo run --example fold -- fold.db
//! after 3 envelopes: ada 30, bob 5
//! two more, folded on from there: ada 18, bob 17
//! as it stood at the first: ada 40
//! the view, right after one more: ada 18, bob 16
//! ```
#![allow(clippy::print_stdout, reason = "an example talks to the person who runs it")]

use std::collections::BTreeMap;

use neuron::{
    Author, Contract, Draft, Envelope, Error, Fold, Ledger, Pattern, Receipt, Result, Topic,
    store::{Options, Select},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is said of an account.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
struct Booked {
    account: String,
    amount: i64,
}

/// The balances. A fold is pure: the same envelopes give the same state, whoever asks and whenever.
struct Balances(Topic);

impl Fold for Balances {
    type State = BTreeMap<String, i64>;

    fn init(&self) -> Self::State {
        BTreeMap::new()
    }

    fn apply(&self, balances: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        let Booked { account, amount } = envelope.decode()?;
        *balances.entry(account).or_default() += amount;
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(self.0.clone())
    }
}

fn shown(balances: &BTreeMap<String, i64>) -> String {
    let shown = balances.iter().map(|(account, balance)| format!("{account} {balance}"));
    shown.collect::<Vec<_>>().join(", ")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let store = std::env::args().nth(1).unwrap_or_else(|| "fold.db".into());
    let ledger = Ledger::open(store, Options::default())?;
    let topic = Topic::new("bank.bookings")?;
    let family = Pattern::new("bank.*")?;
    ledger.declare(&family, Contract::Durable, &Author::engine()).await?;
    let (log, to) = (ledger.clone(), topic.clone());
    let book = async move |account: &str, amount| -> Result<Receipt> {
        let booked = Booked {
            account: account.into(),
            amount,
        };
        Ok(log
            .publish(Draft::new(to.clone(), Author::engine(), "booked")?.payload(&booked)?)
            .await?)
    };
    let first = book("ada", 40).await?;
    book("ada", -10).await?;
    book("bob", 5).await?;
    let fold = Balances(topic.clone());
    let mut folded = ledger.fold(&fold, None)?;
    println!("after 3 envelopes: {}", shown(&folded.state));

    book("ada", -12).await?;
    book("bob", 12).await?;
    ledger.fold_on(&fold, &mut folded, None)?;
    println!("two more, folded on from there: {}", shown(&folded.state));
    let then = ledger.fold(&fold, Some(first.pos))?;
    println!("as it stood at the first: {}", shown(&then.state));

    let view = ledger.view(Balances(topic)).await?;
    let booked = book("bob", -1).await?;
    let now = view.at(&booked).await?.read(shown)?;
    println!("the view, right after one more: {now}");
    Ok(())
}
