//! `retry(…, on = …)`: a function says which failures are tried again.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

mod world;

use neuron::{
    Append, Author, Cx, Draft, Error, ErrorKind, Event, Ledger, Result, Topic, agent, on, on::Handler, scope, step,
};
use world::{Log, Seen, World};

static SEEN: Seen = Seen::new();

/// A service is busy now and then; what it refuses it refuses for ever.
fn is_busy(error: &Error) -> bool {
    SEEN.note(format!("asked about {}", error.message()));
    assert_ne!(error.message(), "odd", "what nobody has thought of");
    error.message().starts_with("busy") || error.kind() == ErrorKind::Timeout
}

#[step(retry(4, backoff = "1ms", on = is_busy))]
async fn call(cx: &Cx, test: String, failures: Vec<String>) -> Result<u32> {
    SEEN.note(format!("call {test}"));
    match failures.get(cx.attempt() as usize - 1) {
        None => Ok(cx.attempt()),
        Some(failure) if failure == "final" => Err(Error::terminal("final").into()),
        Some(failure) => Err(failure.clone().into()),
    }
}

#[agent]
async fn caller(cx: &Cx, test: String, failures: Vec<String>) -> Result<u32> {
    Ok(call(cx, test, failures).await?)
}

async fn told(test: &str, failures: &[&str]) -> (World, Result<u32, Error>) {
    let world = World::new();
    let failures = failures.iter().map(|failure| (*failure).to_owned()).collect();
    let told = world.run(caller, (test.to_owned(), failures)).await;
    (world, told)
}

#[tokio::test]
async fn a_failure_of_which_the_function_says_so_is_tried_again_and_no_other() {
    let (world, done) = told("a", &["busy 1", "busy 2"]).await;
    assert_eq!((done.unwrap(), world.count("step.attempted call")), (3, 2));

    let (world, refused) = told("b", &["busy", "no such page", "busy"]).await;
    let error = refused.unwrap_err();
    assert_eq!((error.message(), error.is_terminal()), ("no such page", true));
    assert_eq!(SEEN.starting("call b"), 2, "the second failure was the last");
    assert_eq!(
        (world.count("step.attempted call"), world.count("step.failed call")),
        (1, 1)
    );
}

#[tokio::test]
async fn neither_a_terminal_failure_nor_the_last_one_is_asked_about_nor_is_any_by_a_replay() {
    let (_, error) = told("c", &["final"]).await;
    assert_eq!(error.unwrap_err().message(), "final");
    assert_eq!((SEEN.starting("call c"), SEEN.starting("asked about final")), (1, 0));

    let all = ["busy c1", "busy c2", "busy c3", "busy c4"];
    let (world, error) = told("d", &all).await;
    assert_eq!(error.unwrap_err().message(), "busy c4");
    let asked = || all.map(|failure| SEEN.starting(&format!("asked about {failure}")));
    assert_eq!(asked(), [1, 1, 1, 0]);
    let failures: Vec<_> = all.map(String::from).to_vec();
    assert!(world.crash().run(caller, ("d".into(), failures)).await.is_err());
    assert_eq!((asked(), SEEN.starting("call d")), ([1, 1, 1, 0], 4));
}

#[tokio::test]
async fn a_function_that_panics_ends_the_step_with_what_it_could_not_judge() {
    let (_, error) = told("e", &["odd"]).await;
    let error = error.unwrap_err();
    assert!(
        error.is_terminal() && error.message().contains("what nobody has thought of"),
        "{error}"
    );
    assert_eq!(error.causes(), ["odd"]);
    assert_eq!(SEEN.starting("call e"), 1);
}

#[step(retry(2, on = is_busy), timeout = "10ms")]
async fn slow(cx: &Cx) -> Result<u32> {
    match cx.attempt() {
        1 => std::future::pending().await,
        attempt => Ok(attempt),
    }
}

#[agent]
async fn patient(cx: &Cx) -> Result<u32> {
    Ok(slow(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn it_is_asked_about_an_attempt_that_took_too_long() {
    assert_eq!(World::new().run(patient, ()).await.unwrap(), 2);
}

#[on("judged.orders", retry(4, on = is_busy))]
async fn ship(_event: &Event, order: String) -> Result<()> {
    Err(order.into())
}

async fn handled(ledger: &Ledger, says: &'static str) -> Error {
    let order = Draft::new(Topic::new("judged.orders").unwrap(), Author::cli(), "order.placed").unwrap();
    let placed = ledger
        .append(Append::of([order.payload(&says).unwrap()]))
        .await
        .unwrap();
    let row = ledger.store().row(&placed[0].topic, placed[0].seq).unwrap().unwrap();
    let event = Event::new(row.envelope().unwrap(), 1, "key".into(), scope::State::default());
    let handler = neuron::__private::inventory::iter::<Handler>
        .into_iter()
        .find(|handler| handler.meta().name == "ship")
        .unwrap();
    handler.handle(&event).await.unwrap_err()
}

#[tokio::test]
async fn a_handler_is_not_given_again_what_the_function_does_not_want_again() {
    let log = Log::with(&["judged.orders"]).await;
    assert!(!handled(&log.ledger, "busy").await.is_terminal());
    assert!(handled(&log.ledger, "no such street").await.is_terminal());
}
