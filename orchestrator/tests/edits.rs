//! What a developer does to orchestrators, agents and plans between a crash and the restart: another name, another
//! output. Two versions of the code stand side by side; the second drives what the first has recorded, cut where a
//! crash would cut it.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::sync::{Arc, Mutex};

use neuron::{
    Ledger, SystemClock,
    pipeline::Pipeline,
    store::{Memory, Select},
};
use orchestrator::{
    neuron::{self},
    prelude::*,
};

/// What the steps of a test did.
#[derive(Debug, Default)]
struct Did(Mutex<Vec<String>>);

impl Did {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn did(cx: &Cx, what: impl Into<String>) -> Result<()> {
    cx.state::<Arc<Did>>()?.0.lock().unwrap().push(what.into());
    Ok(())
}

mod v1 {
    use super::{Board, Cx, Node, Plan, Result, agent, did, orchestrator, plan, step};

    #[step(name = "count")]
    pub(super) async fn count(cx: &Cx, word: String) -> Result<usize> {
        did(cx, format!("count {word}"))?;
        Ok(word.len())
    }

    #[step(name = "add")]
    pub(super) async fn add(cx: &Cx, parts: Vec<usize>) -> Result<usize> {
        did(cx, "add")?;
        Ok(parts.iter().sum())
    }

    #[agent(name = "reader")]
    pub(super) async fn reader(cx: &Cx, word: String) -> Result<usize> {
        count(cx, word.clone()).await?;
        Ok(count(cx, word + "!").await?)
    }

    #[plan(name = "total")]
    pub(super) fn total(plan: &Plan, parts: Node<Vec<usize>>) -> Node<usize> {
        plan.step(add, parts)
    }

    #[orchestrator(name = "letters")]
    pub(super) async fn letters(board: &Board, words: Vec<String>) -> Result<usize> {
        let parts: Vec<_> = words.into_iter().map(|word| board.assign(reader, word)).collect();
        Ok(board.assign(total, parts).await?)
    }
}

mod v2 {
    use super::{Board, Cx, Node, Plan, Result, agent, did, orchestrator, plan, step};

    #[step(was = "count")]
    pub(super) async fn tally(cx: &Cx, word: String) -> Result<usize> {
        did(cx, format!("tally {word}"))?;
        Ok(word.len())
    }

    #[step(name = "add")]
    pub(super) async fn add(cx: &Cx, parts: Vec<usize>) -> Result<usize> {
        did(cx, "add")?;
        Ok(parts.iter().sum())
    }

    #[agent(was = "reader")]
    pub(super) async fn scholar(cx: &Cx, word: String) -> Result<usize> {
        tally(cx, word.clone()).await?;
        Ok(tally(cx, word + "!").await?)
    }

    #[plan(was = "total")]
    pub(super) fn sum(plan: &Plan, parts: Node<Vec<usize>>) -> Node<usize> {
        plan.step(add, parts)
    }

    #[orchestrator(was = "letters")]
    pub(super) async fn glyphs(board: &Board, words: Vec<String>) -> Result<usize> {
        let parts: Vec<_> = words.into_iter().map(|word| board.assign(scholar, word)).collect();
        Ok(board.assign(sum, parts).await?)
    }
}

/// Another output of the agent and of the orchestrator's step towards it.
mod v3 {
    use super::{Board, Cx, Measure, Result, agent, did, orchestrator, step};

    #[step(name = "count")]
    pub(super) async fn count(cx: &Cx, word: String) -> Result<Measure> {
        did(cx, format!("measure {word}"))?;
        Ok(Measure { letters: word.len() })
    }

    #[agent(name = "reader")]
    pub(super) async fn reader(cx: &Cx, word: String) -> Result<Measure> {
        count(cx, word.clone()).await?;
        Ok(count(cx, word + "!").await?)
    }

    #[orchestrator(name = "letters")]
    pub(super) async fn letters(board: &Board, words: Vec<String>) -> Result<usize> {
        let mut all = 0;
        let parts: Vec<_> = words.into_iter().map(|word| board.assign(reader, word)).collect();
        for part in parts {
            all += part.await?.letters;
        }
        Ok(all)
    }
}

#[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Measure {
    letters: usize,
}

fn over(store: Memory) -> Ledger {
    Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap()
}

fn first(did: &Arc<Did>) -> orchestrator::Builder {
    let builder = Neuron::builder().unlinked().state(did.clone());
    builder
        .register(v1::letters)
        .register(v1::reader)
        .register(v1::count)
        .register(v1::add)
}

fn second(did: &Arc<Did>) -> orchestrator::Builder {
    let builder = Neuron::builder().unlinked().state(did.clone());
    builder
        .register(v2::glyphs)
        .register(v2::scholar)
        .register(v2::tally)
        .register(v2::add)
}

fn words() -> Vec<String> {
    vec!["ab".into(), "abc".into()]
}

/// A run of the first version, to its end; the store can be cut at any commit.
async fn recorded(did: &Arc<Did>) -> Memory {
    let store = Memory::new().unwrap();
    let neuron = first(did).over(over(store.clone())).await.unwrap();
    assert_eq!(neuron.run(v1::letters, words()).id("r").await.unwrap(), 7);
    store
}

fn length(store: &Memory) -> usize {
    over(store.clone()).read(Select::All).envelopes().count()
}

fn number(neuron: &Neuron, kind: &str) -> usize {
    let all = neuron.ledger().read(Select::All).envelopes();
    all.filter(|envelope| envelope.as_ref().unwrap().body.kind == *kind)
        .count()
}

#[tokio::test]
async fn a_run_whose_orchestrator_agents_plans_and_steps_have_other_names_goes_on_after_any_commit() {
    let did = Arc::new(Did::default());
    let store = recorded(&did).await;
    let all = did.take().len();
    for cut in 1..=length(&store) {
        let cut_store = store.cut(cut).unwrap();
        let neuron = second(&did).over(over(cut_store)).await.unwrap();
        let completed = number(&neuron, "step.completed");
        let begun = number(&neuron, "orchestration.created") > 0;
        if begun {
            let found = neuron.recover().await.unwrap();
            assert!(found.without_code.is_empty(), "cut {cut}: {found:?}");
        }
        assert_eq!(neuron.run(v2::glyphs, words()).id("r").await.unwrap(), 7, "cut {cut}");
        assert_eq!(
            did.take().len(),
            all - completed,
            "cut {cut}: what is completed never runs again"
        );
        assert_eq!(number(&neuron, "package.assigned"), 3, "cut {cut}: each package once");
        assert_eq!(number(&neuron, "step.completed"), all, "cut {cut}");
        assert_eq!(number(&neuron, "replay.diverged"), 0, "cut {cut}");
        let other = neuron.run(v2::glyphs, vec![]).id("r").await.unwrap_err();
        assert_eq!(other.kind(), ErrorKind::RunIdConflict);
    }
}

#[tokio::test]
async fn a_former_name_that_two_definitions_claim_is_refused_at_open() {
    mod twice {
        use super::{Board, Result, orchestrator};

        #[orchestrator(was = "letters")]
        pub(super) async fn scripts(_board: &Board) -> Result<()> {
            Ok(())
        }
    }
    let did = Arc::new(Did::default());
    let error = second(&did).register(twice::scripts).memory().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse);
    assert_eq!(error.message().matches("tests/edits.rs:").count(), 2, "{error}");
}

#[tokio::test]
async fn an_output_of_another_type_is_upcast_and_without_an_upcaster_the_run_is_held() {
    let did = Arc::new(Did::default());
    let store = recorded(&did).await;
    did.take();
    let third = || {
        let builder = Neuron::builder().unlinked().state(did.clone());
        builder.register(v3::letters).register(v3::reader).register(v3::count)
    };
    let mut held = 0;
    for cut in 1..length(&store) {
        let stored = || over(store.cut(cut).unwrap());
        let neuron = third()
            .upcast(|letters: usize| Ok(Measure { letters }))
            .over(stored())
            .await
            .unwrap();
        let completed = number(&neuron, "step.completed").min(4);
        assert_eq!(neuron.run(v3::letters, words()).id("r").await.unwrap(), 7, "cut {cut}");
        assert_eq!(
            did.take().len(),
            4 - completed,
            "cut {cut}: nothing completed runs again"
        );
        if completed > 0 {
            let neuron = third().over(stored()).await.unwrap();
            let error = neuron.run(v3::letters, words()).id("r").await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ReplayDecode, "cut {cut}: {error}");
            let named = error.message().contains("Measure") && error.message().contains("a number");
            assert!(named, "both types: {error}");
            held += 1;
            did.take();
        }
    }
    assert!(held > 0);
}

/// A letter that is translated badly, and what becomes of it once that is mended.
mod bad {
    use super::{Board, Cx, Result, agent, did, orchestrator, step};

    #[step]
    pub(super) async fn fetch(cx: &Cx, page: u32) -> Result<u32> {
        did(cx, "fetch")?;
        Ok(page * 10)
    }

    #[step(name = "translate")]
    pub(super) async fn translate(cx: &Cx, text: String) -> Result<String> {
        did(cx, "bad")?;
        Ok(format!("{text}, badly"))
    }

    #[agent(name = "translator")]
    pub(super) async fn translator(cx: &Cx, text: String) -> Result<String> {
        let read = fetch(cx, 7).await?;
        Ok(format!("{read} {}", translate(cx, text).await?))
    }

    #[orchestrator(name = "letter")]
    pub(super) async fn letter(board: &Board, text: String) -> Result<String> {
        Ok(board.assign(translator, text).await?)
    }
}

mod mended {
    use super::{Board, Cx, Result, agent, bad::fetch, did, orchestrator, step};

    #[step(name = "translate")]
    pub(super) async fn translate(cx: &Cx, text: String) -> Result<String> {
        did(cx, "good")?;
        Ok(format!("{text}, well"))
    }

    #[agent(name = "translator")]
    pub(super) async fn translator(cx: &Cx, text: String) -> Result<String> {
        let read = fetch(cx, 7).await?;
        Ok(format!("{read} {}", translate(cx, text).await?))
    }

    #[orchestrator(name = "letter")]
    pub(super) async fn letter(board: &Board, text: String) -> Result<String> {
        Ok(board.assign(translator, text).await?)
    }
}

#[tokio::test(start_paused = true)]
async fn what_went_wrong_is_done_again_by_the_code_that_is_mended_and_what_went_well_is_not() {
    let store = Arc::new(Memory::new().unwrap());
    let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
    let done = Arc::new(Did::default());
    let old = Neuron::builder().unlinked().build("letters 1").state(done.clone());
    let old = old.register(bad::letter).over(ledger.clone()).await.unwrap();
    let bad = old.run(bad::letter, "Dear".into()).id("bad").await.unwrap();
    assert_eq!(bad, "70 Dear, badly");
    done.take();
    let new = Neuron::builder().unlinked().build("letters 2").state(done.clone());
    let new = new.register(mended::letter).over(ledger.clone()).await.unwrap();
    let completed = Select::Kind(neuron::Kind::new("step.completed").unwrap());
    let read = ledger.read(completed).envelopes().next().unwrap().unwrap().pos;
    let good = new
        .fork(&RunId::new("bad").unwrap())
        .at(read)
        .start::<String>()
        .await
        .unwrap();
    let id = good.id().clone();
    assert_eq!(good.await.unwrap(), "70 Dear, well");
    assert_eq!(done.take(), ["good"]);
    let runs = ledger.fold(&orchestrator::runs::Runs, None).unwrap().state;
    assert_eq!(runs[&id].build, "letters 2");
    assert_eq!(runs[&RunId::new("bad").unwrap()].build, "letters 1");
}
