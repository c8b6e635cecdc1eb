//! L12: ephemeral loss is never data loss.

use neuron::{
    Append, Author, Cause, Contract, Draft, ErrorKind, Parent, Pattern, RunId, Topic,
    fold::{Count, Latest},
    limits,
    topic::catalog,
};
use proptest::{collection::vec, prelude::any, prop_assert, prop_assert_eq, proptest};

use super::{BOTH, Backend, Home, backend, block_on, cases, note, rows, script};

fn air(value: usize) -> Draft {
    let topic = Topic::new("air.wind").unwrap();
    Draft::new(topic, Author::cli(), "wind")
        .unwrap()
        .payload(&value)
        .unwrap()
}

fn home(backend: Backend) -> Home {
    let home = Home::new(backend);
    home.declare("air.*", Contract::RETAINED);
    home
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn the_durable_topics_alone_make_everything_again(
        backend in backend(), script in script(), gusts in vec(0..4_usize, 8), listens in any::<bool>(),
    ) {
        let (windy, still) = (home(backend), home(backend));
        let listener = listens.then(|| windy.ledger.bus().listen(Pattern::all()));
        for (batch, gusts) in script.iter().zip(gusts) {
            for gust in 0..gusts {
                windy.ledger.bus().publish(air(gust)).unwrap();
            }
            windy.write(std::slice::from_ref(batch));
            still.write(std::slice::from_ref(batch));
        }
        // Not a byte of the record knows of what was only delivered.
        prop_assert_eq!(rows(&windy.ledger), rows(&still.ledger));
        let views = |home: &Home| (
            home.ledger.fold(&(Count, Latest), None).unwrap(),
            home.ledger.store().topics().unwrap(),
        );
        let before = views(&windy);
        drop(listener);
        let windy = windy.reopened();
        prop_assert_eq!(&views(&windy), &before);
        prop_assert_eq!(views(&still), before);
        // The value that was retained went with the process, and that is all that went.
        let mut late = windy.ledger.bus().listen(Pattern::new("air.*").unwrap());
        prop_assert!(late.try_next().unwrap().is_none());
    }
}

#[test]
fn nothing_durable_may_go_over_the_bus_and_nothing_ephemeral_into_the_store() {
    for backend in BOTH {
        let home = home(backend);
        let before = rows(&home.ledger);
        let lost = home.ledger.bus().publish(note("lost")).unwrap_err();
        assert_eq!(lost.kind(), ErrorKind::Contract);
        assert!(lost.message().contains("append to it through the ledger"), "{lost}");
        let kept = home
            .ledger
            .append_blocking(Append::of([note("with it"), air(1)]))
            .unwrap_err();
        assert_eq!(kept.kind(), ErrorKind::Contract);
        assert!(kept.message().contains("publish to it on the bus"), "{kept}");
        let run = RunId::new("r").unwrap();
        let gauge = Draft::new(catalog::progress(&run), Author::cli(), "progress").unwrap();
        assert_eq!(home.ledger.bus().publish(gauge).unwrap().seq, 1);
        let order = Draft::new(catalog::run_control(&run), Author::cli(), "control.paused").unwrap();
        assert_eq!(
            home.ledger.bus().publish(order).unwrap_err().kind(),
            ErrorKind::Contract
        );
        assert_eq!(rows(&home.ledger), before);
    }
}

#[test]
fn nothing_durable_names_what_was_only_delivered_and_the_other_way_round() {
    for backend in BOTH {
        let home = home(backend);
        let stored = home
            .ledger
            .append_blocking(Append::of([note("stored")]))
            .unwrap()
            .remove(0);
        let gust = home.ledger.bus().publish(air(1)).unwrap();
        let named = note("because of the wind").cause(Cause::Envelope(gust.reference()));
        let refusal = home.ledger.append_blocking(Append::of([named])).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Malformed);
        assert!(
            refusal.to_string().contains("air.wind seq 1 is not in this store"),
            "{refusal}"
        );
        let stored = home.ledger.store().row(&stored.topic, stored.seq).unwrap().unwrap();
        let stored = stored.envelope().unwrap();
        for draft in [
            air(2).cause(neuron::Ledger::cause(&stored)),
            air(2).parent(Parent::Seq(1)),
        ] {
            let refusal = home.ledger.bus().publish(draft).unwrap_err();
            assert_eq!(refusal.kind(), ErrorKind::Contract);
        }
    }
}

#[test]
fn whoever_comes_while_a_value_is_published_gets_it_kept_or_live_and_once() {
    let home = home(Backend::Memory);
    for round in 0..500 {
        let bus = home.ledger.bus().clone();
        let neighbour = std::thread::spawn(move || bus.publish(air(round)).unwrap());
        let mut listener = home.ledger.bus().listen(Pattern::new("air.*").unwrap());
        let published = neighbour.join().unwrap();
        let mut heard = Vec::new();
        while let Some(envelope) = listener.try_next().unwrap() {
            heard.push(envelope.seq);
        }
        let times = heard.iter().filter(|seq| **seq == published.seq).count();
        assert_eq!(times, 1, "round {round}: heard {heard:?}");
    }
}

#[test]
fn a_listener_that_only_looks_now_and_then_is_told_what_it_lost() {
    let home = home(Backend::Memory);
    let mut listener = home.ledger.bus().listen(Pattern::new("air.*").unwrap());
    for value in 0..limits::EPHEMERAL_QUEUE_MAX + 2 {
        home.ledger.bus().publish(air(value)).unwrap();
    }
    let mut heard = 0;
    let lost = loop {
        match listener.try_next() {
            Ok(Some(_)) => heard += 1,
            Ok(None) => panic!("the loss was not told"),
            Err(lagged) => break lagged.0,
        }
    };
    assert_eq!((heard, lost), (limits::EPHEMERAL_QUEUE_MAX, 2));
    assert!(listener.try_next().unwrap().is_none(), "it is told once");
    home.ledger.bus().publish(air(0)).unwrap();
    assert!(listener.try_next().unwrap().is_some());
}

#[test]
fn one_that_waits_for_a_single_envelope_is_told_when_it_may_have_been_lost() {
    let home = home(Backend::Memory);
    let pattern = || Pattern::new("air.*").unwrap();
    home.ledger.bus().publish(air(7)).unwrap();
    let met = block_on(
        home.ledger
            .bus()
            .next(pattern(), |envelope| envelope.decode::<usize>().ok() == Some(7)),
    );
    assert_eq!(met.unwrap().decode::<usize>().unwrap(), 7);
    let bus = home.ledger.bus().clone();
    // The filter itself publishes more than the queue holds, as a busy neighbour would.
    let lost = block_on(home.ledger.bus().next(pattern(), |envelope| {
        if envelope.decode::<usize>().ok() == Some(7) {
            (0..=limits::EPHEMERAL_QUEUE_MAX).for_each(|_| drop(bus.publish(air(8)).unwrap()));
        }
        false
    }));
    assert_eq!(lost.unwrap_err().0, 1);
}
