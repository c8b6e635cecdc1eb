//! Consumers as a person sees them, and parked messages handed out again.

use std::time::Duration;

use insta::assert_snapshot;
use neuron::{Kind, Pattern, consumer::Consumer, limits, ownership::Ownership};
use orchestrator::cli::Exit;

use crate::world::World;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    runtime.unwrap().block_on(work)
}

async fn mailer(process: &Ownership) -> Consumer {
    let notes = Pattern::new("notes.*").unwrap();
    let mailer = process.consumer("mailer").unwrap().pattern(notes);
    mailer.schedule([Duration::from_mins(5)]).open().await.unwrap()
}

/// Of the notes one is acknowledged, one parked, one tried again, and one was not looked at.
fn consumed() -> World {
    let world = World::with_notes();
    let process = Ownership::join(world.ledger().clone(), limits::OWNER_TTL).unwrap();
    block_on(async {
        let mut mailer = mailer(&process).await;
        mailer.next().await.unwrap().ack().await.unwrap();
        mailer
            .next()
            .await
            .unwrap()
            .poison("there is no such address")
            .await
            .unwrap();
        mailer.next().await.unwrap().fail("the line is busy").await.unwrap();
        mailer.close().await.unwrap();
        let audit = process
            .consumer("audit")
            .unwrap()
            .kind(Kind::new("note.answered").unwrap());
        audit
            .header("urgent", &true)
            .unwrap()
            .open()
            .await
            .unwrap()
            .close()
            .await
            .unwrap();
    });
    world
}

#[test]
fn consumers_are_listed_with_what_waits_for_them() {
    let world = consumed();
    assert_snapshot!("consumers", world.ask(&["consumers"]).whole());
    assert_snapshot!("consumer", world.ask(&["consumer", "mailer"]).whole());
    assert_snapshot!("consumer_filtered", world.ask(&["consumer", "audit"]).whole());
    assert_snapshot!("consumers_json", world.ask(&["consumers", "--json"]).out);
    assert_snapshot!("consumer_json", world.ask(&["consumer", "mailer", "--json"]).out);
    assert_snapshot!("consumers_none", World::with_notes().ask(&["consumers"]).whole());
}

#[test]
fn the_process_that_has_a_consumer_open_is_named() {
    let world = World::with_notes();
    let process = Ownership::join(world.ledger().clone(), limits::OWNER_TTL).unwrap();
    block_on(async {
        let _open = mailer(&process).await;
        let told = world.ask(&["consumers", "--json"]).values().remove(0);
        assert_eq!(told[0]["owner"]["pid"], std::process::id());
    });
}

#[test]
fn a_parked_message_is_handed_out_again_when_somebody_says_so() {
    let world = consumed();
    let said = world.ask(&[
        "redrive",
        "mailer",
        "notes.today@2",
        "--because",
        "mended",
        "--as",
        "ada",
    ]);
    assert_snapshot!("redrive", said.whole());
    assert_snapshot!(
        "redrive_again",
        world.ask(&["redrive", "mailer", "notes.today@2"]).whole()
    );
    assert_snapshot!("redrive_all_none", world.ask(&["redrive", "mailer", "--all"]).whole());
    let process = Ownership::join(world.ledger().clone(), limits::OWNER_TTL).unwrap();
    let topic = block_on(async {
        let mut mailer = mailer(&process).await;
        let again = mailer.next().await.unwrap();
        let place = format!("{}@{}", again.envelope().topic, again.envelope().seq);
        again.poison("still none").await.unwrap();
        mailer.close().await.unwrap();
        place
    });
    assert_eq!(topic, "notes.today@2");
    let said = world.ask(&["redrive", "mailer", "--all", "--json"]);
    assert_eq!(said.out.trim(), r#"{"redriven":1,"left":0}"#);
}

#[test]
fn a_consumer_that_is_not_there_is_told_with_those_that_are() {
    let world = consumed();
    for args in [
        &["consumer", "nobody"][..],
        &["redrive", "nobody", "1"],
        &["redrive", "mailer", "1"],
    ] {
        let said = world.ask(args);
        assert_eq!(
            (said.exit, said.out.as_str()),
            (Exit::Negative, ""),
            "{args:?}: {}",
            said.err
        );
    }
    assert_snapshot!("consumer_unknown", world.ask(&["consumer", "nobody"]).whole());
    for args in [
        &["redrive", "mailer"][..],
        &["redrive", "mailer", "soon"],
        &["redrive", "mailer", "1", "--all"],
    ] {
        assert_eq!(world.ask(args).exit, Exit::Fault, "{args:?}");
    }
}
