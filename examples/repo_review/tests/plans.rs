//! The agents' plans, run without an orchestrator.

use std::sync::Arc;

use neuron::def::Registry;
use neuron::plan::{Input, Outline, PlanFn, write};
use neuron::scope::{Manner, MemoryJournal, Runtime, Scope, State, contain};
use neuron::{ArtifactRef, Digest, Json, Millis};

use super::fixture::Fixture;
use crate::agents;
use crate::git::{Repository, Subject};

fn outline<M, F: PlanFn<M>>(plan: F, params: usize) -> Outline {
    let params: Vec<_> = (0..params).map(Input::Param).collect();
    write(plan, &params).unwrap().unwrap().outline().clone()
}

async fn run<M, F: PlanFn<M>>(fixture: &Fixture, plan: F, params: &[Json]) -> Json {
    let mut state = State::default();
    state.insert(Repository::open(&fixture.path()).unwrap());
    let registry = Arc::new(Registry::linked().unwrap());
    let journal = Arc::new(MemoryJournal::default());
    let runtime = Arc::new(Runtime::new(journal).code(registry).state(state));
    let scope = Scope::root(&runtime, "package", Millis(1), Manner::Replayed);
    let inputs: Vec<_> = (0..params.len()).map(Input::Param).collect();
    let written = write(plan, &inputs).unwrap().unwrap();
    contain(&scope, written.run(scope.clone(), params.to_vec()))
        .await
        .unwrap()
        .unwrap()
}

#[test]
fn each_plan_declares_its_steps_and_who_reads_file_contents_owns_the_pipe() {
    let outlines = [
        outline(agents::history, 1),
        outline(agents::structure, 1),
        outline(agents::risk, 1),
        outline(agents::dependencies, 1),
        outline(agents::docs, 1),
        outline(agents::outline, 6),
    ];
    let steps: Vec<usize> = outlines.iter().map(|outline| outline.rows.len()).collect();
    assert_eq!(steps, [4, 3, 2, 3, 3, 3]);
    let rows = outlines.iter().flat_map(|outline| &outline.rows);
    let owners: Vec<_> = rows
        .filter(|row| row.owns.contains("cat-file"))
        .map(|row| row.step.as_str())
        .collect();
    assert_eq!(owners, ["scan_files", "read_manifests", "read_documents"]);
}

#[tokio::test]
async fn the_plans_give_what_the_functions_give() {
    let fixture = Fixture::new();
    fixture
        .write(b"src/lib.rs", "// TODO\npub fn a() { b.unwrap() }\n")
        .write(b"README.md", "[x](none.md)\n");
    fixture
        .write(b"Cargo.toml", "[dependencies]\na = \"*\"\n")
        .commit()
        .write(b"caf\xe9.py", "x\n")
        .commit();
    let (subject, _, text) = fixture.review();
    let document = ArtifactRef(Digest::content(text.as_bytes()));
    assert_eq!(by_plans(&fixture, &subject).await, document);
}

async fn by_plans(fixture: &Fixture, subject: &Subject) -> ArtifactRef {
    let subject = Json::of(subject).unwrap();
    let one = [subject.clone()];
    let all = [
        subject,
        run(fixture, agents::history, &one).await,
        run(fixture, agents::structure, &one).await,
        run(fixture, agents::risk, &one).await,
        run(fixture, agents::dependencies, &one).await,
        run(fixture, agents::docs, &one).await,
    ];
    run(fixture, agents::outline, &all).await.decode().unwrap()
}
