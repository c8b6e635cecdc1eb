//! The stores: what all of them do, and what is particular to the SQLite one.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

mod archiving;
mod busy;
mod conforming;
mod copying;
mod frames;
mod grouping;
mod guarding;
mod mending;
mod opening;
mod sharing;
mod side;
mod verifying;
mod wal;

use std::{collections::BTreeMap, fs, path::Path};

use neuron::{
    Append, Author, Draft, Error, Json, Millis, Receipt, Topic,
    store::{Options, Range, Row, Select, Sqlite, Store, conformance},
};

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

fn draft(name: &str, text: &str) -> Draft {
    let draft = Draft::new(topic(name), Author::cli(), "said").unwrap();
    draft.json(Json::of(text).unwrap(), None)
}

fn append(store: &dyn Store, append: Append) -> Result<Vec<Receipt>, Error> {
    store.append_blocking(conformance::batch(append, Millis(1_790_000_000_000)).unwrap())
}

fn say(store: &dyn Store, name: &str, text: &str) -> Receipt {
    append(store, Append::of([draft(name, text)])).unwrap().remove(0)
}

fn rows(store: &dyn Store) -> Vec<Row> {
    let page = store.page(&Select::All, Range::ALL).unwrap();
    assert_eq!(page.next, None, "these tests keep to one page");
    page.rows
}

/// A store with some envelopes, closed again.
fn filled(path: &Path) {
    let store = Sqlite::open(path, Options::default()).unwrap();
    for n in 0..3 {
        say(&store, "a", &format!("a{n}"));
        say(&store, "b", &format!("b{n}"));
    }
}

/// Every file of a folder, with its bytes, but the lock that names who opened a store last.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .filter(|entry| entry.file_type().unwrap().is_file())
        .filter(|entry| entry.path().extension().is_none_or(|kind| kind != "open"))
        .map(|entry| {
            (
                entry.file_name().into_string().unwrap(),
                fs::read(entry.path()).unwrap(),
            )
        })
        .collect()
}
