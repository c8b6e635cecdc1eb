use super::fixture::{Case, Fixture, draft, refused, same, topic};
use crate::{
    Append, Cause, Clock as _, Draft, EnvelopeRef, Error, ErrorKind, Expectation, Millis, Parent, Receipt, Result,
};

pub(super) const CASES: &[Case] = &[
    (
        "the same batch under the same key gets the first receipts, before expectations are looked at",
        same_again,
    ),
    (
        "other content under the same key is refused, naming the first",
        other_content,
    ),
    ("a repeat is seen in the very group of the first", in_group),
    ("causes and parents given by index are compared as such", by_index),
    (
        "a parent in the batch itself is the same by its seq and by its index",
        by_seq,
    ),
    (
        "batches without a key, or under another one, are never taken for repeats",
        unkeyed,
    ),
];

fn places(receipts: &[Receipt]) -> Vec<(u64, u64, Millis)> {
    receipts.iter().map(|r| (r.seq, r.pos, r.at)).collect()
}

fn drafts(text: &str) -> Result<[Draft; 2], Error> {
    Ok([
        draft("a", "x", text)?.header("mood", "calm")?,
        draft("b", "x", text)?.key("k")?,
    ])
}

fn same_again(f: &Fixture) -> Result<(), Error> {
    let append = || {
        let first = Expectation::Head(topic("a")?, 0);
        Append::of(drafts("1")?).expect(first).idempotency_key("once")
    };
    let first = f.append(append()?)?;
    f.one(draft("a", "x", "between")?)?;
    f.setup.clock.set(Millis(f.setup.clock.now().0 + 50));
    let again = f.append(append()?)?;
    same("places", &places(&again), &places(&first))?;
    same(
        "marks",
        &again.iter().map(|r| r.deduplicated).collect::<Vec<_>>(),
        &vec![true, true],
    )?;
    same("ids", &(again[0].id, again[1].id), &(first[0].id, first[1].id))?;
    let rows = f.rows()?;
    same("rows", &rows.len(), &3)?;
    let columns: Vec<_> = rows.iter().map(|row| row.idempotency.as_deref()).collect();
    same(
        "the key stands in the column of the first envelope",
        &columns,
        &vec![Some("once"), None, None],
    )?;
    let header: Option<String> = rows[1].envelope()?.headers.decode("idempotency-key");
    same("and as a header on each", &header.as_deref(), &Some("once"))
}

fn other_content(f: &Fixture) -> Result<(), Error> {
    let append = |drafts: Vec<Draft>| f.append(Append::of(drafts).idempotency_key("once")?);
    let first = append(drafts("1")?.into())?;
    let [a, b] = drafts("1")?;
    let mut variants = vec![drafts("2")?.to_vec(), vec![a.clone()], vec![b.clone(), a.clone()]];
    variants.push(vec![a.clone().header("mood", "new")?, b.clone()]);
    variants.push(vec![a.clone(), b.clone(), draft("c", "x", "more")?]);
    variants.push(vec![a, b.cause(Cause::Index(0))]);
    for variant in variants {
        let error = refused(append(variant), ErrorKind::IdempotencyConflict)?;
        same(
            "it names the first",
            &error.message().contains(&first[0].id.to_string()),
            &true,
        )?;
    }
    same("rows", &f.rows()?.len(), &2)
}

fn in_group(f: &Fixture) -> Result<(), Error> {
    let append = |text| Append::of(drafts(text)?).idempotency_key("once");
    let deferred = f.store.defer(f.batch(append("1")?)?)?;
    let again = f.append(append("1")?)?;
    same("marked", &again[0].deduplicated, &true)?;
    same("place", &deferred[0].place().map(|r| r.pos), &Some(again[0].pos))?;
    f.store.defer(f.batch(append("1")?.owner("nobody", 0))?)?;
    refused(f.append(append("2")?), ErrorKind::IdempotencyConflict)?;
    same("rows", &f.rows()?.len(), &2)
}

fn by_index(f: &Fixture) -> Result<(), Error> {
    let outside = f.one(draft("a", "x", "0")?)?;
    let reference = EnvelopeRef {
        topic: outside.topic.clone(),
        seq: outside.seq,
        id: outside.id,
    };
    let append = || {
        Append::of([
            draft("a", "x", "1")?.parent(Parent::Seq(1)),
            draft("b", "x", "2")?.cause(Cause::Index(0)),
            draft("a", "x", "3")?.parent(Parent::Index(0)),
            draft("b", "x", "4")?.cause(Cause::Envelope(reference.clone())),
        ])
        .idempotency_key("tree")
    };
    let first = f.append(append()?)?;
    let again = f.append(append()?)?;
    same("places", &places(&again), &places(&first))?;
    same("marked", &again.iter().all(|r| r.deduplicated), &true)
}

fn by_seq(f: &Fixture) -> Result<(), Error> {
    let append = |parent| {
        let reply = draft("a", "x", "reply")?.parent(parent);
        Append::of([draft("a", "x", "question")?, reply]).idempotency_key("pair")
    };
    let first = f.append(append(Parent::Seq(1))?)?;
    for parent in [Parent::Seq(1), Parent::Index(0)] {
        let again = f.append(append(parent)?)?;
        same("places", &places(&again), &places(&first))?;
    }
    same("rows", &f.rows()?.len(), &2)
}

fn unkeyed(f: &Fixture) -> Result<(), Error> {
    for _ in 0..2 {
        f.append(Append::of(drafts("1")?))?;
    }
    f.append(Append::of(drafts("1")?).idempotency_key("one")?)?;
    let other = f.append(Append::of(drafts("1")?).idempotency_key("two")?)?;
    same("written", &(other[0].pos, other[0].deduplicated), &(7, false))?;
    let one = f.append(Append::of(drafts("1")?).idempotency_key("one")?)?;
    same(
        "told apart though they stand side by side",
        &(one.len(), one[1].pos),
        &(2, 6),
    )
}
