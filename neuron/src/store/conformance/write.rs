use std::sync::Arc;

use futures::executor::block_on;

use super::fixture::{Case, Fixture, Seen, batch, draft, refused, same, topic, wrong};
use crate::{
    Append, Author, Cause, Clock as _, Digest, Draft, ENVELOPE_CONTEXT, EnvelopeRef, Error, ErrorKind, Expectation,
    Json, Millis, Parent, Result, limits,
    store::{INJECTED, Observer, Row, epoch_of},
    topic::catalog,
};

pub(super) const CASES: &[Case] = &[
    (
        "receipts say where envelopes stand, and their ids are the hashes of their records",
        receipts,
    ),
    (
        "seq and pos count from 1 without gaps, and a refused batch writes nothing",
        gapless,
    ),
    (
        "expectations of each kind are checked before the first insert",
        expectations,
    ),
    ("an owner of an older epoch is refused", fenced),
    ("observers see rows in commit order, before the appender is told", order),
    ("callbacks are called in commit order, also for a refusal", callbacks),
    (
        "a callback that would wait for the next commit is refused",
        callbacks_wait,
    ),
    ("at never goes back when the clock does", monotone),
    ("no birth header is later than its envelope", born),
    (
        "parents and causes stand before what names them, and are who they are said to be",
        references,
    ),
    ("an injection targets an envelope that is none", injections),
    (
        "a commit that fails takes the whole group back, and the store goes on",
        failed_commit,
    ),
    ("a batch and a record have bounds", bounds),
    ("appends of many threads each stand once, in one order", threads),
];

fn receipts(f: &Fixture) -> Result<(), Error> {
    let drafts = [
        draft("a", "x", "1")?,
        draft("b", "y", "2")?.key("k")?,
        draft("a", "x", "3")?,
    ];
    let receipts = f.append(Append::of(drafts))?;
    let places: Vec<_> = receipts
        .iter()
        .map(|r| (r.topic.as_str(), r.seq, r.pos, r.deduplicated))
        .collect();
    same(
        "places",
        &places,
        &vec![("a", 1, 1, false), ("b", 1, 2, false), ("a", 2, 3, false)],
    )?;
    for (receipt, row) in receipts.iter().zip(f.rows()?) {
        same("id", &row.id, &Digest::derive(ENVELOPE_CONTEXT, row.record.as_bytes()))?;
        same(
            "row",
            &(row.id, row.pos, row.at),
            &(receipt.id, receipt.pos, receipt.at),
        )?;
        let envelope = row.envelope()?;
        same("record", &envelope.record()?.as_str(), &&*row.record)?;
        same(
            "columns",
            &(&envelope.topic, envelope.seq, envelope.at),
            &(&row.topic, row.seq, row.at),
        )?;
        same("key", &envelope.key().as_deref(), &row.key.as_deref())?;
    }
    same("tail", &*f.store.tail().borrow(), &3)?;
    same("last", &f.store.last()?, &(3, f.setup.clock.now()))
}

fn gapless(f: &Fixture) -> Result<(), Error> {
    f.one(draft("a", "x", "1")?)?;
    let wrong_parent = draft("a", "x", "late")?.parent(Parent::Seq(9));
    refused(
        f.append(Append::of([draft("a", "x", "early")?, wrong_parent])),
        ErrorKind::Malformed,
    )?;
    refused(f.append(Append::of([])), ErrorKind::Malformed)?;
    let next = f.append(Append::of([draft("b", "x", "2")?, draft("a", "x", "3")?]))?;
    same(
        "after a refusal",
        &next.iter().map(|r| (r.seq, r.pos)).collect::<Vec<_>>(),
        &vec![(1, 2), (2, 3)],
    )?;
    same("rows", &f.rows()?.len(), &3)
}

fn expectations(f: &Fixture) -> Result<(), Error> {
    let (a, none) = (topic("a")?, topic("none")?);
    f.append(Append::of([
        draft("a", "x", "1")?.key("k")?,
        draft("a", "x", "2")?.key("other")?,
    ]))?;
    let key = |key: &str, seq| Expectation::Key(a.clone(), key.to_owned(), seq);
    for (holds, expectation) in [
        (true, Expectation::Head(a.clone(), 2)),
        (false, Expectation::Head(a.clone(), 1)),
        (true, Expectation::Head(none.clone(), 0)),
        (false, Expectation::Head(none.clone(), 1)),
        (true, key("k", Some(1))),
        (false, key("k", Some(2))),
        (false, key("k", None)),
        (true, key("absent", None)),
        (true, Expectation::Key(none.clone(), "k".into(), None)),
        (true, Expectation::Epoch("nobody".into(), 0)),
        (false, Expectation::Epoch("nobody".into(), 1)),
    ] {
        let outcome = f.append(Append::of([draft("log", "x", "!")?]).expect(expectation.clone()));
        if holds {
            outcome.map_err(|error| error.context(format!("{expectation:?}")))?;
        } else {
            let error = refused(outcome, ErrorKind::Conflict)?;
            if !error.message().contains("found") {
                return Err(wrong(format!("the refusal does not say what was found: {error}")));
            }
        }
    }
    same("written", &f.store.head(&topic("log")?)?, &6)
}

fn lease(name: &str, epoch: u64) -> Result<Draft, Error> {
    #[derive(serde::Serialize)]
    struct Lease<'a> {
        name: &'a str,
        epoch: u64,
    }
    Draft::new(catalog::leases(), Author::engine(), "lease.claimed")?
        .json(Json::of(&Lease { name, epoch })?, None)
        .key(name)
}

fn fenced(f: &Fixture) -> Result<(), Error> {
    f.one(lease("run:1", 1)?)?;
    let write = |epoch| f.append(Append::of([draft("a", "x", "1")?]).owner("run:1", epoch));
    let receipts = write(1)?;
    let epoch: Option<u64> = f.envelope(&receipts[0])?.headers.decode("epoch");
    same("epoch header", &epoch, &Some(1))?;
    // Claimed anew in the very group of the old owner's append.
    f.store.defer(f.batch(Append::of([lease("run:1", 2)?]))?)?;
    refused(write(1), ErrorKind::Fenced)?;
    write(2)?;
    same("epoch", &f.store.epoch("run:1")?, &2)?;
    same("nobody's epoch", &f.store.epoch("run:2")?, &0)?;
    let row = f.store.row(&catalog::leases(), 2)?;
    same(
        "row's epoch",
        &row.and_then(|row| epoch_of(&row)),
        &Some(("run:1".to_owned(), 2)),
    )
}

fn order(f: &Fixture) -> Result<(), Error> {
    let seen = Seen::default();
    let (observer, store) = (seen.clone(), Arc::downgrade(&f.store));
    let watching: Arc<dyn Observer> = Arc::new(move |rows: &[Arc<Row>]| {
        for row in rows {
            let readable = store
                .upgrade()
                .and_then(|store| store.row(&row.topic, row.seq).ok().flatten());
            observer.push(format!("row {} {}", row.pos, readable.is_some()));
        }
    });
    f.store.observe(Arc::downgrade(&watching));
    for text in ["1", "2"] {
        let told = seen.clone();
        f.append(
            Append::of([draft("a", "x", text)?]).then(move |outcome| told.push(format!("told {}", outcome.is_ok()))),
        )?;
    }
    let wanted = ["row 1 true", "told true", "row 2 true", "told true"];
    same("seen", &seen.all(), &wanted.map(str::to_owned).to_vec())
}

fn callbacks(f: &Fixture) -> Result<(), Error> {
    let seen = Seen::default();
    let told = |name: &'static str| {
        let seen = seen.clone();
        move |outcome: &Result<_, Error>| seen.push(format!("{name} {}", outcome.is_ok()))
    };
    let append = |text: &str| Ok::<_, Error>(Append::of([draft("a", "x", text)?]));
    f.store.defer(f.batch(append("1")?.then(told("first")))?)?;
    let refusal = append("2")?.expect(Expectation::Head(topic("a")?, 7));
    f.store
        .defer(f.batch(refusal.owner("nobody", 0).then(told("second")))?)?;
    f.append(append("3")?.then(told("third")))?;
    same(
        "seen",
        &seen.all(),
        &["first true", "second false", "third true"].map(str::to_owned).to_vec(),
    )
}

fn callbacks_wait(f: &Fixture) -> Result<(), Error> {
    let (seen, store, now) = (Seen::default(), Arc::downgrade(&f.store), f.setup.clock.now());
    let told = seen.clone();
    let append = Append::of([draft("a", "x", "1")?]).then(move |_| {
        let Some(store) = store.upgrade() else { return };
        let next = || draft("a", "x", "2").and_then(|draft| batch(Append::of([draft]), now));
        let kind = |outcome: Result<(), Error>| told.push(format!("{:?}", outcome.map_err(|error| error.kind())));
        kind(next().and_then(|batch| store.append_blocking(batch)).map(|_| ()));
        kind(next().and_then(|batch| block_on(store.append(batch))).map(|_| ()));
        kind(next().and_then(|batch| store.defer(batch)).map(|_| ()));
        store.flush();
    });
    f.append(append)?;
    f.store.flush();
    let wanted = ["Err(Misuse)", "Err(Misuse)", "Ok(())"];
    same("seen", &seen.all(), &wanted.map(str::to_owned).to_vec())?;
    same("rows", &f.rows()?.len(), &2)
}

fn monotone(f: &Fixture) -> Result<(), Error> {
    let now = f.setup.clock.now();
    f.one(draft("a", "x", "1")?)?;
    f.setup.clock.set(Millis(now.0 - 5_000));
    same("while the clock is back", &f.one(draft("b", "x", "2")?)?.at, &now)?;
    f.setup.clock.set(Millis(now.0 + 1));
    same(
        "when it has caught up",
        &f.one(draft("a", "x", "3")?)?.at,
        &Millis(now.0 + 1),
    )
}

fn born(f: &Fixture) -> Result<(), Error> {
    let now = f.setup.clock.now();
    let batch = f.batch(Append::of([draft("a", "x", "1")?.header("mood", "calm")?]))?;
    f.setup.clock.set(Millis(now.0 - 5_000));
    let receipt = f.store.append_blocking(batch)?.remove(0);
    let headers = f.envelope(&receipt)?.headers;
    same("at", &receipt.at, &now)?;
    same(
        "headers",
        &headers.iter().map(|header| header.at).collect::<Vec<_>>(),
        &vec![now],
    )
}

fn references(f: &Fixture) -> Result<(), Error> {
    let first = f.one(draft("a", "x", "1")?)?;
    let named = |id, seq| {
        Cause::Envelope(EnvelopeRef {
            topic: first.topic.clone(),
            seq,
            id,
        })
    };
    let receipts = f.append(Append::of([
        draft("b", "y", "2")?.cause(named(first.id, 1)),
        draft("c", "y", "3")?.cause(Cause::Index(0)),
        draft("b", "y", "4")?.parent(Parent::Index(0)),
        draft("a", "y", "5")?.parent(Parent::Seq(1)),
    ]))?;
    let rows = f.rows()?;
    same(
        "causes",
        &rows.iter().map(|row| row.cause).collect::<Vec<_>>(),
        &vec![None, Some(1), Some(2), None, None],
    )?;
    let third = f.envelope(&receipts[1])?;
    same(
        "cause in the record",
        &third.cause().map(|cause| cause.id),
        &Some(receipts[0].id),
    )?;
    let parents: Vec<_> = receipts[2..]
        .iter()
        .map(|r| f.envelope(r).map(|e| e.parent_seq))
        .collect::<Result<_, _>>()?;
    same("parents", &parents, &vec![Some(1), Some(1)])?;
    for bad in [
        draft("b", "y", "!")?.cause(named(Digest::content(b"another"), 1)),
        draft("b", "y", "!")?.cause(named(first.id, 9)),
        draft("b", "y", "!")?.cause(Cause::Index(0)),
        draft("b", "y", "!")?.cause(Cause::Index(1)),
        draft("b", "y", "!")?.parent(Parent::Seq(0)),
        draft("b", "y", "!")?.parent(Parent::Seq(3)),
        draft("b", "y", "!")?.parent(Parent::Index(0)),
    ] {
        refused(f.append(Append::of([bad])), ErrorKind::Malformed)?;
    }
    let elsewhere = [draft("d", "y", "!")?, draft("e", "y", "!")?.parent(Parent::Index(0))];
    refused(f.append(Append::of(elsewhere)), ErrorKind::Malformed)?;
    same("rows", &f.rows()?.len(), &5)
}

fn injections(f: &Fixture) -> Result<(), Error> {
    let target = f.one(draft("a", "x", "1")?)?;
    let injection = f.one(draft("a", INJECTED, "2")?.parent(Parent::Seq(target.seq)))?;
    refused(
        f.one(draft("a", INJECTED, "3")?.parent(Parent::Seq(injection.seq))),
        ErrorKind::Malformed,
    )?;
    let chain = [
        draft("a", INJECTED, "4")?.parent(Parent::Seq(target.seq)),
        draft("a", INJECTED, "5")?.parent(Parent::Index(0)),
    ];
    refused(f.append(Append::of(chain)), ErrorKind::Malformed)?;
    f.one(draft("a", "x", "6")?.parent(Parent::Seq(injection.seq)))
        .map(|_| ())
}

fn failed_commit(f: &Fixture) -> Result<(), Error> {
    f.one(draft("a", "x", "1")?.key("k")?)?;
    let lost = f
        .store
        .defer(f.batch(Append::of([draft("a", "x", "lost")?.key("k")?]).owner("nobody", 0))?)?;
    let new_names = Append::of([draft("a", "x", "lost too")?, draft("new", "newer", "gone")?]);
    f.setup.fault.arm();
    refused(f.append(new_names.idempotency_key("again")?), ErrorKind::Full)?;
    same("deferred of the same group", &lost[0].place(), &None)?;
    same("rows", &f.rows()?.len(), &1)?;
    same(
        "heads",
        &(f.store.head(&topic("a")?)?, f.store.head(&topic("new")?)?),
        &(1, 0),
    )?;
    same("key", &f.store.keyed(&topic("a")?, "k")?, &Some(1))?;
    let again = Append::of([draft("new", "newer", "back")?, draft("a", "x", "2")?]);
    let receipts = f.append(again.idempotency_key("again")?)?;
    same(
        "places",
        &receipts.iter().map(|r| (r.seq, r.pos)).collect::<Vec<_>>(),
        &vec![(1, 2), (2, 3)],
    )
}

fn bounds(f: &Fixture) -> Result<(), Error> {
    let many: Vec<Draft> = (0..=limits::BATCH_MAX)
        .map(|_| draft("a", "x", ""))
        .collect::<Result<_, _>>()?;
    refused(f.append(Append::of(many)), ErrorKind::TooLarge)?;
    let large = draft("a", "x", &"x".repeat(limits::RECORD_BYTES_MAX))?;
    refused(
        f.append(Append::of([draft("a", "x", "small")?, large])),
        ErrorKind::TooLarge,
    )?;
    f.one(draft("a", "x", &"x".repeat(limits::RECORD_BYTES_MAX - 512))?)?;
    let more: Vec<Draft> = (0..limits::BATCH_MAX)
        .map(|_| draft("b", "x", ""))
        .collect::<Result<_, _>>()?;
    same("a full batch", &f.append(Append::of(more))?.len(), &limits::BATCH_MAX)
}

fn threads(f: &Fixture) -> Result<(), Error> {
    const THREADS: usize = 8;
    const APPENDS: usize = 25;
    let append = |thread: usize| -> Result<(), Error> {
        let own = format!("own.{thread}");
        for n in 0..APPENDS {
            let drafts = [
                draft(&own, "x", &n.to_string())?,
                draft("all", "x", &own)?.cause(Cause::Index(0)),
            ];
            let head = Expectation::Head(topic(&own)?, n as u64);
            f.append(Append::of(drafts).expect(head))?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || append(thread))).collect();
        let mut ended = all.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.try_for_each(|outcome| outcome.unwrap_or_else(|_| Err(wrong("a thread panicked"))))
    })?;
    let rows = f.rows()?;
    let places: Vec<u64> = rows.iter().map(|row| row.pos).collect();
    same("places", &places, &(1..=2 * (THREADS * APPENDS) as u64).collect())?;
    let heads: Vec<u64> = f.store.topics()?.iter().map(|topic| topic.head).collect();
    let mut wanted = vec![(THREADS * APPENDS) as u64];
    wanted.extend([APPENDS as u64; THREADS]);
    same("heads", &heads, &wanted)
}
