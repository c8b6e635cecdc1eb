//! A dry run of bodies that wait for envelopes, ask people and begin again.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use neuron::{Author, Contract, Ledger, Pattern, store::Select};
use orchestrator::{Builder, Outlook, Replayed, prelude::*};

#[step(name = "note")]
async fn note(_cx: &Cx, what: String) -> Result<String> {
    Ok(what)
}

/// One version of the program; what an agent notes after it has begun again is what differs.
macro_rules! version {
    ($module:ident, $later:literal) => {
        mod $module {
            use super::*;

            #[agent(name = "listener")]
            pub(super) async fn listener(cx: &Cx, round: u64, after: Option<u64>) -> Result<bool> {
                if round == 0 {
                    cx.emit(cx.draft("news", "said")?.payload(&round)?).await?;
                    let came = cx.wait_for(Filter::on("news")).await?;
                    note(cx, "heard".into()).await?;
                    return Ok(cx.continue_with(listener, (1, Some(came.pos))).await?);
                }
                note(cx, format!("{} {after:?}", $later)).await?;
                Ok(cx.ask_human::<bool>("Go on?").await?)
            }

            #[orchestrator(name = "work")]
            pub(super) async fn work(board: &Board) -> Result<bool> {
                let listening = board.assign(listener, (0, None));
                // The board waits too, for what stands already.
                board.wait_for(Filter::on("news")).await?;
                Ok(listening.await?)
            }

            pub(super) fn code() -> Builder {
                let builder = Neuron::builder().unlinked();
                builder.register(work).register(listener).register(note)
            }
        }
    };
}

version!(recorded, "then");
version!(changed, "later");

/// A run that has got as far as its question.
async fn asked() -> Ledger {
    let neuron = recorded::code().memory().await.unwrap();
    let ledger = neuron.ledger().clone();
    let news = Pattern::new("news").unwrap();
    ledger.declare(&news, Contract::Durable, &Author::cli()).await.unwrap();
    let mut log = ledger.subscribe(Pattern::all(), neuron::ledger::From::Start).unwrap();
    let running = neuron.run(recorded::work, ()).id("r").start().await.unwrap();
    let (mut question, mut heard) = (false, false);
    while !(question && heard) {
        let next = log.next().await.unwrap();
        question |= next.body.kind == *"question.asked";
        heard |= next.body.kind == *"wait.ended" && next.topic.as_str().starts_with("orchestration");
    }
    drop(running);
    ledger
}

async fn replayed(code: Builder, ledger: &Ledger) -> Replayed {
    let before = ledger.store().last().unwrap();
    let last = ledger.read(Select::All).envelopes().count() as u64;
    let then = code.over(ledger.as_of(last).unwrap()).await.unwrap();
    let told = then.replay(&RunId::new("r").unwrap()).await.unwrap();
    assert_eq!(ledger.store().last().unwrap(), before, "nothing is appended");
    told
}

#[tokio::test]
async fn what_was_waited_for_is_read_back_and_a_body_that_has_begun_again_is_driven_from_there() {
    let ledger = asked().await;
    let told = replayed(recorded::code(), &ledger).await;
    assert!(told.goes_on(), "{told:#?}");
    // Only the code after the new beginning has changed, so that is where it is found.
    let told = replayed(changed::code(), &ledger).await;
    assert_eq!(told.outlook, Outlook::RunsAgain, "{told:#?}");
    assert_eq!(told.findings.len(), 1, "{told:#?}");
}
