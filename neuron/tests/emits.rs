//! What a body says on topics of the program's own: once, whatever crashes, and a refusal is an answer too.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

use neuron::{
    Append, Author, Cause, Contract, Cx, EnvelopeRef, Error, ErrorKind, Expectation, Json, Ledger, Parent, Result,
    SchemaUse, Topic, agent, limits,
    ownership::Ownership,
    scope::{MemoryJournal, Stop},
    step,
    store::{Fault, Point},
};
use world::{Log, Seen, World, cut_everywhere};

static SEEN: Seen = Seen::new();

#[step]
async fn nothing(_cx: &Cx) -> Result<()> {
    Ok(())
}

/// Says the same twice on purpose, with a step in between.
#[agent]
async fn seller(cx: &Cx) -> Result<Vec<EnvelopeRef>> {
    let mut said = Vec::new();
    for _ in 0..2 {
        let placed = cx.draft("orders", "order.placed")?.payload(&7)?;
        said.push(cx.emit(placed.header("region", &"eu")?.key("7")?).await?);
        nothing(cx).await?;
    }
    let cause = Cause::Envelope(said[0].clone());
    said.push(
        cx.emit(cx.draft("orders", "order.shipped")?.cause(cause).parent(Parent::Seq(1)))
            .await?,
    );
    Ok(said)
}

#[tokio::test]
async fn what_a_body_says_is_said_once_wherever_its_process_dies() {
    let orders = Topic::new("orders").unwrap();
    let whole = Log::with(&["orders"]).await;
    let told = whole.run(seller, ()).await.unwrap();
    let said = whole.on(&orders);
    assert_eq!(said.iter().map(neuron::Envelope::reference).collect::<Vec<_>>(), told);
    for cut in 1..=whole.len() {
        // One batch is all there or not at all; no crash leaves the first of its two envelopes alone.
        if said.iter().any(|envelope| envelope.pos == cut) {
            continue;
        }
        let log = whole.cut(cut);
        let again = log.run(seller, ()).await.unwrap();
        let kept = said.iter().filter(|envelope| envelope.pos <= cut).count();
        assert_eq!(again[..kept], told[..kept], "cut {cut}");
        assert_eq!(log.on(&orders).len(), 3, "cut {cut}");
        assert_eq!(log.count("emit.completed"), 3, "cut {cut}");
        assert!(!log.kinds().iter().any(|kind| kind.starts_with("replay.")), "cut {cut}");
    }
}

#[tokio::test]
async fn the_answer_stands_beside_what_was_said_and_names_it_as_its_cause() {
    let log = Log::with(&["orders"]).await;
    log.run(seller, ()).await.unwrap();
    let said = log.on(&Topic::new("orders").unwrap());
    let answers = log.on(&Log::steps()).into_iter();
    let answers: Vec<_> = answers
        .filter(|envelope| envelope.body.kind == "emit.completed")
        .collect();
    for (said, answer) in said.iter().zip(&answers) {
        assert_eq!(answer.cause(), Some(said.reference()));
        assert_eq!(answer.pos, said.pos + 1);
        assert_eq!(said.author.as_str(), "body-1");
        assert_eq!(
            said.headers.decode::<u64>("epoch"),
            Some(0),
            "under the epoch of its run"
        );
    }
    assert_eq!(said[0].headers.decode::<String>("region").as_deref(), Some("eu"));
    assert_eq!(said[0].key().as_deref(), Some("7"));
    assert_eq!(
        (said[2].cause(), said[2].parent_seq),
        (Some(said[0].reference()), Some(1))
    );
}

/// What it was refused, by kind.
#[agent]
async fn stumbler(cx: &Cx) -> Result<Vec<String>> {
    let number = SchemaUse::inline(Json::parse(r#"{"type":"integer"}"#)?)?;
    let text = Json::of("no number")?;
    let large = "x".repeat(limits::RECORD_BYTES_MAX);
    let missing = EnvelopeRef {
        topic: Topic::new("orders")?,
        seq: 99,
        id: neuron::Digest::content(b""),
    };
    let first = Expectation::Head(Topic::new("orders")?, 5);
    let calls = [
        cx.emit(cx.draft("nowhere", "order.placed")?),
        cx.emit(cx.draft("flickers", "order.placed")?),
        cx.emit(cx.draft("orders", "order.placed")?.json(text, Some(number))),
        cx.emit(cx.draft("orders", "order.placed")?.payload(&large)?),
        cx.emit(cx.draft("orders", "order.placed")?.cause(Cause::Envelope(missing))),
        cx.emit_if(cx.draft("orders", "order.placed")?, first),
        cx.emit(cx.draft("$leases", "order.placed")?),
        cx.emit(cx.draft("agent.body-1.control", "control.cancelled")?),
        cx.emit(cx.draft("orders", "order.placed")?.cause(Cause::Index(0))),
        cx.emit(cx.draft("orders", "order.placed")?.parent(Parent::Index(0))),
    ];
    let mut told = Vec::new();
    for call in calls {
        told.push(format!("{:?}", call.await.unwrap_err().kind()));
    }
    let reserved = cx.draft("orders", "order.placed")?.header("epoch", &7).unwrap_err();
    told.push(format!("{:?}", reserved.kind()));
    Ok(told)
}

#[tokio::test]
async fn a_refusal_is_the_recorded_answer_and_a_replay_is_told_the_same() {
    let log = Log::with(&["orders"]).await;
    log.declare("flickers", Contract::EPHEMERAL).await;
    let told = log.run(stumbler, ()).await.unwrap();
    let recorded = [
        "UnknownTopic",
        "Contract",
        "Schema",
        "TooLarge",
        "Malformed",
        "Conflict",
    ];
    assert_eq!(told[..6], recorded);
    assert_eq!(told[6..], ["Contract", "Contract", "Misuse", "Misuse", "Reserved"]);
    assert_eq!(log.count("emit.failed"), recorded.len());
    assert!(log.on(&Topic::new("orders").unwrap()).is_empty(), "nothing was said");

    // The reasons are gone by now: a body that was told no stays told no.
    let again = log.crash();
    again.declare("nowhere", Contract::Durable).await;
    assert_eq!(again.run(stumbler, ()).await.unwrap(), told);
    assert_eq!(again.count("emit.failed"), recorded.len());
}

#[step(retry(3, backoff = "1ms"))]
async fn persistent(cx: &Cx) -> Result<(u32, EnvelopeRef)> {
    let same = cx.emit(cx.draft("orders", "order.placed")?.payload(&1)?).await?;
    let fresh = cx.draft("orders", "order.tried")?.payload(&cx.attempt())?;
    cx.emit(fresh).await?;
    SEEN.note("persistent");
    if cx.attempt() < 3 {
        Err("again".into())
    } else {
        Ok((cx.attempt(), same))
    }
}

#[agent]
async fn patient(cx: &Cx) -> Result<(u32, EnvelopeRef)> {
    Ok(persistent(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn what_a_step_has_said_it_does_not_say_again_in_its_next_attempt() {
    let orders = Topic::new("orders").unwrap();
    let whole = Log::with(&["orders"]).await;
    let (attempts, same) = whole.run(patient, ()).await.unwrap();
    assert_eq!((attempts, SEEN.starting("persistent")), (3, 3));
    let kinds = |log: &Log| -> Vec<String> {
        let said = log.on(&orders).into_iter();
        said.map(|envelope| envelope.body.kind.to_string()).collect()
    };
    let wanted = ["order.placed", "order.tried", "order.tried", "order.tried"];
    assert_eq!(kinds(&whole), wanted);
    let said: Vec<u64> = whole.on(&orders).iter().map(|envelope| envelope.pos).collect();
    for cut in (1..=whole.len()).filter(|cut| !said.contains(cut)) {
        let log = whole.cut(cut);
        let (_, again) = log.run(patient, ()).await.unwrap();
        assert_eq!(again.seq, same.seq);
        assert_eq!(kinds(&log), wanted, "cut {cut}");
    }
}

/// Whether the next commit is to stand still, whether it does, and whether it may go on.
static STANDS: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

/// A commit that stands still until the body is gone that waits behind it, and then a while longer.
#[derive(Debug)]
struct Slow;

impl Fault for Slow {
    fn at(&self, point: Point) -> Result<(), Error> {
        let [wanted, reached, over] = &STANDS;
        if point == Point::BeforeCommit && wanted.swap(false, SeqCst) {
            reached.store(true, SeqCst);
            while !over.load(SeqCst) {
                thread::yield_now();
            }
            (0..20_000).for_each(|_| thread::yield_now());
        }
        Ok(())
    }
}

/// Tells that the body was dropped.
struct Dropped;

impl Drop for Dropped {
    fn drop(&mut self) {
        STANDS[2].store(true, SeqCst);
    }
}

/// Somebody else, whose commit is under way.
static OTHER: OnceLock<Ledger> = OnceLock::new();

/// In its first attempt, what it says is in the queue of the store until its time is over.
#[step(retry(2, backoff = "1ms"), timeout = "50ms")]
async fn hasty(cx: &Cx) -> Result<EnvelopeRef> {
    let _dropped = Dropped;
    if cx.attempt() == 1 {
        STANDS[0].store(true, SeqCst);
        let other = cx.draft("orders", "order.noted")?;
        thread::spawn(move || OTHER.get().unwrap().append_blocking(Append::of([other])).unwrap());
        while !STANDS[1].load(SeqCst) {
            thread::yield_now();
        }
    }
    Ok(cx.emit(cx.draft("orders", "order.placed")?.payload(&1)?).await?)
}

#[agent]
async fn in_haste(cx: &Cx) -> Result<EnvelopeRef> {
    Ok(hasty(cx).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_for_its_commit_when_an_attempt_ends_is_not_said_again_by_the_next() {
    let log = Log::with_fault(&["orders"], Some(Arc::new(Slow))).await;
    OTHER.set(log.ledger.clone()).unwrap();
    let said = log.run(in_haste, ()).await.unwrap();
    let placed = log.on(&Topic::new("orders").unwrap()).into_iter();
    let placed = placed.filter(|envelope| envelope.body.kind == *"order.placed");
    assert_eq!(placed.map(|envelope| envelope.reference()).collect::<Vec<_>>(), [said]);
    assert_eq!(log.count("step.attempted"), 1, "the first ran out of time");
}

#[tokio::test]
async fn an_owner_of_the_past_says_nothing_and_its_body_is_told_nothing() {
    let log = Log::with(&["orders"]).await;
    let owners = Ownership::join(log.ledger.clone(), limits::OWNER_TTL).unwrap();
    owners.claim("run:r").await.unwrap();
    let runtime = Arc::new(log.runtime());
    match log.run_in(&runtime, seller, ()).await {
        Err(Stop::Refused(error)) => assert_eq!(error.kind(), ErrorKind::Fenced),
        other => unreachable!("{other:?}"),
    }
    assert!(log.on(&Topic::new("orders").unwrap()).is_empty());
    assert!(log.kinds().is_empty(), "{:?}", log.kinds());
}

#[agent]
async fn talker(cx: &Cx) -> Result<u64> {
    let said = cx.emit(cx.draft("notes", "note.taken")?.payload(&"x")?).await?;
    nothing(cx).await?;
    let heard = cx.wait_for("notes").await?;
    assert_eq!((heard.reference(), heard.decode::<String>()?), (said, "x".into()));
    Ok(heard.seq)
}

#[tokio::test]
async fn a_plain_log_in_memory_has_topics_too_and_a_cut_takes_back_what_was_said_after_it() {
    cut_everywhere(talker, ()).await;
    let world = World::new();
    assert_eq!(world.run(talker, ()).await.unwrap(), 1);
    let notes = |journal: &MemoryJournal| {
        journal
            .ledger()
            .unwrap()
            .store()
            .head(&Topic::new("notes").unwrap())
            .unwrap()
    };
    assert_eq!(
        (
            notes(&world.journal),
            notes(&world.crash().journal),
            notes(&world.cut(0).journal)
        ),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn the_author_is_the_body_whoever_the_draft_names() {
    let cx: Cx = neuron::test();
    let forged = neuron::Draft::new(
        Topic::new("notes").unwrap(),
        Author::human("eve").unwrap(),
        "note.taken",
    )
    .unwrap();
    cx.emit(forged).await.unwrap();
    let said = cx.wait_for("notes").await.unwrap();
    assert_ne!(said.author.as_str(), "human:eve");
}

#[agent]
async fn spelled(cx: &Cx) -> Result<()> {
    let placed = cx.draft("orders", "order.placed")?.payload(&7)?;
    cx.emit(placed.header("region", &"eu")?.key("7")?).await?;
    Ok(())
}

#[tokio::test]
async fn the_vector_of_an_emission_comes_out_as_written() {
    let log = Log::with(&["orders"]).await;
    log.run(spelled, ()).await.unwrap();
    let wire = include_str!("../docs/WIRE.md");
    let answer = log.on(&Log::steps())[0].body.payload.clone().unwrap().to_value();
    let key = answer["key"].as_str().unwrap();
    let row = wire
        .lines()
        .find(|line| line.contains("call of `$emit` in scope `run`"))
        .unwrap();
    assert!(row.contains(key.trim_end_matches("#1")), "{key}");
    let args = r#"{"headers":[["region","eu"]],"key":"7","payload":7,"topic":"orders","type":"order.placed"}"#;
    assert!(row.contains(args), "{row}");
    let text = format!(r#"["run","$emit",{args}]"#);
    let call = neuron::Digest::derive(neuron::CALL_CONTEXT, text.as_bytes());
    assert_eq!(key, format!("{call}#1"));
}
