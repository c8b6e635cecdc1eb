//! `Append` against a model: random histories on both stores, held step by step to a naive list.
//!
//! The model shares no code with the stores. It knows only what is promised: a batch is all or nothing; an idempotency
//! key is looked up first, then the owner's epoch, then expectations, then references; what fails, fails alike.
//! `NEURON_LONG=1` runs many more histories.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that fails is meant to panic"
)]

#[path = "append_model/history.rs"]
mod history;
#[path = "append_model/model.rs"]
mod model;
#[path = "append_model/subject.rs"]
mod subject;

use history::{History, histories};
use model::Model;
use proptest::{
    prelude::ProptestConfig,
    test_runner::{TestCaseError, TestRunner},
};
use subject::Subject;

fn run(make: impl Fn() -> Subject) {
    let long = std::env::var_os("NEURON_LONG").is_some();
    let config = ProptestConfig {
        cases: if long { 5_000 } else { 100 },
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let follow = |history: History| -> Result<(), TestCaseError> {
        let mut subject = make();
        let mut model = Model::default();
        model.one_handle = subject.one_handle();
        for step in &history {
            let wanted = model.step(step);
            let found = subject.step(step, &model);
            if wanted != found {
                let why = format!("{step:#?}\nwanted {wanted:?}\nfound  {found:?}");
                return Err(TestCaseError::fail(why));
            }
            subject.compare(&model).map_err(TestCaseError::fail)?;
        }
        subject.finish(&model).map_err(TestCaseError::fail)
    };
    if let Err(error) = TestRunner::new(config).run(&histories(), follow) {
        panic!("{error}");
    }
}

#[test]
fn the_sqlite_store_does_what_the_model_does() {
    let template = subject::Template::new();
    run(|| template.sqlite());
}

#[test]
fn the_store_in_memory_does_what_the_model_does() {
    run(Subject::memory);
}
