//! L9: a control command is never missed, only late.

use neuron::{
    Append, Author, Draft, Ledger, RunId, Topic,
    ledger::From,
    limits,
    token::{Control, Orders},
    topic::catalog,
    vocabulary::{
        Message as _,
        control::{ControlCancelled, ControlPaused, ControlResumed},
    },
};
use proptest::{collection::vec, prop_assert_eq, proptest};

use super::{BOTH, Home, backend, block_on, cases, note};

fn control() -> Topic {
    catalog::run_control(&RunId::new("r").unwrap())
}

fn order(what: usize) -> Draft {
    let because = Some(format!("order {what}"));
    let (topic, author) = (control(), Author::human("ada").unwrap());
    match what {
        0 => ControlPaused { because, thread: None }.draft(topic, author),
        1 => ControlResumed { because, thread: None }.draft(topic, author),
        _ => ControlCancelled { because, thread: None }.draft(topic, author),
    }
    .unwrap()
}

fn give(ledger: &Ledger, what: usize) {
    ledger.append_blocking(Append::of([order(what)])).unwrap();
}

fn orders(ledger: &Ledger) -> Orders {
    ledger.fold(&Control::new(control()), None).unwrap().state
}

/// What a list of orders adds up to, said once more in other words.
fn meant(given: &[usize]) -> (bool, bool) {
    let paused = given
        .iter()
        .rev()
        .find(|order| **order < 2)
        .is_some_and(|order| *order == 0);
    (paused, given.contains(&2))
}

#[test]
fn an_order_given_before_anybody_listens_is_heard_by_whoever_comes_later() {
    for backend in BOTH {
        let home = Home::new(backend);
        give(&home.another(), 2);
        let home = home.reopened();
        let pattern = neuron::Pattern::exactly(&control());
        let mut late = home.ledger.subscribe(pattern, From::Start).unwrap();
        assert_eq!(late.try_next().unwrap().unwrap().body.kind, ControlCancelled::TYPE);
        assert_eq!(orders(&home.ledger).cancelled, Some(Some("order 2".into())));
    }
}

#[test]
fn an_order_of_another_process_reaches_one_that_waits_for_it() {
    for backend in BOTH {
        let home = Home::new(backend);
        let pattern = neuron::Pattern::exactly(&control());
        let mut waiting = home.ledger.subscribe(pattern, From::Now).unwrap();
        let other = home.another();
        let heard = block_on(async {
            let given = std::thread::spawn(move || give(&other, 0));
            let heard = waiting.next().await.unwrap();
            given.join().unwrap();
            heard
        });
        assert_eq!(heard.body.kind, ControlPaused::TYPE);
        assert!(orders(&home.ledger).paused);
    }
}

#[test]
fn an_order_amid_more_than_anybody_keeps_in_memory_is_late_and_not_missed() {
    let home = Home::new(super::Backend::Memory);
    let pattern = neuron::Pattern::exactly(&control());
    let mut busy = home.ledger.subscribe(pattern, From::Now).unwrap();
    give(&home.ledger, 0);
    let noise = || Append::of((0..limits::RING_MAX).map(|_| note("noise")));
    home.ledger.append_blocking(noise()).unwrap();
    home.ledger.append_blocking(noise()).unwrap();
    give(&home.ledger, 1);
    let kinds: Vec<_> = std::iter::from_fn(|| busy.try_next().unwrap())
        .map(|envelope| envelope.body.kind.to_string())
        .collect();
    assert_eq!(kinds, [ControlPaused::TYPE, ControlResumed::TYPE]);
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn orders_add_up_to_the_same_for_every_process_and_obeying_twice_is_obeying_once(
        backend in backend(), given in vec((0..2_usize, 0..3_usize), 0..10),
    ) {
        let home = Home::new(backend);
        let processes = [home.another(), home.another()];
        for (who, what) in &given {
            give(&processes[*who], *what);
        }
        let given: Vec<usize> = given.iter().map(|(_, what)| *what).collect();
        for ledger in processes.iter().chain([&home.ledger]) {
            let orders = orders(ledger);
            prop_assert_eq!((orders.paused, orders.cancelled.is_some()), meant(&given));
            prop_assert_eq!(orders.head, given.len() as u64);
        }
        let last = given.last().copied().unwrap_or(1);
        give(&home.ledger, last);
        let again: Vec<usize> = given.iter().copied().chain([last]).collect();
        prop_assert_eq!(meant(&again), meant(&[given, vec![last]].concat()));
        let orders = orders(&home.ledger);
        prop_assert_eq!((orders.paused, orders.cancelled.is_some()), meant(&again));
    }
}
