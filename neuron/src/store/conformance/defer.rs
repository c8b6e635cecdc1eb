use std::sync::{
    Arc, Weak,
    atomic::{AtomicBool, Ordering},
};

use futures::executor::block_on;

use super::fixture::{Case, Fixture, batch, draft, refused, same, topic, wrong};
use crate::{
    Append, Cause, Deferred, Error, ErrorKind, Expectation, Millis, Parent, Result,
    store::{Memory, Store},
};

pub(super) const CASES: &[Case] = &[
    (
        "a deferred append stands before what was appended after it, in the same commit",
        order,
    ),
    ("a later draft names a deferred one as parent or cause", handles),
    (
        "a refused deferred append is told to its owner's next append, once",
        refusals,
    ),
    (
        "a refused deferred append is told to its owner's next append, in the same group too",
        refusals_at_once,
    ),
    (
        "a refused deferred append of an old owner is not told to the new one",
        refusals_of_old,
    ),
    (
        "a refused deferred append without an owner is told by its handle, and to nobody else",
        refusals_unowned,
    ),
    ("the handle of another store is refused", elsewhere),
    ("a deferred append commits by itself when nothing else does", alone),
    ("a flush commits what is deferred", flushed),
    ("an append returns though others never stop appending", endless),
];

fn defer(f: &Fixture, append: Append) -> Result<Vec<Deferred>, Error> {
    f.store.defer(f.batch(append)?)
}

fn order(f: &Fixture) -> Result<(), Error> {
    let handles = defer(f, Append::of([draft("a", "x", "1")?, draft("b", "x", "2")?]))?;
    let after = Append::of([draft("a", "x", "3")?]).expect(Expectation::Head(topic("a")?, 1));
    let receipt = f.append(after)?.remove(0);
    same("place", &(receipt.seq, receipt.pos), &(2, 3))?;
    let places: Vec<_> = handles.iter().map(|handle| handle.place().map(|r| r.pos)).collect();
    same("handles", &places, &vec![Some(1), Some(2)])?;
    same("commits", &f.setup.fault.commits(), &1)
}

fn handles(f: &Fixture) -> Result<(), Error> {
    let first = defer(f, Append::of([draft("a", "x", "1")?]))?.remove(0);
    let receipts = f.append(Append::of([
        draft("a", "x", "2")?.parent(Parent::Deferred(first.clone())),
        draft("b", "x", "3")?.cause(Cause::Deferred(first.clone())),
    ]))?;
    same("parent", &f.envelope(&receipts[0])?.parent_seq, &Some(1))?;
    same(
        "cause",
        &f.envelope(&receipts[1])?.cause().map(|cause| cause.seq),
        &Some(1),
    )?;
    f.one(draft("c", "x", "4")?.cause(Cause::Deferred(first.clone())))?;
    same(
        "cause after the commit",
        &f.rows()?.pop().and_then(|row| row.cause),
        &Some(1),
    )?;
    let elsewhere = draft("b", "x", "5")?.parent(Parent::Deferred(first));
    refused(f.append(Append::of([elsewhere])), ErrorKind::Malformed)?;
    let unknown = draft("b", "x", "6")?.cause(Cause::Deferred(Deferred::default()));
    refused(f.append(Append::of([unknown])), ErrorKind::Malformed).map(|_| ())
}

fn refusals(f: &Fixture) -> Result<(), Error> {
    let bad = Append::of([draft("a", "x", "1")?]).expect(Expectation::Head(topic("a")?, 5));
    let handle = defer(f, bad.owner("run:1", 0))?.remove(0);
    f.one(draft("a", "x", "of another owner")?)?;
    same("no place", &handle.place(), &None)?;
    let mine = || Ok::<_, Error>(Append::of([draft("a", "x", "mine")?]).owner("run:1", 0));
    refused(f.append(mine()?), ErrorKind::Conflict)?;
    f.append(mine()?)?;
    let named = draft("a", "x", "after it")?.parent(Parent::Deferred(handle));
    refused(f.append(Append::of([named])), ErrorKind::Conflict)?;
    same("rows", &f.rows()?.len(), &2)
}

fn refusals_at_once(f: &Fixture) -> Result<(), Error> {
    let mine = || Ok::<_, Error>(Append::of([draft("a", "x", "mine")?]).owner("run:1", 0));
    defer(f, mine()?.expect(Expectation::Head(topic("a")?, 5)))?;
    defer(f, mine()?)?;
    refused(f.append(mine()?), ErrorKind::Conflict)?;
    same("rows", &f.rows()?.len(), &0)?;
    f.append(mine()?).map(|_| ())
}

fn refusals_of_old(f: &Fixture) -> Result<(), Error> {
    let owned = |epoch| Ok::<_, Error>(Append::of([draft("a", "x", "1")?]).owner("run:1", epoch));
    defer(f, owned(7)?)?;
    f.store.flush();
    f.append(owned(0)?).map(|_| ())
}

fn refusals_unowned(f: &Fixture) -> Result<(), Error> {
    let handle = defer(
        f,
        Append::of([draft("a", "x", "1")?]).expect(Expectation::Head(topic("a")?, 5)),
    )?
    .remove(0);
    same("before the commit", &handle.refusal().is_none(), &true)?;
    f.one(draft("a", "x", "of a stranger")?)?;
    let kind = handle.refusal().map(|error| error.kind());
    same("told", &kind, &Some(ErrorKind::Conflict))
}

fn elsewhere(f: &Fixture) -> Result<(), Error> {
    let other = Memory::new()?;
    let handle = other
        .defer(f.batch(Append::of([draft("a", "x", "there")?]))?)?
        .remove(0);
    other.flush();
    same("there", &handle.place().map(|receipt| receipt.pos), &Some(1))?;
    // Its place exists here too, and is another envelope's.
    f.one(draft("a", "x", "here")?)?;
    let child = draft("a", "x", "2")?.parent(Parent::Deferred(handle.clone()));
    refused(f.append(Append::of([child])), ErrorKind::Malformed)?;
    let effect = draft("b", "x", "3")?.cause(Cause::Deferred(handle));
    refused(defer(f, Append::of([effect])), ErrorKind::Malformed).map(|_| ())
}

fn alone(f: &Fixture) -> Result<(), Error> {
    let mut tail = f.store.tail();
    let handle = defer(f, Append::of([draft("a", "x", "1")?]))?.remove(0);
    block_on(tail.wait_for(|tail| *tail == 1)).map_err(|_| wrong("the store has closed"))?;
    same("place", &handle.place().map(|receipt| receipt.pos), &Some(1))?;
    same("rows", &f.rows()?.len(), &1)
}

/// Defers one append for each that is committed, until it is told to stop.
fn go_on(store: &Weak<dyn Store>, stop: &Arc<AtomicBool>) {
    let Some(open) = store.upgrade().filter(|_| !stop.load(Ordering::SeqCst)) else {
        return;
    };
    let (store, stop) = (store.clone(), stop.clone());
    let next = draft("endless", "x", "and on").and_then(|draft| {
        let append = Append::of([draft]).then(move |_| go_on(&store, &stop));
        open.defer(batch(append, Millis(0))?)
    });
    // A store that is closed takes no more, and that is the end of it.
    drop(next);
}

fn endless(f: &Fixture) -> Result<(), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    let (store, until) = (Arc::downgrade(&f.store), stop.clone());
    let append = Append::of([draft("a", "x", "1")?]).then(move |_| go_on(&store, &until));
    let returned = f.append(append);
    let beside = f.one(draft("a", "x", "2")?);
    stop.store(true, Ordering::SeqCst);
    same("places", &(returned?[0].seq, beside?.seq), &(1, 2))
}

fn flushed(f: &Fixture) -> Result<(), Error> {
    let handle = defer(f, Append::of([draft("a", "x", "1")?]))?.remove(0);
    f.store.flush();
    same("place", &handle.place().map(|receipt| receipt.pos), &Some(1))
}
