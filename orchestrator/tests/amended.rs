//! A plan that is another one after a restart: it is declared anew and cleared again before anything of it runs.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

use std::sync::Arc;

use neuron::{
    Ledger, SystemClock,
    pipeline::Pipeline,
    store::{Memory, Select},
};
use orchestrator::{Builder, prelude::*};

#[step]
async fn price(_cx: &Cx, of: String) -> Result<u64> {
    Ok(of.len() as u64)
}

#[step(owns("books"))]
async fn enter(_cx: &Cx, price: u64) -> Result<u64> {
    Ok(price + 1)
}

/// Both versions of the program; the second one enters what the first only looked up.
macro_rules! version {
    ($module:ident, $plan:item) => {
        mod $module {
            use super::*;

            #[plan(name = "quote")]
            $plan

            #[orchestrator(name = "shop")]
            pub(super) async fn shop(board: &Board) -> Result<u64> {
                Ok(board.assign(quote, "ink".to_owned()).await?)
            }

            pub(super) async fn over(store: Memory) -> Neuron {
                let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
                let builder: Builder = Neuron::builder().unlinked().register(shop).register(price).register(enter);
                builder.over(ledger).await.unwrap()
            }
        }
    };
}

version!(
    before,
    pub(super) fn quote(plan: &Plan, of: String) -> Node<u64> {
        plan.step(price, of)
    }
);
version!(
    after,
    pub(super) fn quote(plan: &Plan, of: String) -> Node<u64> {
        plan.step(enter, plan.step(price, of))
    }
);

/// Types and names of what stands on the log, in order.
fn log(ledger: &Ledger) -> Vec<String> {
    let all = ledger.read(Select::All).envelopes().map(|envelope| {
        let envelope = envelope.unwrap();
        let payload = envelope.body.payload.as_ref().map(neuron::Json::to_value);
        let name = payload.and_then(|payload| Some(payload["name"].as_str()?.to_owned()));
        format!("{} {}", envelope.body.kind.as_str(), name.unwrap_or_default())
    });
    all.collect()
}

#[tokio::test]
async fn a_plan_that_has_changed_is_declared_and_cleared_again_before_what_is_new_in_it_runs() {
    let store = Memory::new().unwrap();
    let first = before::over(store.clone()).await;
    assert_eq!(first.run(before::shop, ()).id("r").await.unwrap(), 3);
    let whole = log(first.ledger());
    drop(first);
    let place = |log: &[String], what: &str| log.iter().rposition(|said| said == what);
    let declared = place(&whole, "plan.declared ").unwrap();
    let ended = place(&whole, "package.completed quote").unwrap();
    let mut amended = 0;
    for cut in 1..=ended {
        let second = after::over(store.cut(cut).unwrap()).await;
        assert_eq!(second.run(after::shop, ()).id("r").await.unwrap(), 4, "cut {cut}");
        let log = log(second.ledger());
        let entered = place(&log, "step.started enter").unwrap();
        let cleared = place(&log, "clearance.go ").unwrap();
        assert!(cleared < entered, "cut {cut}: {log:#?}");
        if cut <= declared {
            assert!(place(&log, "plan.redeclared ").is_none(), "cut {cut}: {log:#?}");
            continue;
        }
        let redeclared = place(&log, "plan.redeclared ").unwrap();
        assert!((cut..cleared).contains(&redeclared), "cut {cut}: {log:#?}");
        let priced = log.iter().filter(|said| *said == "step.completed price").count();
        assert_eq!(priced, 1, "cut {cut}: what was done is not done again");
        amended += 1;
    }
    assert!(amended > 2, "{whole:#?}");
}
