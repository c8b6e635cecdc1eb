//! Handlers: functions with `#[on("…")]`, as a process that serves runs them. Processes really killed are tested
//! elsewhere.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use neuron::{
    Append, Author, ConsumerId, Contract, Draft, Ledger, Pattern, SystemClock, Topic,
    consumer::{Progress, Redrive, State},
    ledger::From,
    pipeline::Pipeline,
    store::{Memory, Select},
    topic::catalog,
};
use orchestrator::{neuron, prelude::*};
use tokio::{sync::mpsc, task::JoinHandle, time::Instant};

/// What the handlers of a test tell it.
struct Told(mpsc::UnboundedSender<String>);

impl Told {
    fn tell(event: &Event, what: &str) -> Result<()> {
        let line = format!("{what} #{}", event.attempt());
        Ok(event.state::<Self>()?.0.send(line)?)
    }
}

/// Whether what fails is mended.
struct Mended(AtomicBool);

#[on("orders.placed", from = start, retry(3, backoff = "2s"))]
async fn ship(event: &Event, order: String) -> Result<()> {
    Told::tell(event, &order)?;
    match order.as_str() {
        "fails twice" if event.attempt() < 3 => Err("not yet".into()),
        "always fails" => Err("no carrier".into()),
        "panics once" if event.attempt() == 1 => panic!("the label is torn"),
        "asks for a minute" if event.attempt() == 1 => Err(Error::retry_after(Duration::from_mins(1), "closed").into()),
        "is final" if !event.state::<Mended>()?.0.load(Ordering::SeqCst) => {
            Err(Error::terminal("no such street").into())
        }
        _ => Ok(()),
    }
}

#[on("orders.billed", name = "biller", from = start)]
async fn bill(event: &Event, order: String) -> Result<Append> {
    let at = if order == "to nowhere" { "undeclared" } else { "bills" };
    let draft = Draft::new(Topic::new(at)?, Author::new("biller")?, "bill.made")?;
    Ok(Append::of([draft.payload(&order)?.cause(event.cause())]))
}

#[on("orders.seen", kind("order.seen"))]
async fn see(event: &Event) -> Result<()> {
    Told::tell(event, event.envelope().body.kind.as_str())
}

#[on("orders.slow", from = start, retry(2, backoff = "1s"), timeout = "5m", in_flight = 1)]
async fn pack(event: &Event, minutes: u64) -> Result<()> {
    Told::tell(event, &format!("{minutes} begun"))?;
    tokio::time::sleep(Duration::from_mins(minutes)).await;
    Told::tell(event, &format!("{minutes} done"))
}

#[orchestrator]
async fn greet(_board: &Board, name: String) -> Result<String> {
    Ok(format!("hello {name}"))
}

#[on("orders.greeted", from = start)]
async fn greeter(event: &Event, name: String) -> Result<()> {
    let run = event.state::<Neuron>()?.run(greet, name);
    let greeting = run.id(event.envelope().id().to_string()).await?;
    Told::tell(event, &greeting)
}

struct Shop {
    neuron: Neuron,
    told: mpsc::UnboundedReceiver<String>,
}

impl Shop {
    async fn new() -> Self {
        let store = Memory::new().unwrap();
        let ledger = Ledger::over(Arc::new(store), Arc::new(SystemClock), Pipeline::default()).unwrap();
        for pattern in ["orders.*", "bills"] {
            let pattern = Pattern::new(pattern).unwrap();
            ledger
                .declare(&pattern, Contract::Durable, &Author::cli())
                .await
                .unwrap();
        }
        Self::over(ledger).await
    }

    /// Another program on the same log.
    async fn over(ledger: Ledger) -> Self {
        let (tell, told) = mpsc::unbounded_channel();
        let builder = Neuron::builder().state(Told(tell)).state(Mended(false.into()));
        let neuron = builder.over(ledger).await.unwrap();
        Self { neuron, told }
    }

    fn serve(&self) -> JoinHandle<Result<(), Error>> {
        let neuron = self.neuron.clone();
        tokio::spawn(async move { neuron.serve().await })
    }

    async fn say(&self, at: &str, kind: &str, what: &impl neuron::Payload) -> u64 {
        let draft = Draft::new(topic(at), Author::cli(), kind).unwrap();
        let draft = draft.payload(what).unwrap();
        self.neuron.ledger().publish(draft).await.unwrap().pos
    }

    async fn told(&mut self) -> String {
        self.told.recv().await.unwrap()
    }

    fn state(&self, name: &str) -> State {
        let name = ConsumerId::new(name).unwrap();
        self.neuron.ledger().fold(&Progress::new(name), None).unwrap().state
    }

    /// Waits until a consumer has said so often that a message is parked, and gives the reason of the last.
    async fn parked(&self, name: &str, count: usize) -> String {
        let (ledger, id) = (self.neuron.ledger(), ConsumerId::new(name).unwrap());
        let words = Pattern::exactly(&catalog::consumer(&id));
        let mut words = ledger.subscribe(words, From::Start).unwrap();
        while self.state(name).parked.len() < count {
            words.next().await.unwrap();
        }
        ledger.parked(&id).unwrap().last().unwrap().unwrap().because
    }

    fn bills(&self) -> Vec<String> {
        let bills = self.neuron.ledger().read(Select::Topic(topic("bills"))).envelopes();
        bills.map(|bill| bill.unwrap().decode().unwrap()).collect()
    }
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failed_attempt_is_made_again_after_waits_that_double() {
    let mut shop = Shop::new().await;
    shop.say("orders.placed", "order", &"fails twice".to_owned()).await;
    let serving = shop.serve();
    let mut moments = Vec::new();
    for attempt in 1..=3 {
        assert_eq!(shop.told().await, format!("fails twice #{attempt}"));
        moments.push(Instant::now());
    }
    let waits = [moments[1] - moments[0], moments[2] - moments[1]];
    assert!(
        waits[0] >= Duration::from_secs(2) && waits[1] >= Duration::from_secs(4),
        "{waits:?}"
    );
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failed_attempt_and_the_wait_that_an_error_asks_for_is_kept() {
    let mut shop = Shop::new().await;
    let serving = shop.serve();
    shop.say("orders.placed", "order", &"panics once".to_owned()).await;
    assert_eq!(shop.told().await, "panics once #1");
    assert_eq!(shop.told().await, "panics once #2");
    shop.say("orders.placed", "order", &"asks for a minute".to_owned())
        .await;
    assert_eq!(shop.told().await, "asks for a minute #1");
    let asked = Instant::now();
    assert_eq!(shop.told().await, "asks for a minute #2");
    assert!(asked.elapsed() >= Duration::from_mins(1), "{:?}", asked.elapsed());
    assert!(!serving.is_finished());
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn what_no_attempt_can_mend_is_parked_with_the_reason_and_handled_once_it_is_redriven() {
    let mut shop = Shop::new().await;
    let serving = shop.serve();
    shop.say("orders.placed", "order", &7_u32).await;
    let why = shop.parked("ship", 1).await;
    assert!(why.contains("payload of `order`: `$` does not decode"), "{why}");
    let pos = shop.say("orders.placed", "order", &"is final".to_owned()).await;
    assert_eq!(shop.parked("ship", 2).await, "no such street");
    assert_eq!(shop.told().await, "is final #1");
    shop.say("orders.placed", "order", &"always fails".to_owned()).await;
    assert_eq!(shop.parked("ship", 3).await, "no carrier");
    for attempt in 1..=3 {
        assert_eq!(shop.told().await, format!("always fails #{attempt}"));
    }

    // Whoever mended it lets the handler have it again, its attempts counted anew.
    serving.abort();
    let mut mended = Shop::over(shop.neuron.ledger().clone()).await;
    let (tell, told) = mpsc::unbounded_channel();
    let builder = Neuron::builder().state(Told(tell)).state(Mended(true.into()));
    (mended.neuron, mended.told) = (builder.over(shop.neuron.ledger().clone()).await.unwrap(), told);
    let serving = mended.serve();
    let (name, author) = (ConsumerId::new("ship").unwrap(), Author::cli());
    let redriven = mended.neuron.ledger().redrive(&name, Redrive::One(pos), &author, None);
    assert_eq!(redriven.await.unwrap().left, 0);
    assert_eq!(mended.told().await, "is final #1");
    assert_eq!(shop.state("ship").parked.len(), 2);
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn an_effect_is_committed_with_its_message_and_one_that_is_refused_lays_the_message_aside() {
    let shop = Shop::new().await;
    let serving = shop.serve();
    let order = shop.say("orders.billed", "order", &"a hat".to_owned()).await;
    shop.say("orders.billed", "order", &"to nowhere".to_owned()).await;
    let why = shop.parked("biller", 1).await;
    assert!(why.starts_with("what the handler gave was refused: "), "{why}");
    assert_eq!(shop.bills(), ["a hat"]);
    let ledger = shop.neuron.ledger();
    let bill = ledger
        .read(Select::Topic(topic("bills")))
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    let cause = bill.headers.decode::<neuron::EnvelopeRef>("caused-by").unwrap();
    let order = ledger
        .read(Select::All)
        .from(order)
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    assert_eq!(cause, order.reference());
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn it_begins_with_what_comes_after_it_was_made_and_is_given_only_what_it_asked_for() {
    let mut shop = Shop::new().await;
    shop.say("orders.seen", "order.seen", &"too early".to_owned()).await;
    let made = Pattern::new("$consumer.see").unwrap();
    let mut made = shop.neuron.ledger().subscribe(made, From::Start).unwrap();
    let serving = shop.serve();
    made.next().await.unwrap();
    shop.say("orders.seen", "order.lost", &1).await;
    shop.say("orders.seen", "order.seen", &2).await;
    assert_eq!(shop.told().await, "order.seen #1");
    serving.abort();
    assert!(shop.told.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_later_header_is_no_event_of_its_own() {
    let mut shop = Shop::new().await;
    let author = Author::cli();
    let draft = Draft::new(topic("orders.placed"), author.clone(), "order").unwrap();
    let ledger = shop.neuron.ledger();
    let order = ledger
        .publish(draft.payload(&"a hat".to_owned()).unwrap())
        .await
        .unwrap();
    let order = ledger
        .read(Select::All)
        .from(order.pos)
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    let checked = ledger.inject(&order, "checked", &true, "somebody looked", &author);
    checked.await.unwrap();
    shop.say("orders.placed", "order", &"a coat".to_owned()).await;
    let serving = shop.serve();
    assert_eq!(shop.told().await, "a hat #1");
    assert_eq!(shop.told().await, "a coat #1");
    assert!(shop.state("ship").parked.is_empty());
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn one_that_works_is_given_time_and_one_past_its_own_time_is_a_failed_attempt() {
    let mut shop = Shop::new().await;
    let serving = shop.serve();
    // Longer than the ack wait of a consumer: nobody else is handed it meanwhile.
    shop.say("orders.slow", "order", &4_u64).await;
    assert_eq!(shop.told().await, "4 begun #1");
    assert_eq!(shop.told().await, "4 done #1");
    shop.say("orders.slow", "order", &6_u64).await;
    assert_eq!(shop.parked("pack", 1).await, "the handler took longer than 300s");
    assert_eq!(shop.told().await, "6 begun #1");
    assert_eq!(shop.told().await, "6 begun #2");
    assert!(shop.told.try_recv().is_err());
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn of_two_programs_one_runs_a_handler_and_the_other_follows_when_it_stops() {
    let mut first = Shop::new().await;
    let mut second = Shop::over(first.neuron.ledger().clone()).await;
    let serving = first.serve();
    first.say("orders.placed", "order", &"a hat".to_owned()).await;
    assert_eq!(first.told().await, "a hat #1");
    let standing_by = second.serve();
    for number in 0..20 {
        first.say("orders.placed", "order", &number.to_string()).await;
        assert_eq!(first.told().await, format!("{number} #1"));
    }
    assert!(second.told.try_recv().is_err());
    serving.abort();
    first.say("orders.placed", "order", &"a coat".to_owned()).await;
    assert_eq!(second.told().await, "a coat #1");
    assert!(first.told.try_recv().is_err());
    standing_by.abort();
}

#[tokio::test(start_paused = true)]
async fn a_handler_starts_runs_of_its_own_program() {
    let mut shop = Shop::new().await;
    let order = shop.say("orders.greeted", "order", &"ada".to_owned()).await;
    let serving = shop.serve();
    assert_eq!(shop.told().await, "hello ada #1");
    let ledger = shop.neuron.ledger();
    let order = ledger
        .read(Select::All)
        .from(order)
        .envelopes()
        .next()
        .unwrap()
        .unwrap();
    let again = shop.neuron.run(greet, "ada".into()).id(order.id().to_string());
    assert_eq!(again.await.unwrap(), "hello ada");
    serving.abort();
}

#[tokio::test(start_paused = true)]
async fn a_consumer_of_the_name_that_is_given_something_else_is_told_at_once() {
    let shop = Shop::new().await;
    let other = shop
        .neuron
        .consumer("ship")
        .unwrap()
        .pattern(Pattern::new("bills").unwrap());
    other.open().await.unwrap().close().await.unwrap();
    let refused = shop.neuron.serve().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contract);
    assert!(refused.message().contains("the handler `ship`"), "{refused}");
}
