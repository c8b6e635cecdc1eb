//! Questions to people: asked once, answered once, whoever runs meanwhile.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{sync::Arc, time::Duration};

use neuron::{
    Append, Author, Clock, Cx, ErrorKind, Json, Ledger, ManualClock, Millis, Pattern, Result, TokenId, agent,
    ledger::From,
    limits,
    pipeline::Pipeline,
    scope::{MemoryJournal, Sought},
    step,
    store::{Options, Sqlite},
    topic::catalog,
    vocabulary::{Message as _, control::ControlAnswered},
};
use world::{Log, Seen, Ticking, World};

static SEEN: Seen = Seen::new();
const MINUTE: Duration = Duration::from_mins(1);

#[step]
async fn send(_cx: &Cx, title: String, copies: u32) -> Result<String> {
    SEEN.note(format!("send {title}"));
    Ok(format!("{copies} of {title}"))
}

#[agent]
async fn press(cx: &Cx) -> Result<String> {
    let title = cx.ask_human::<String>("What is it called?").await?;
    let copies = cx.ask_human::<u32>("How many?").await?;
    Ok(send(cx, title, copies).await?)
}

/// Waits until so many questions were asked, and gives the key of the last.
async fn asked(world: &World, count: usize) -> Sought {
    loop {
        let asked = world.payloads("question.asked");
        if asked.len() >= count {
            return Sought::Answer(asked[count - 1]["key"].as_str().unwrap().into());
        }
        tokio::task::yield_now().await;
    }
}

fn json<T: serde::Serialize>(value: T) -> Json {
    Json::of(&value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn cut_anywhere_an_answer_stands_and_nothing_is_asked_twice() {
    let whole = World::new();
    let people = async {
        whole.journal.give(asked(&whole, 1).await, json("Log"));
        whole.journal.give(asked(&whole, 2).await, json(3));
    };
    let (said, ()) = tokio::join!(whole.run(press, ()), people);
    assert_eq!(said.unwrap(), "3 of Log");
    for cut in 0..=whole.len() {
        let world = whole.cut(cut);
        // What a person said stands elsewhere, and a crash here does not take it back.
        let answers = async {
            for (nth, answer) in [(1, json("Log")), (2, json(3))] {
                let question = asked(&world, nth).await;
                if cut == 0 {
                    world.journal.give(question, answer);
                }
            }
        };
        let (said, ()) = tokio::join!(world.run(press, ()), answers);
        assert_eq!(said.unwrap(), "3 of Log", "cut {cut}");
        assert_eq!(world.count("question.asked $ask"), 2, "cut {cut}: {:#?}", world.log());
        assert_eq!(
            world.count("question.answered $ask"),
            2,
            "cut {cut}: {:#?}",
            world.log()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_answer_is_refused_with_its_reason_and_the_one_behind_it_counts() {
    let world = World::new();
    let people = async {
        whole(&world, 1, json("Log")).await;
        let question = asked(&world, 2).await;
        for given in [json("many"), json(-1), json(3), json(4)] {
            world.journal.give(question.clone(), given);
        }
    };
    let (said, ()) = tokio::join!(world.run(press, ()), people);
    assert_eq!(said.unwrap(), "3 of Log", "the first that fits stands");
    let refused = world.payloads("question.refused");
    assert_eq!(refused.len(), 2);
    assert!(refused[0]["reason"].as_str().unwrap().contains("many"), "{refused:#?}");
    // Whoever goes on after the first refusal is told of the rest, not of the first again.
    let at = world
        .log()
        .iter()
        .position(|line| line.starts_with("question.refused"))
        .unwrap();
    let resumed = world.cut(at + 1);
    assert_eq!(resumed.run(press, ()).await.unwrap(), "3 of Log");
    assert_eq!(resumed.count("question.refused $ask"), 2, "{:#?}", resumed.log());
}

async fn whole(world: &World, nth: usize, answer: Json) {
    world.journal.give(asked(world, nth).await, answer);
}

#[agent]
async fn patient(cx: &Cx) -> Result<Option<bool>> {
    Ok(cx.ask_human::<bool>("Publish?").within(Duration::from_mins(10)).await?)
}

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_in_time_gives_none_and_so_does_its_replay() {
    let world = World::new();
    assert_eq!(world.run(patient, ()).await.unwrap(), None);
    assert_eq!(world.log(), ["question.asked $ask", "question.lapsed $ask"]);
    let replayed = world.crash();
    replayed.journal.give(asked(&replayed, 1).await, json(true));
    assert_eq!(replayed.run(patient, ()).await.unwrap(), None, "its time is over");
    assert_eq!(replayed.len(), 2);
    assert_eq!(world.cut(1).run(patient, ()).await.unwrap(), None);
}

#[tokio::test]
async fn what_was_given_in_time_counts_whenever_it_is_found_and_what_was_given_later_never_does() {
    for (given_at, want) in [(Millis(599_000), Some(true)), (Millis(601_000), None)] {
        let clock = Arc::new(ManualClock::at(Millis(0)));
        let world = World {
            journal: Arc::new(MemoryJournal::with_clock(clock.clone())),
            ..World::new()
        };
        let question = tokio::select! {
            answer = world.run(patient, ()) => panic!("{answer:?}"),
            question = asked(&world, 1) => question,
        };
        let resumed = world.cut(1);
        clock.set(given_at);
        resumed.journal.give(question, json(true));
        clock.set(Millis(9_000_000));
        assert_eq!(resumed.run(patient, ()).await.unwrap(), want);
    }
}

#[agent]
async fn hasty(cx: &Cx) -> Result<bool> {
    let late = cx
        .timeout(Duration::from_secs(1), cx.ask_human::<bool>("Publish?"))
        .await;
    cx.sleep(Duration::from_secs(1)).await?;
    Ok(late.is_err())
}

#[tokio::test(start_paused = true)]
async fn a_question_that_its_body_lets_go_of_is_withdrawn() {
    let world = World::new();
    assert!(world.run(hasty, ()).await.unwrap());
    assert_eq!(world.count("question.withdrawn $ask"), 1, "{:#?}", world.log());
    let replayed = world.crash();
    assert!(replayed.run(hasty, ()).await.unwrap());
    assert_eq!(replayed.len(), world.len(), "{:#?}", replayed.log());
}

#[step(retry(2))]
async fn signed(cx: &Cx) -> Result<bool> {
    let signed = cx.ask_human::<bool>("Sign?").await?;
    if cx.attempt() < 2 {
        return Err("the pen broke".into());
    }
    Ok(signed)
}

#[agent]
async fn notary(cx: &Cx) -> Result<bool> {
    Ok(signed(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_of_a_step_does_not_ask_again() {
    let world = World::new();
    let (said, ()) = tokio::join!(world.run(notary, ()), whole(&world, 1, json(true)));
    assert!(said.unwrap());
    assert_eq!(world.count("question.asked $ask"), 1);
}

/// As [`press`], by a build that wants another answer.
#[agent(name = "press")]
async fn edited(cx: &Cx) -> Result<u32> {
    Ok(cx.ask_human::<u32>("What is it called?").await?)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_no_longer_decodes_holds_the_body() {
    let world = World::new();
    let people = async {
        whole(&world, 1, json("Log")).await;
        whole(&world, 2, json(3)).await;
    };
    let (said, ()) = tokio::join!(world.run(press, ()), people);
    said.unwrap();
    let error = world.crash().run(edited, ()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReplayDecode, "{error}");
}

#[tokio::test]
async fn a_question_that_is_too_long_is_told() {
    let cx: Cx = neuron::test();
    let error = cx.ask_human::<bool>("?".repeat(5_000)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("4096"), "{error}");
}

#[agent]
async fn talker(cx: &Cx, bytes: usize) -> Result<bool> {
    Ok(cx.ask_human::<bool>("?".repeat(bytes)).await?)
}

#[tokio::test(start_paused = true)]
async fn a_question_that_is_too_long_is_refused_with_both_numbers() {
    let refused = World::new()
        .run(talker, limits::QUESTION_BYTES_MAX + 1)
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    for number in [limits::QUESTION_BYTES_MAX, limits::QUESTION_BYTES_MAX + 1] {
        assert!(refused.to_string().contains(&number.to_string()), "{refused}");
    }
}

/// Its first attempt takes too long, and the question of it is withdrawn.
#[step(retry(2, backoff = "1ms"), timeout = "1m")]
async fn insisting(cx: &Cx) -> Result<bool> {
    Ok(cx.ask_human::<bool>("Still there?").await?)
}

#[agent]
async fn bailiff(cx: &Cx) -> Result<bool> {
    Ok(insisting(cx).await?)
}

/// Answers the second question with yes, whose moment comes as the time goes on.
async fn late(world: &World) {
    while world.count("question.asked $ask") < 2 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    world.journal.give(asked(world, 2).await, json(true));
}

#[tokio::test(start_paused = true)]
async fn a_question_that_was_withdrawn_is_asked_again_by_the_next_attempt() {
    let world = World::new();
    let (said, ()) = tokio::join!(world.run(bailiff, ()), late(&world));
    assert!(said.unwrap());
    assert_eq!(world.count("question.withdrawn $ask"), 1, "{:#?}", world.log());
    for cut in 0..=world.len() {
        let cut = world.cut(cut);
        let people = async {
            late(&cut).await;
            std::future::pending::<()>().await;
        };
        let said = tokio::select! {
            biased;
            said = tokio::time::timeout(Duration::from_hours(1), cut.run(bailiff, ())) => said,
            () = people => unreachable!(),
        };
        assert!(said.unwrap().unwrap(), "{:#?}", cut.log());
        // What was answered before the crash, which may be the first already, stands.
        let open = cut.count("question.asked $ask") - cut.count("question.withdrawn $ask");
        assert_eq!(open, 1, "{:#?}", cut.log());
    }
}

// -- an answer of another process --

#[agent]
async fn asker(cx: &Cx) -> Result<Option<bool>> {
    Ok(cx.ask_human::<bool>("Publish?").within(MINUTE).await?)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_another_process_committed_in_time_counts_however_late_it_is_seen() {
    let folder = tempfile::tempdir().unwrap();
    let clock: Arc<dyn Clock> = Arc::new(Ticking::default());
    let open = || {
        let options = Options {
            clock: clock.clone(),
            ..Options::default()
        };
        let store = Sqlite::open_apart(folder.path().join("ask.db"), options).unwrap();
        Ledger::over(Arc::new(store), clock.clone(), Pipeline::default()).unwrap()
    };
    let (ours, theirs) = (open(), open());
    let runtime = Arc::new(Log::runtime_on(&ours, 0));
    let world = World::new();
    let token = TokenId::new("body-1").unwrap();
    let others = async {
        let steps = Pattern::exactly(&Log::steps());
        let mut log = ours.subscribe(steps, From::Start).unwrap();
        let asked = loop {
            let envelope = log.next().await.unwrap();
            if envelope.body.kind == *"question.asked" {
                break envelope.body.payload.unwrap().to_value();
            }
        };
        let answered = ControlAnswered {
            key: asked["key"].as_str().unwrap().into(),
            answer: Json::of(&true).unwrap(),
            because: None,
        };
        let draft = answered.draft(catalog::control(&token), Author::cli()).unwrap();
        let process = std::thread::spawn(move || theirs.append_blocking(Append::of([draft])).unwrap().remove(0));
        let receipt = process.join().unwrap();
        assert!(receipt.at.0 < asked["deadline"].as_i64().unwrap(), "it is in time");
        tokio::time::advance(MINUTE).await;
    };
    let (told, ()) = futures::join!(world.run_in(&runtime, asker, ()), others);
    assert_eq!(told.unwrap().unwrap(), Some(true));
}

// -- what an answer responds to --

/// An answer that is none comes between.
#[tokio::test(start_paused = true)]
async fn the_answer_to_a_question_responds_to_it_also_after_one_that_was_refused() {
    let log = Log::with(&[]).await;
    let token = TokenId::new("body-1").unwrap();
    let others = async {
        log.reached("question.asked", 1).await;
        let asked = log.on(&Log::steps())[0].body.payload.clone().unwrap().to_value();
        for answer in [Json::of("perhaps").unwrap(), Json::of(&true).unwrap()] {
            let answered = ControlAnswered {
                key: asked["key"].as_str().unwrap().into(),
                answer,
                because: None,
            };
            let draft = answered.draft(catalog::control(&token), Author::cli()).unwrap();
            log.ledger.publish(draft).await.unwrap();
        }
    };
    let (told, ()) = futures::join!(log.run(asker, ()), others);
    assert_eq!(told.unwrap(), Some(true));
    let own = log.on(&Log::steps());
    let parents: Vec<_> = own
        .iter()
        .map(|envelope| (envelope.body.kind.to_string(), envelope.parent_seq))
        .collect();
    let responses = [
        ("question.asked", None),
        ("question.refused", Some(1)),
        ("question.answered", Some(1)),
    ];
    assert_eq!(parents, responses.map(|(kind, parent)| (kind.to_owned(), parent)));
}
