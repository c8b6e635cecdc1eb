//! The ledger through its public surface, on the store in memory.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    io::Read as _,
    sync::{Arc, Mutex},
};

use neuron::{
    Append, Author, Cause, Contract, Draft, Error, ErrorKind, Expectation, Fold, Ledger, ManualClock, Millis, Parent,
    Pattern, Topic,
    fold::Count,
    ledger::{Direction, From},
    pipeline::{Pipeline, Stage},
    store::{Memory, Select},
};
use serde_json::json;

struct World {
    ledger: Ledger,
    clock: Arc<ManualClock>,
    notes: Topic,
}

fn ada() -> Author {
    Author::human("ada").unwrap()
}

async fn world() -> World {
    world_with(Pipeline::default()).await
}

async fn world_with(pipeline: Pipeline) -> World {
    let clock = Arc::new(ManualClock::at(Millis(1_000)));
    let store = Arc::new(Memory::with(clock.clone(), None).unwrap());
    let ledger = Ledger::over(store, clock.clone(), pipeline).unwrap();
    ledger
        .declare(&Pattern::new("notes.*").unwrap(), Contract::Durable, &ada())
        .await
        .unwrap();
    ledger
        .declare(&Pattern::new("air.*").unwrap(), Contract::RETAINED, &ada())
        .await
        .unwrap();
    World {
        ledger,
        clock,
        notes: Topic::new("notes.today").unwrap(),
    }
}

impl World {
    fn note(&self, text: &str) -> Draft {
        Draft::new(self.notes.clone(), ada(), "note.taken")
            .unwrap()
            .payload(&text.to_owned())
            .unwrap()
    }

    async fn take(&self, text: &str) -> neuron::Receipt {
        self.ledger.publish(self.note(text)).await.unwrap()
    }

    fn texts(&self) -> Vec<String> {
        let envelopes = self.ledger.read(Select::Topic(self.notes.clone())).envelopes();
        envelopes.map(|envelope| envelope.unwrap().decode().unwrap()).collect()
    }
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[tokio::test]
async fn what_was_appended_is_read_back_in_order() {
    let world = world().await;
    for text in ["one", "two", "three"] {
        world.take(text).await;
    }
    assert_eq!(world.texts(), ["one", "two", "three"]);
    let newest = world
        .ledger
        .read(Select::Topic(world.notes.clone()))
        .newest_first()
        .limit(1)
        .envelopes();
    let newest: Vec<String> = newest.map(|envelope| envelope.unwrap().decode().unwrap()).collect();
    assert_eq!(newest, ["three"]);
}

#[tokio::test]
async fn an_undeclared_topic_is_refused_with_what_to_do() {
    let world = world().await;
    let stray = Draft::new(Topic::new("stray").unwrap(), ada(), "note.taken").unwrap();
    let error = world.ledger.publish(stray).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnknownTopic);
    assert!(error.to_string().contains("declare it"), "{error}");
}

#[tokio::test]
async fn a_contract_is_fixed_at_creation() {
    let world = world().await;
    let pattern = Pattern::new("notes.*").unwrap();
    world.ledger.declare(&pattern, Contract::Durable, &ada()).await.unwrap();
    let again = world.ledger.declare(&pattern, Contract::EPHEMERAL, &ada()).await;
    assert_eq!(kind(again), ErrorKind::Contract);
    let built_in = Pattern::new("stream.x").unwrap();
    assert_eq!(
        kind(world.ledger.declare(&built_in, Contract::Durable, &ada()).await),
        ErrorKind::Contract
    );
}

#[tokio::test]
async fn the_bus_refuses_a_durable_topic_and_the_ledger_an_ephemeral_one() {
    let world = world().await;
    assert_eq!(kind(world.ledger.bus().publish(world.note("x"))), ErrorKind::Contract);
    let air = Draft::new(Topic::new("air.wind").unwrap(), ada(), "wind").unwrap();
    assert_eq!(kind(world.ledger.publish(air).await), ErrorKind::Contract);
}

#[tokio::test]
async fn nobody_but_the_engine_appends_to_its_topics() {
    let world = world().await;
    let forged = Draft::new(Topic::new("$leases").unwrap(), ada(), "lease.claimed").unwrap();
    assert_eq!(kind(world.ledger.publish(forged).await), ErrorKind::Contract);
}

#[tokio::test]
async fn a_reserved_header_is_refused_at_birth_and_later() {
    let world = world().await;
    for key in [
        "authz",
        "principal",
        "tokens-in",
        "tokens-anything",
        "cost-usd",
        "key",
        "epoch",
        "caused-by",
    ] {
        assert_eq!(kind(world.note("x").header(key, &1)), ErrorKind::Reserved, "{key}");
    }
    let receipt = world.take("x").await;
    let target = world
        .ledger
        .store()
        .row(&world.notes, receipt.seq)
        .unwrap()
        .unwrap()
        .envelope()
        .unwrap();
    let injected = world
        .ledger
        .inject(&target, "authz", &"granted", "forged", &ada())
        .await;
    assert_eq!(kind(injected), ErrorKind::Reserved);
}

#[tokio::test]
async fn headers_inject_only_and_both_readings_stay_true() {
    let world = world().await;
    let note = world.note("x").header("role", &"spec").unwrap();
    let receipt = world.ledger.publish(note).await.unwrap();
    let target = world
        .ledger
        .store()
        .row(&world.notes, receipt.seq)
        .unwrap()
        .unwrap()
        .envelope()
        .unwrap();
    let injection = world
        .ledger
        .inject(&target, "role", &"evidence", "it was used", &ada())
        .await
        .unwrap();
    let headers = world.ledger.headers(&target, None).unwrap();
    assert_eq!(headers.decode::<String>("role").unwrap(), "evidence");
    assert_eq!(headers.history("role").count(), 2);
    let then = world.ledger.headers(&target, Some(receipt.pos)).unwrap();
    assert_eq!(then.decode::<String>("role").unwrap(), "spec");
    let injection = world
        .ledger
        .store()
        .row(&world.notes, injection.seq)
        .unwrap()
        .unwrap()
        .envelope()
        .unwrap();
    let nested = world
        .ledger
        .inject(&injection, "role", &"y", "an injection is no target", &ada())
        .await;
    assert_eq!(kind(nested), ErrorKind::Malformed);
}

#[tokio::test]
async fn a_walk_follows_causality_both_ways_and_leaves_injections_out() {
    let world = world().await;
    let other = Topic::new("notes.other").unwrap();
    let first = Draft::new(other.clone(), ada(), "asked").unwrap();
    let second = world.note("answer").cause(Cause::Index(0));
    let third = world.note("more").parent(Parent::Index(1));
    let receipts = world.ledger.append(Append::of([first, second, third])).await.unwrap();
    let at = |index: usize| {
        let receipt: &neuron::Receipt = &receipts[index];
        world
            .ledger
            .store()
            .row(&receipt.topic, receipt.seq)
            .unwrap()
            .unwrap()
            .envelope()
            .unwrap()
    };
    world
        .ledger
        .inject(&at(1), "mood", &"glad", "seen", &ada())
        .await
        .unwrap();
    let shown = |start: usize, direction, injections| {
        let steps = world
            .ledger
            .walk(&at(start).reference(), direction, injections, 100)
            .unwrap();
        steps
            .iter()
            .map(|step| step.envelope.pos - receipts[0].pos)
            .collect::<Vec<_>>()
    };
    assert_eq!(shown(2, Direction::Causes, false), [2, 1, 0]);
    assert_eq!(shown(0, Direction::Effects, false), [0, 1, 2]);
    assert_eq!(shown(0, Direction::Effects, true), [0, 1, 2, 3]);
}

#[tokio::test]
async fn the_store_at_a_time_is_a_prefix_even_when_the_clock_jumps_back() {
    let world = world().await;
    world.take("one").await;
    world.clock.set(Millis(5_000));
    world.take("two").await;
    world.clock.set(Millis(2_000));
    let third = world.take("three").await;
    assert_eq!(third.at, Millis(5_000));
    let until = |time| {
        let reading = world
            .ledger
            .read(Select::Topic(world.notes.clone()))
            .until(Millis(time))
            .unwrap();
        reading.envelopes().count()
    };
    assert_eq!((until(999), until(1_000), until(4_999), until(5_000)), (0, 1, 1, 3));
    let since = world
        .ledger
        .read(Select::Topic(world.notes.clone()))
        .since(Millis(1_001))
        .unwrap();
    assert_eq!(since.envelopes().count(), 2);
    let counted = world.ledger.fold_at(&Count, Millis(4_000)).unwrap();
    assert_eq!(
        counted
            .state
            .iter()
            .find(|(kind, _)| *kind == "note.taken")
            .map(|(_, count)| *count),
        Some(1)
    );
}

#[tokio::test]
async fn a_fold_goes_on_from_where_it_stands() {
    let world = world().await;
    world.take("one").await;
    let mut folded = world.ledger.fold(&Count, None).unwrap();
    world.take("two").await;
    world.ledger.fold_on(&Count, &mut folded, None).unwrap();
    assert_eq!(folded, world.ledger.fold(&Count, None).unwrap());
}

#[tokio::test]
async fn a_subscription_catches_up_and_goes_on_live_without_gap() {
    let world = world().await;
    world.take("before").await;
    let mut subscription = world
        .ledger
        .subscribe(Pattern::new("notes.**").unwrap(), From::Start)
        .unwrap();
    let first: String = subscription.next().await.unwrap().decode().unwrap();
    assert_eq!(first, "before");
    let ledger = world.ledger.clone();
    let note = world.note("live");
    let (next, published) = tokio::join!(subscription.next(), ledger.publish(note));
    assert_eq!(next.unwrap().seq, published.unwrap().seq);
    assert!(subscription.try_next().unwrap().is_none());
}

#[tokio::test]
async fn a_subscription_that_lags_behind_the_ring_reads_the_log() {
    let world = world().await;
    let mut subscription = world
        .ledger
        .subscribe(Pattern::exactly(&world.notes), From::Now)
        .unwrap();
    let count = neuron::limits::RING_MAX * 2;
    for chunk in (0..count).collect::<Vec<_>>().chunks(1_000) {
        let drafts = chunk.iter().map(|index| world.note(&index.to_string()));
        world.ledger.append(Append::of(drafts)).await.unwrap();
    }
    for index in 0..count {
        let text: String = subscription.next().await.unwrap().decode().unwrap();
        assert_eq!(text, index.to_string());
    }
}

#[tokio::test]
async fn a_handler_sees_what_is_published_and_emit_waits_for_it() {
    let world = world().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let into = heard.clone();
    let guard = world
        .ledger
        .bus()
        .subscribe(Pattern::new("air.*").unwrap(), move |envelope| {
            let into = into.clone();
            async move {
                tokio::task::yield_now().await;
                into.lock().unwrap().push(envelope.seq);
            }
        });
    let wind = || Draft::new(Topic::new("air.wind").unwrap(), ada(), "wind").unwrap();
    world.ledger.bus().emit(wind()).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [1]);
    drop(guard);
    world.ledger.bus().emit(wind()).await.unwrap();
    assert_eq!(*heard.lock().unwrap(), [1]);
}

#[tokio::test]
async fn a_committed_envelope_is_heard_on_the_bus() {
    let world = world().await;
    let mut listener = world.ledger.bus().listen(Pattern::new("notes.*").unwrap());
    let receipt = world.take("x").await;
    assert_eq!(listener.next().await.unwrap().id(), receipt.id);
}

#[tokio::test]
async fn a_listener_that_is_too_slow_is_told_what_it_lost() {
    let world = world().await;
    let mut listener = world.ledger.bus().listen(Pattern::new("air.*").unwrap());
    let wind = || Draft::new(Topic::new("air.wind").unwrap(), ada(), "wind").unwrap();
    for _ in 0..neuron::limits::EPHEMERAL_QUEUE_MAX + 3 {
        world.ledger.bus().publish(wind()).unwrap();
    }
    for _ in 0..neuron::limits::EPHEMERAL_QUEUE_MAX {
        listener.next().await.unwrap();
    }
    assert_eq!(listener.next().await.unwrap_err().0, 3);
}

#[tokio::test]
async fn a_retained_value_comes_first_to_whoever_comes_later() {
    let world = world().await;
    let wind = |value: u32| {
        Draft::new(Topic::new("air.wind").unwrap(), ada(), "wind")
            .unwrap()
            .payload(&value)
            .unwrap()
    };
    world.ledger.bus().publish(wind(1)).unwrap();
    world.ledger.bus().publish(wind(2)).unwrap();
    let mut late = world.ledger.bus().listen(Pattern::new("air.*").unwrap());
    assert_eq!(late.next().await.unwrap().decode::<u32>().unwrap(), 2);
    assert!(late.try_next().unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_retained_value_expires_while_nobody_subscribes() {
    let world = world().await;
    let contract = Contract::Ephemeral {
        retain_last: true,
        ttl_ms: Some(Millis(50)),
    };
    world
        .ledger
        .declare(&Pattern::new("brief.*").unwrap(), contract, &ada())
        .await
        .unwrap();
    let brief = || Draft::new(Topic::new("brief.note").unwrap(), ada(), "brief").unwrap();
    let pattern = || Pattern::new("brief.*").unwrap();
    let early = world.ledger.bus().listen(pattern());
    world.ledger.bus().publish(brief()).unwrap();
    tokio::time::advance(std::time::Duration::from_millis(100)).await;
    assert!(
        world.ledger.bus().listen(pattern()).try_next().unwrap().is_some(),
        "somebody listened all the time"
    );
    drop(early);
    world.ledger.bus().publish(brief()).unwrap();
    tokio::time::advance(std::time::Duration::from_millis(49)).await;
    assert!(world.ledger.bus().listen(pattern()).try_next().unwrap().is_some());
    world.ledger.bus().publish(brief()).unwrap();
    tokio::time::advance(std::time::Duration::from_millis(50)).await;
    assert!(world.ledger.bus().listen(pattern()).try_next().unwrap().is_none());
}

#[tokio::test]
async fn an_artifact_is_stored_once_and_streams_out_as_it_went_in() {
    let world = world().await;
    let content: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
    let hash = world.ledger.store_blob(&*content).unwrap();
    assert_eq!(hash, neuron::Digest::content(&content));
    assert_eq!(world.ledger.store_blob(&*content).unwrap(), hash);
    let mut read = Vec::new();
    world.ledger.blob(&hash).unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(read, content);
    assert_eq!(kind(world.ledger.blob(&neuron::Digest::ZERO)), ErrorKind::NotFound);
}

#[tokio::test]
async fn a_fork_is_legal_and_a_settlement_leaves_one_head_and_every_loser_readable() {
    let world = world().await;
    let [spec, left, right, next] =
        ["spec", "left", "right", "next"].map(|text| world.ledger.store_blob(text.as_bytes()).unwrap());
    for new in [&left, &right] {
        world.ledger.supersede(&spec, new, "revised", &ada()).await.unwrap();
    }
    assert_eq!(world.ledger.lineage().unwrap().heads(&spec), [left, right].into());
    world.ledger.settle(&right, "right is right", &ada()).await.unwrap();
    let lineage = world.ledger.lineage().unwrap();
    assert_eq!(lineage.heads(&left), [right].into());
    assert_eq!(lineage.family(&spec), [spec, left, right].into());
    let mut loser = String::new();
    world.ledger.blob(&left).unwrap().read_to_string(&mut loser).unwrap();
    assert_eq!(loser, "left");
    world
        .ledger
        .supersede(&right, &next, "revised again", &ada())
        .await
        .unwrap();
    assert_eq!(world.ledger.lineage().unwrap().heads(&spec), [next].into());
}

#[tokio::test]
async fn a_stage_may_add_headers_or_refuse_the_whole_batch() {
    struct Gate;
    impl Stage for Gate {
        fn name(&self) -> &'static str {
            "gate"
        }
        fn pass(&self, draft: Draft) -> Result<Draft, Error> {
            if *draft.kind() == "note.refused" {
                return Err(Error::new(ErrorKind::Denied, "no"));
            }
            draft.header("gate", &"seen")
        }
    }
    let world = world_with(Pipeline::default().stage(Pattern::new("notes.*").unwrap(), Gate)).await;
    let receipt = world.take("x").await;
    let envelope = world
        .ledger
        .store()
        .row(&world.notes, receipt.seq)
        .unwrap()
        .unwrap()
        .envelope()
        .unwrap();
    assert_eq!(envelope.headers.decode::<String>("gate").unwrap(), "seen");
    let refused = Draft::new(world.notes.clone(), ada(), "note.refused").unwrap();
    assert_eq!(
        kind(world.ledger.append(Append::of([world.note("y"), refused])).await),
        ErrorKind::Denied
    );
    assert_eq!(world.texts(), ["x"]);
}

#[tokio::test]
async fn the_stored_record_is_canonical_and_its_hash_is_the_id() {
    let world = world().await;
    let note = Draft::new(world.notes.clone(), ada(), "note.taken")
        .unwrap()
        .payload(&json!({"b": 1.0, "a": [true, null]}));
    let note = note
        .unwrap()
        .header("z", &1)
        .unwrap()
        .key("k")
        .unwrap()
        .parent(Parent::Seq(1));
    world.take("first").await;
    let receipt = world.ledger.publish(note).await.unwrap();
    let row = world.ledger.store().row(&world.notes, receipt.seq).unwrap().unwrap();
    let envelope = row.envelope().unwrap();
    assert_eq!(envelope.record().unwrap().as_str(), &*row.record);
    assert_eq!(neuron::Json::parse(&row.record).unwrap().as_str(), &*row.record);
    assert!(envelope.is_intact().unwrap());
    assert_eq!((envelope.parent_seq, envelope.key().as_deref()), (Some(1), Some("k")));
}

#[tokio::test]
async fn an_expectation_that_does_not_hold_says_what_was_found() {
    let world = world().await;
    world.take("one").await;
    let head = Expectation::Head(world.notes.clone(), 0);
    let error = world
        .ledger
        .append(Append::of([world.note("two")]).expect(head))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(
        error
            .to_string()
            .contains("expected head of notes.today to be 0, found 1"),
        "{error}"
    );
    assert_eq!(world.texts(), ["one"]);
}

struct Sum;
impl Fold for Sum {
    type State = usize;
    fn init(&self) -> usize {
        0
    }
    fn apply(&self, sum: &mut usize, envelope: &neuron::Envelope) -> Result<(), Error> {
        *sum += usize::from(envelope.body.kind == "note.taken");
        Ok(())
    }
}

#[tokio::test]
async fn two_folds_go_in_one_pass() {
    let world = world().await;
    world.take("one").await;
    let both = world.ledger.fold(&(Sum, Count), None).unwrap();
    assert_eq!(both.state.0, 1);
    assert_eq!(both.state.1, world.ledger.fold(&Count, None).unwrap().state);
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Lie {
    // Says a number and writes a text: the schema catches what the type hides.
    #[schemars(with = "u32")]
    count: String,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Truth {
    count: u32,
}

#[tokio::test]
async fn a_payload_that_breaks_its_schema_is_refused_with_its_path() {
    let world = world().await;
    let lie = Lie { count: "three".into() };
    let draft = Draft::new(world.notes.clone(), ada(), "note.taken")
        .unwrap()
        .payload(&lie)
        .unwrap();
    let error = world.ledger.publish(draft).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(error.to_string().contains("count"), "{error}");
    assert!(world.texts().is_empty());
}

#[tokio::test]
async fn the_schema_of_a_payload_is_registered_with_the_append_that_first_uses_it() {
    let world = world().await;
    let truth = || {
        let draft = Draft::new(world.notes.clone(), ada(), "note.counted").unwrap();
        draft.payload(&Truth { count: 3 }).unwrap()
    };
    let before = world.ledger.store().schemas().unwrap().len();
    let receipt = world.ledger.publish(truth()).await.unwrap();
    let envelope = world
        .ledger
        .store()
        .row(&world.notes, receipt.seq)
        .unwrap()
        .unwrap()
        .envelope()
        .unwrap();
    let reference = envelope.body.payload_schema.unwrap();
    assert!(world.ledger.store().schema(&reference).unwrap().is_some());
    let after = world.ledger.store().schemas().unwrap().len();
    world.ledger.publish(truth()).await.unwrap();
    assert_eq!(
        (after, world.ledger.store().schemas().unwrap().len()),
        (before + 1, after)
    );
}

#[tokio::test]
async fn an_inline_schema_is_the_same_as_its_registered_one() {
    let world = world().await;
    let definition = neuron::Json::parse(r#"{"type":"string","maxLength":3}"#).unwrap();
    let inline = || neuron::SchemaUse::inline(definition.clone()).unwrap();
    let draft = |text: &str, schema: neuron::SchemaUse| {
        let draft = Draft::new(world.notes.clone(), ada(), "note.taken").unwrap();
        draft.json(neuron::Json::of(text).unwrap(), Some(schema))
    };
    let by_ref = || neuron::SchemaUse::Ref(inline().reference());
    assert_eq!(
        kind(world.ledger.publish(draft("abc", by_ref())).await),
        ErrorKind::Schema
    );
    world.ledger.publish(draft("abc", inline())).await.unwrap();
    world.ledger.publish(draft("abc", by_ref())).await.unwrap();
    assert_eq!(
        kind(world.ledger.publish(draft("abcd", by_ref())).await),
        ErrorKind::Schema
    );
    assert_eq!(world.texts(), ["abc", "abc"]);
}

#[tokio::test]
async fn a_body_that_lacks_what_its_contract_requires_is_refused() {
    let world = world().await;
    let contract = neuron::schema::BodyContract::new(["report"]).schema().unwrap();
    let contract = neuron::SchemaUse::Inline(Arc::new(contract));
    let bare = world.note("x").contract(contract.clone());
    assert_eq!(kind(world.ledger.publish(bare).await), ErrorKind::Schema);
    let hash = world.ledger.store_blob(&b"report"[..]).unwrap();
    let report = neuron::Artifact {
        name: "r".into(),
        hash: Some(hash),
        kind: Some("report".into()),
    };
    world
        .ledger
        .publish(world.note("x").contract(contract).artifact(report))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_callback_that_panics_takes_its_own_append_down_and_no_other() {
    let world = world().await;
    let (ledger, note) = (world.ledger.clone(), world.note("one"));
    let panicking = Append::of([note]).then(|_| panic!("on purpose"));
    assert!(
        tokio::spawn(async move { ledger.append(panicking).await })
            .await
            .is_err()
    );
    world.take("two").await;
    assert_eq!(world.texts(), ["one", "two"]);
}
