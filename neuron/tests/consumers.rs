//! Named durable consumers, as whoever uses one sees them. Processes really killed are tested elsewhere.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{sync::Arc, time::Duration};

use neuron::{
    Append, Author, Clock, ConsumerId, Contract, Draft, ErrorKind, Expectation, Kind, Ledger, ManualClock, Millis,
    Pattern, SystemClock, Topic,
    consumer::{Builder, Consumer, Delivery, Order, Progress, Redrive, State},
    ledger::From,
    limits,
    ownership::Ownership,
    pipeline::Pipeline,
    store::{Memory, Select, conformance::Breaker},
    topic::catalog,
    vocabulary::Message as _,
    vocabulary::consumer::{ConsumerAdvanced, ConsumerParked},
};

const NAME: &str = "mailer";

fn name() -> ConsumerId {
    ConsumerId::new(NAME).unwrap()
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

async fn over(store: Memory, clock: Arc<dyn Clock>) -> Ledger {
    let ledger = Ledger::over(Arc::new(store), clock, Pipeline::default()).unwrap();
    for pattern in ["orders.*", "bills"] {
        let pattern = Pattern::new(pattern).unwrap();
        ledger
            .declare(&pattern, Contract::Durable, &Author::cli())
            .await
            .unwrap();
    }
    ledger
}

async fn ledger() -> Ledger {
    over(Memory::new().unwrap(), Arc::new(SystemClock)).await
}

fn join(ledger: &Ledger) -> Ownership {
    Ownership::join(ledger.clone(), limits::OWNER_TTL).unwrap()
}

fn mailer(process: &Ownership) -> Builder {
    let orders = Pattern::new("orders.*").unwrap();
    process.consumer(NAME).unwrap().pattern(orders)
}

fn draft(at: &str, text: &str) -> Draft {
    let draft = Draft::new(topic(at), Author::cli(), "order.made").unwrap();
    draft.payload(&text.to_owned()).unwrap()
}

async fn order(ledger: &Ledger, at: &str, text: &str) -> u64 {
    ledger.publish(draft(at, text)).await.unwrap().pos
}

fn text(delivery: &Delivery) -> String {
    delivery.envelope().decode().unwrap()
}

fn bill(text: &str) -> Append {
    Append::of([Draft::new(topic("bills"), Author::cli(), "bill.made")
        .unwrap()
        .payload(&text.to_owned())
        .unwrap()])
}

fn state(ledger: &Ledger) -> State {
    ledger.fold(&Progress::new(name()), None).unwrap().state
}

fn said(ledger: &Ledger) -> Vec<Kind> {
    let words = ledger.read(Select::Topic(catalog::consumer(&name()))).envelopes();
    words.map(|word| word.unwrap().body.kind).collect()
}

/// What is handed out without a wait.
async fn next_now(consumer: &mut Consumer) -> Option<Delivery> {
    // The clock of the test stands while anything is left to do.
    tokio::time::timeout(Duration::from_millis(1), consumer.next())
        .await
        .ok()
        .map(Result::unwrap)
}

#[tokio::test(start_paused = true)]
async fn it_is_handed_what_it_asked_for_in_the_order_of_the_log_and_goes_on_where_it_stood() {
    let ledger = ledger().await;
    for (at, what) in [
        ("orders.a", "1"),
        ("bills", "none of it"),
        ("orders.b", "2"),
        ("orders.a", "3"),
    ] {
        order(&ledger, at, what).await;
    }
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    for wanted in ["1", "2"] {
        let delivery = consumer.next().await.unwrap();
        assert_eq!((text(&delivery).as_str(), delivery.attempt()), (wanted, 1));
        delivery.ack().await.unwrap();
    }
    consumer.close().await.unwrap();
    let mut consumer = mailer(&process).from(From::Start).open().await.unwrap();
    let third = consumer.next().await.unwrap();
    assert_eq!(text(&third), "3");
    third.ack().await.unwrap();
    assert!(next_now(&mut consumer).await.is_none());
    order(&ledger, "orders.c", "live").await;
    assert_eq!(text(&consumer.next().await.unwrap()), "live");
}

#[tokio::test(start_paused = true)]
async fn it_begins_where_it_was_told_to() {
    let clock = Arc::new(ManualClock::at(Millis(1_000_000)));
    let ledger = over(Memory::with(clock.clone(), None).unwrap(), clock.clone()).await;
    let first = order(&ledger, "orders.a", "old").await;
    clock.advance(Duration::from_mins(1));
    order(&ledger, "orders.a", "recent").await;
    let process = join(&ledger);
    let cases = [
        (From::Start, Some("old")),
        (From::After(first), Some("recent")),
        (From::Ago(Duration::from_secs(59)), Some("recent")),
        (From::Ago(Duration::from_mins(1)), Some("old")),
        (From::Now, None),
    ];
    for (nth, (from, wanted)) in cases.into_iter().enumerate() {
        let builder = process
            .consumer(&format!("c{nth}"))
            .unwrap()
            .pattern(Pattern::new("orders.*").unwrap());
        let mut consumer = builder.from(from).open().await.unwrap();
        let found = next_now(&mut consumer).await.map(|delivery| text(&delivery));
        assert_eq!(found.as_deref(), wanted, "{from:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_given_only_the_types_and_birth_headers_that_it_asked_for() {
    let ledger = ledger().await;
    let urgent = |text: &str| draft("orders.a", text).header("urgent", &true).unwrap();
    ledger.publish(draft("orders.a", "calm")).await.unwrap();
    ledger.publish(urgent("urgent")).await.unwrap();
    let other = Draft::new(topic("orders.a"), Author::cli(), "order.cancelled").unwrap();
    ledger.publish(other.header("urgent", &true).unwrap()).await.unwrap();
    let process = join(&ledger);
    let builder = mailer(&process).kind(Kind::new("order.made").unwrap());
    let mut consumer = builder.header("urgent", &true).unwrap().open().await.unwrap();
    let only = consumer.next().await.unwrap();
    assert_eq!(text(&only), "urgent");
    only.ack().await.unwrap();
    assert!(next_now(&mut consumer).await.is_none());
    consumer.close().await.unwrap();
    assert_eq!(ledger.consumer(&name()).unwrap().unwrap().lag, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_delivery_is_tried_again_by_the_schedule_and_parked_after_the_last_one() {
    let ledger = ledger().await;
    let pos = order(&ledger, "orders.a", "bad").await;
    order(&ledger, "orders.a", "good").await;
    let process = join(&ledger);
    let waits = [Duration::from_secs(3), Duration::from_secs(20)];
    let mut consumer = mailer(&process).max_deliveries(4).schedule(waits).open().await.unwrap();
    let begun = tokio::time::Instant::now();
    let first = consumer.next().await.unwrap();
    let key = first.key();
    first.fail("no address").await.unwrap();
    let other = consumer.next().await.unwrap();
    assert_eq!(text(&other), "good", "one that is tried again holds up no other");
    other.ack().await.unwrap();
    let mut elapsed = Vec::new();
    for attempt in 2..=4 {
        let again = consumer.next().await.unwrap();
        assert_eq!(
            (again.envelope().pos, again.attempt(), again.key()),
            (pos, attempt, key.clone())
        );
        elapsed.push(begun.elapsed().as_secs());
        // Dropped without a word, refused with a reason of its own, and the last one.
        match attempt {
            2 => drop(again),
            3 => again.retry_after(Duration::from_secs(100)).await.unwrap(),
            _ => again.fail("still no address").await.unwrap(),
        }
    }
    assert_eq!(elapsed, [3, 23, 123]);
    let parked: Vec<_> = ledger.parked(&name()).unwrap().map(Result::unwrap).collect();
    assert_eq!(parked.len(), 1);
    assert_eq!(
        (parked[0].pos, parked[0].attempts, parked[0].because.as_str()),
        (pos, 4, "still no address")
    );
    assert!(next_now(&mut consumer).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_that_takes_too_long_is_handed_out_again_and_its_late_word_is_refused() {
    let ledger = ledger().await;
    order(&ledger, "orders.a", "slow").await;
    let process = join(&ledger);
    let mut consumer = mailer(&process).ack_wait(Duration::from_secs(10)).open().await.unwrap();
    let begun = tokio::time::Instant::now();
    let mut slow = consumer.next().await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    slow.extend().unwrap();
    let mut again = consumer.next().await.unwrap();
    assert_eq!((again.attempt(), begun.elapsed().as_secs()), (2, 16));
    let late = slow.ack_with(bill("late")).await.unwrap_err();
    assert_eq!(late.kind(), ErrorKind::Conflict, "{late}");
    again.ack_with(bill("in time")).await.unwrap();
    assert_eq!(slow.ack().await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(ledger.store().head(&topic("bills")).unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_late_word_counts_until_the_message_is_handed_out_again() {
    let ledger = ledger().await;
    order(&ledger, "orders.a", "slow").await;
    let process = join(&ledger);
    let mut consumer = mailer(&process).ack_wait(Duration::from_secs(10)).open().await.unwrap();
    let slow = consumer.next().await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    slow.ack().await.unwrap();
    assert!(next_now(&mut consumer).await.is_none());
    consumer.close().await.unwrap();
    let state = state(&ledger);
    assert!(state.pending.is_empty() && state.parked.is_empty(), "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn an_effect_and_the_position_stand_together_or_not_at_all() {
    let ledger = ledger().await;
    let pos = order(&ledger, "orders.a", "1").await;
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    let mut delivery = consumer.next().await.unwrap();
    let wrong = bill("1").expect(Expectation::Head(topic("bills"), 7));
    assert_eq!(delivery.ack_with(wrong).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(!state(&ledger).is_settled(pos));
    // The delivery is still in hand, and the effect can be decided anew.
    let receipts = delivery.ack_with(bill("1")).await.unwrap();
    assert_eq!(receipts.len(), 1);
    assert_eq!(receipts[0].topic, topic("bills"));
    assert_eq!(state(&ledger).upto, pos);
    let word = ledger
        .read(Select::Topic(catalog::consumer(&name())))
        .newest_first()
        .envelopes()
        .next();
    let word = word.unwrap().unwrap();
    assert_eq!((word.pos, word.at), (receipts[0].pos + 1, receipts[0].at), "one batch");
    let keyed = bill("2").idempotency_key("k").unwrap();
    assert_eq!(delivery.ack_with(keyed).await.unwrap_err().kind(), ErrorKind::Misuse);
    assert_eq!(
        delivery.ack_with(bill("2")).await.unwrap_err().kind(),
        ErrorKind::Conflict
    );
    assert_eq!(ledger.store().head(&topic("bills")).unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn acknowledgements_are_recorded_together_by_count_or_after_a_second() {
    let ledger = ledger().await;
    let drafts = (0..600).map(|nth| draft("orders.a", &nth.to_string()));
    ledger.append(Append::of(drafts)).await.unwrap();
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    for _ in 0..=limits::CONSUMER_ACKS_MAX * 2 {
        consumer.next().await.unwrap().ack().await.unwrap();
    }
    let advanced = || {
        said(&ledger)
            .iter()
            .filter(|kind| **kind == ConsumerAdvanced::TYPE)
            .count()
    };
    assert_eq!(advanced(), 2);
    tokio::time::sleep(limits::CONSUMER_ACK_DELAY_MAX * 2).await;
    assert_eq!(advanced(), 3);
    tokio::time::sleep(limits::CONSUMER_ACK_DELAY_MAX * 9).await;
    assert_eq!(said(&ledger).len(), 4, "nothing to say is nothing said");
}

#[tokio::test(start_paused = true)]
async fn no_more_are_in_flight_than_it_allows() {
    let ledger = ledger().await;
    for nth in 0..6 {
        order(&ledger, "orders.a", &nth.to_string()).await;
    }
    let process = join(&ledger);
    let mut consumer = mailer(&process).in_flight(3).open().await.unwrap();
    let mut hands = Vec::new();
    while let Some(delivery) = next_now(&mut consumer).await {
        hands.push(delivery);
    }
    assert_eq!(hands.len(), 3);
    // One that waits to be tried again is in flight, one that is acknowledged is not.
    hands.remove(0).fail("later").await.unwrap();
    assert!(next_now(&mut consumer).await.is_none());
    hands.remove(0).ack().await.unwrap();
    assert_eq!(text(&next_now(&mut consumer).await.unwrap()), "3");
}

#[tokio::test(start_paused = true)]
async fn where_order_is_asked_for_one_that_is_tried_again_holds_up_those_behind_it() {
    for (asked, wanted) in [
        (Order::Free, vec!["a1", "a2", "b1", "a1"]),
        (Order::Topic, vec!["a1", "b1", "a1", "a2"]),
        (Order::Whole, vec!["a1", "a1", "a2", "b1"]),
    ] {
        let ledger = ledger().await;
        for (at, what) in [("orders.a", "a1"), ("orders.a", "a2"), ("orders.b", "b1")] {
            order(&ledger, at, what).await;
        }
        let process = join(&ledger);
        let mut consumer = mailer(&process).order(asked).open().await.unwrap();
        let mut handed = Vec::new();
        for nth in 0..wanted.len() {
            let delivery = consumer.next().await.unwrap();
            handed.push(text(&delivery));
            if nth == 0 {
                delivery.fail("not yet").await.unwrap();
            } else {
                delivery.ack().await.unwrap();
            }
        }
        assert_eq!(handed, wanted, "{asked:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_message_is_listed_and_comes_again_when_somebody_redrives_it() {
    let ledger = ledger().await;
    let mut poisoned = Vec::new();
    for what in ["x", "y", "z"] {
        poisoned.push(order(&ledger, "orders.a", what).await);
    }
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    for _ in 0..3 {
        consumer.next().await.unwrap().poison("unreadable").await.unwrap();
    }
    let standing = ledger.consumer(&name()).unwrap().unwrap();
    assert_eq!((standing.parked, standing.lag, standing.in_flight), (3, 0, 0));
    let parked: Vec<_> = ledger
        .parked(&name())
        .unwrap()
        .map(|parked| parked.unwrap().pos)
        .collect();
    assert_eq!(parked, poisoned);
    let ada = Author::human("ada").unwrap();
    let name = name();
    let redrive = |which| ledger.redrive(&name, which, &ada, Some("mended"));
    assert_eq!(redrive(Redrive::One(poisoned[1])).await.unwrap().receipts.len(), 1);
    assert_eq!(
        redrive(Redrive::One(poisoned[1])).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    // It is open here and hears of it.
    let again = consumer.next().await.unwrap();
    assert_eq!((text(&again).as_str(), again.attempt()), ("y", 1));
    again.ack().await.unwrap();
    consumer.close().await.unwrap();
    assert_eq!(redrive(Redrive::All).await.unwrap().receipts.len(), 2);
    let mut consumer = mailer(&process).open().await.unwrap();
    for wanted in ["x", "z"] {
        let again = consumer.next().await.unwrap();
        assert_eq!(text(&again), wanted);
        again.ack().await.unwrap();
    }
    consumer.close().await.unwrap();
    assert_eq!(ledger.consumer(&name).unwrap().unwrap().parked, 0);
    assert!(redrive(Redrive::All).await.unwrap().receipts.is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_of_all_that_ask_has_it_open_and_the_next_takes_over() {
    let ledger = ledger().await;
    order(&ledger, "orders.a", "1").await;
    let (here, there) = (join(&ledger), join(&ledger));
    let mut first = mailer(&here).open().await.unwrap();
    for process in [&here, &there] {
        let busy = mailer(process).try_open().await.unwrap_err();
        assert_eq!(busy.kind(), ErrorKind::Owned);
        assert_eq!(busy.detail::<u32>(), Some(std::process::id()));
    }
    let delivery = first.next().await.unwrap();
    let standby = tokio::spawn(mailer(&there).open());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(!standby.is_finished());
    delivery.ack().await.unwrap();
    drop(first);
    let mut second = standby.await.unwrap().unwrap();
    assert!(
        next_now(&mut second).await.is_none(),
        "what was acknowledged before is not handed out again"
    );
    order(&ledger, "orders.a", "2").await;
    assert_eq!(text(&second.next().await.unwrap()), "2");
}

#[tokio::test(start_paused = true)]
async fn whoever_was_taken_over_can_write_nothing_any_more() {
    let ledger = ledger().await;
    order(&ledger, "orders.a", "1").await;
    let process = join(&ledger);
    let mut stale = mailer(&process).open().await.unwrap();
    let mut in_hand = stale.next().await.unwrap();
    // As if this process had hung: another claims the name with the epoch after it.
    let claim = neuron::ownership::LeaseClaimed {
        name: format!("consumer:{NAME}"),
        incarnation: "other".into(),
        epoch: 2,
        from: neuron::ownership::Takeover::Hung,
    };
    let claim = claim.draft(catalog::leases(), Author::engine()).unwrap();
    ledger
        .publish(claim.key(format!("consumer:{NAME}")).unwrap())
        .await
        .unwrap();
    let refused = in_hand.ack_with(bill("twice")).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Fenced, "{refused}");
    assert_eq!(ledger.store().head(&topic("bills")).unwrap(), 0);
    assert_eq!(in_hand.ack().await.unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(stale.next().await.unwrap_err().kind(), ErrorKind::Fenced);
    assert_eq!(stale.close().await.unwrap_err().kind(), ErrorKind::Fenced);
}

#[tokio::test(start_paused = true)]
async fn what_it_is_given_is_fixed_and_how_it_is_handed_out_is_recorded_anew() {
    let ledger = ledger().await;
    let process = join(&ledger);
    mailer(&process).open().await.unwrap().close().await.unwrap();
    let other = process.consumer(NAME).unwrap().pattern(Pattern::new("bills").unwrap());
    let refused = other.open().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contract);
    for part in [NAME, "orders.*", "bills", "delete it first"] {
        assert!(refused.to_string().contains(part), "{refused}");
    }
    let refused = mailer(&process).order(Order::Whole).open().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Contract);
    mailer(&process)
        .max_deliveries(9)
        .open()
        .await
        .unwrap()
        .close()
        .await
        .unwrap();
    assert_eq!(state(&ledger).config.unwrap().max_deliveries, 9);
    let own = process
        .consumer("loop")
        .unwrap()
        .pattern(Pattern::new("$consumer.*").unwrap());
    assert_eq!(own.open().await.unwrap_err().kind(), ErrorKind::Misuse);
}

#[tokio::test(start_paused = true)]
async fn a_consumer_is_reset_or_deleted_while_nobody_has_it_open() {
    let ledger = ledger().await;
    let first = order(&ledger, "orders.a", "1").await;
    order(&ledger, "orders.a", "2").await;
    let process = join(&ledger);
    assert_eq!(
        mailer(&process).reset(From::Start).await.unwrap_err().kind(),
        ErrorKind::NotFound
    );
    let mut consumer = mailer(&process).open().await.unwrap();
    for _ in 0..2 {
        consumer.next().await.unwrap().poison("no").await.unwrap();
    }
    assert_eq!(
        mailer(&process).reset(From::Start).await.unwrap_err().kind(),
        ErrorKind::Owned
    );
    consumer.close().await.unwrap();
    mailer(&process).reset(From::After(first)).await.unwrap();
    assert_eq!(state(&ledger).parked.into_iter().collect::<Vec<_>>(), [first]);
    let mut consumer = mailer(&process).open().await.unwrap();
    let again = consumer.next().await.unwrap();
    assert_eq!((text(&again).as_str(), again.attempt()), ("2", 1));
    again.ack().await.unwrap();
    consumer.close().await.unwrap();
    mailer(&process).delete().await.unwrap();
    assert!(ledger.consumers().unwrap().is_empty());
    let mut anew = mailer(&process).order(Order::Topic).open().await.unwrap();
    assert_eq!(text(&anew.next().await.unwrap()), "1");
}

#[tokio::test(start_paused = true)]
async fn what_a_full_disk_refused_is_recorded_once_there_is_room() {
    let fault = Arc::new(Breaker::default());
    let store = Memory::with(Arc::new(SystemClock), Some(fault.clone())).unwrap();
    let ledger = over(store, Arc::new(SystemClock)).await;
    let pos = order(&ledger, "orders.a", "1").await;
    order(&ledger, "orders.a", "2").await;
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    let mut delivery = consumer.next().await.unwrap();
    fault.arm();
    assert_eq!(delivery.ack_with(bill("1")).await.unwrap_err().kind(), ErrorKind::Full);
    delivery.ack().await.unwrap();
    fault.arm();
    let refused = consumer.next().await.unwrap().poison("bad").await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    tokio::time::sleep(limits::CONSUMER_ACK_DELAY_MAX * 3).await;
    let state = state(&ledger);
    assert!(state.is_settled(pos) && state.parked.len() == 1, "{state:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_is_given_up_loses_nothing_and_counts_nothing() {
    let ledger = ledger().await;
    let process = join(&ledger);
    let mut consumer = mailer(&process).schedule([]).open().await.unwrap();
    order(&ledger, "orders.a", "1").await;
    consumer.next().await.unwrap().fail("once").await.unwrap();
    for _ in 0..20 {
        // Polled once and dropped, at whatever it waits for.
        let _ = futures::FutureExt::now_or_never(consumer.next()).map(|handed| handed.unwrap().extend());
        tokio::task::yield_now().await;
    }
    let attempts: Vec<_> = said(&ledger)
        .into_iter()
        .filter(|kind| *kind == ConsumerParked::TYPE)
        .collect();
    assert_eq!(attempts.len(), 1, "each was handed out, dropped, and counted once");
    assert_eq!(ledger.parked(&name()).unwrap().next().unwrap().unwrap().attempts, 5);
}

#[tokio::test(start_paused = true)]
async fn a_reason_is_recorded_up_to_its_bound() {
    let ledger = ledger().await;
    order(&ledger, "orders.a", "1").await;
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    let long = "ä".repeat(limits::CONSUMER_REASON_BYTES_MAX);
    consumer.next().await.unwrap().poison(&long).await.unwrap();
    let because = ledger.parked(&name()).unwrap().next().unwrap().unwrap().because;
    assert!(because.ends_with('…') && because.len() <= limits::CONSUMER_REASON_BYTES_MAX + '…'.len_utf8());
    assert!(long.starts_with(because.trim_end_matches('…')));
}

#[tokio::test(start_paused = true)]
async fn bounds_of_the_setup_are_refused_by_name() {
    let ledger = ledger().await;
    let process = join(&ledger);
    let many = vec![Duration::ZERO; limits::CONSUMER_SCHEDULE_MAX + 1];
    for (builder, told) in [
        (
            mailer(&process).in_flight(limits::CONSUMER_IN_FLIGHT_MAX + 1),
            limits::CONSUMER_IN_FLIGHT_MAX.to_string(),
        ),
        (
            mailer(&process).in_flight(0),
            limits::CONSUMER_IN_FLIGHT_MAX.to_string(),
        ),
        (
            mailer(&process).schedule(many),
            limits::CONSUMER_SCHEDULE_MAX.to_string(),
        ),
        (mailer(&process).max_deliveries(0), "at least 1 delivery".into()),
        (mailer(&process).ack_wait(Duration::ZERO), "at least 1 ms".into()),
    ] {
        let refused = builder.open().await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Misuse);
        assert!(refused.to_string().contains(&told), "{refused}");
    }
    assert_eq!(process.consumer("a.b").unwrap_err().kind(), ErrorKind::Malformed);
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_waits_is_looked_past_only_so_far() {
    let ledger = ledger().await;
    order(&ledger, "orders.a", "first").await;
    for part in 0..2 {
        let behind = (0..limits::CONSUMER_WINDOW_MAX / 2).map(|_| draft("orders.a", "behind it"));
        let other = draft("orders.b", &format!("other {part}"));
        ledger.append(Append::of(behind.chain([other]))).await.unwrap();
    }
    let process = join(&ledger);
    let mut consumer = mailer(&process).order(Order::Topic).open().await.unwrap();
    consumer
        .next()
        .await
        .unwrap()
        .retry_after(Duration::from_mins(1))
        .await
        .unwrap();
    let other = consumer.next().await.unwrap();
    assert_eq!(text(&other), "other 0");
    other.ack().await.unwrap();
    assert!(
        next_now(&mut consumer).await.is_none(),
        "the other one lies beyond the window"
    );
    assert_eq!(text(&consumer.next().await.unwrap()), "first");
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_counted_and_redriven_up_to_a_bound_that_is_told() {
    let ledger = ledger().await;
    let count = limits::CONSUMER_REDRIVEN_MAX + 10;
    ledger
        .append(Append::of((0..count).map(|_| draft("orders.a", "x"))))
        .await
        .unwrap();
    let process = join(&ledger);
    let mut consumer = mailer(&process).open().await.unwrap();
    for _ in 0..count {
        consumer.next().await.unwrap().poison("no").await.unwrap();
    }
    consumer.close().await.unwrap();
    let (cli, name) = (Author::cli(), name());
    let redriven = ledger.redrive(&name, Redrive::All, &cli, None).await.unwrap();
    assert_eq!(
        (redriven.receipts.len(), redriven.left),
        (limits::CONSUMER_REDRIVEN_MAX, 10)
    );
    let refused = ledger.redrive(&name, Redrive::All, &cli, None).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::TooLarge);
    assert!(
        refused.to_string().contains(&limits::CONSUMER_REDRIVEN_MAX.to_string()),
        "{refused}"
    );
    let many = usize::try_from(limits::CONSUMER_LAG_MAX).unwrap();
    ledger
        .append(Append::of((0..many).map(|_| draft("orders.a", "y"))))
        .await
        .unwrap();
    let lag = || {
        ledger
            .consumer(&name)
            .unwrap()
            .map(|standing| (standing.lag, standing.lags_more))
    };
    assert_eq!(lag(), Some((limits::CONSUMER_LAG_MAX, false)));
    order(&ledger, "orders.a", "one more").await;
    assert_eq!(lag(), Some((limits::CONSUMER_LAG_MAX, true)));
}
