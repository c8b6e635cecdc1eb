use neuron::{Author, Ledger, RunId, store::Options};
use neuron_workspace::Process;
use orchestrator::{Target, order, package::Phase, protocol::Order};

use super::{World, child::Setting};

fn gated() -> Setting {
    Setting {
        name: "gated",
        ..Setting::default()
    }
}

fn at_the_gate(world: &World) -> Process {
    let mut child = world.start(&gated());
    child.wait_for("at the gate");
    child
}

#[test]
fn killed_and_started_at_once_a_run_goes_on_without_a_wait() {
    let world = World::new();
    let mut first = at_the_gate(&world);
    first.kill();
    world.open_gate();
    let mut second = world.start(&gated());
    second.wait_for("output 13");
    let deeds = world.deeds();
    assert_eq!((deeds["look ada"], deeds["pass"], deeds["look ada after"]), (1, 2, 1));
}

#[test]
fn a_second_process_waits_for_the_first_and_takes_over_when_it_is_killed() {
    let world = World::new();
    let mut first = at_the_gate(&world);
    let mut second = world.start(&gated());
    second.wait_for("running");
    first.kill();
    second.wait_for("at the gate");
    world.open_gate();
    second.wait_for("output 13");
    assert_eq!(world.deeds()["look ada"], 1);
}

#[test]
fn a_second_process_that_only_attached_is_told_the_same_output() {
    let world = World::new();
    let mut first = at_the_gate(&world);
    let mut second = world.start(&gated());
    second.wait_for("running");
    world.open_gate();
    first.wait_for("output 13");
    second.wait_for("output 13");
    assert_eq!(world.deeds()["pass"], 1);
}

#[test]
fn a_stopped_process_is_taken_over_and_its_appends_are_refused_when_it_goes_on() {
    let world = World::new();
    let mut first = at_the_gate(&world);
    first.pause();
    let mut second = world.start(&gated());
    second.wait_for("at the gate");
    world.open_gate();
    second.wait_for("output 13");
    first.resume();
    first.wait_for("error Fenced");
    let answers = world.answers();
    assert!(answers.values().all(|count| *count == 1), "{answers:?}");
}

#[test]
fn a_process_stopped_inside_a_commit_is_named_and_the_run_goes_on_once_it_is_killed() {
    let world = World::new();
    let mut first = world.start(&Setting {
        linger: Some(4),
        ..gated()
    });
    first.wait_for("inside a commit");
    first.pause();
    let mut second = world.start(&gated());
    let told = second.wait_for("error Busy");
    assert!(told.contains(&first.id().to_string()), "{told}");
    first.kill();
    world.open_gate();
    let mut third = world.start(&gated());
    third.wait_for("output 13");
}

#[test]
fn a_process_stopped_inside_a_commit_goes_on_as_if_nothing_had_been() {
    let world = World::new();
    let mut first = world.start(&Setting {
        linger: Some(4),
        ..gated()
    });
    first.wait_for("inside a commit");
    first.pause();
    world.open_gate();
    std::fs::write(world.path().join("commit"), "go on").unwrap();
    first.resume();
    first.wait_for("output 13");
}

#[test]
fn recover_takes_up_what_nobody_drives_and_opening_takes_up_nothing() {
    let world = World::new();
    let mut first = at_the_gate(&world);
    let recover = Setting {
        recover: true,
        ..gated()
    };
    let mut second = world.start(&recover);
    second.wait_for("recovered [] elsewhere [RunId(r)]");
    second.kill();
    first.kill();
    let mut third = world.start(&recover);
    third.wait_for("recovered [RunId(r)] elsewhere []");
    world.open_gate();
    third.wait_for("output 13");
}

#[test]
fn a_serving_process_takes_up_what_another_leaves_behind() {
    let world = World::new();
    let mut first = at_the_gate(&world);
    let mut server = world.start(&Setting { serve: true, ..gated() });
    server.wait_for("serving");
    first.kill();
    server.wait_for("at the gate");
    world.open_gate();
    let mut third = world.start(&gated());
    third.wait_for("output 13");
    assert_eq!((world.deeds()["look ada"], world.deeds()["pass"]), (1, 2));
}

fn give(world: &World, target: &Target, what: Order) {
    let ledger = Ledger::open(world.store(), Options::default()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime
        .block_on(order(&ledger, target, what, None, Author::human("ada").unwrap()))
        .unwrap();
}

#[test]
fn another_process_reads_the_board_and_cancels_the_run() {
    let world = World::new();
    let mut child = at_the_gate(&world);
    let board = world.board();
    assert_eq!(board.phase(&board.packages()[0]), Phase::Running);
    let because = Some("it rains".to_string());
    give(
        &world,
        &Target::Run(RunId::new("r").unwrap()),
        Order::Cancel { because },
    );
    child.wait_for("error Cancelled: the run was cancelled: it rains");
    let board = world.board();
    assert_eq!(board.phase(&board.packages()[0]), Phase::Cancelled);
}

#[test]
fn another_process_pauses_a_token_and_lets_it_go_on() {
    let world = World::new();
    let mut child = at_the_gate(&world);
    let target = Target::Token(world.board().packages()[0].assigned.token.clone());
    give(&world, &target, Order::Pause);
    // Killed while it is paused, the run is still paused when it is taken up again.
    child.kill();
    world.open_gate();
    let mut second = world.start(&gated());
    second.wait_for("running");
    give(&world, &target, Order::Resume);
    second.wait_for("output 13");
}
