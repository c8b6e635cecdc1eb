//! Every store does what the suite says.

use neuron::store::{Durability, Memory, Options, Sqlite, conformance};

#[test]
fn the_store_in_memory_conforms() {
    conformance::check(|setup| Memory::with(setup.clock, Some(setup.fault))).unwrap();
}

#[test]
fn the_sqlite_store_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::cell::Cell::new(0);
    conformance::check(|setup| {
        made.set(made.get() + 1);
        let options = Options {
            durability: Durability::Process,
            clock: setup.clock,
            fault: Some(setup.fault),
            ..Options::default()
        };
        Sqlite::open(folder.path().join(format!("{}.db", made.get())), options)
    })
    .unwrap();
}
