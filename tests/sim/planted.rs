//! The oracle finds what it is there to find: logs that break one law each.

use neuron::{
    Append, Author, Cause, Draft, Expectation, Json, Millis, Topic,
    store::{Memory, Range, Row, Select, Store, conformance},
};

use super::oracle::{Oracle, Said, Told, Verdict};

fn said(topic: &str, word: &str, value: Option<u64>) -> Draft {
    let draft = Draft::new(Topic::new(topic).unwrap(), Author::cli(), "said").unwrap();
    let word = word.to_owned();
    draft.json(Json::of(&Said { word, value }).unwrap(), None)
}

/// A log of one batch, `a` and `b` because of it, and a register that was set twice.
fn log() -> (Oracle, Vec<Row>) {
    let store = Memory::new().unwrap();
    let write = |drafts: Vec<Draft>| {
        let batch = conformance::batch(Append::of(drafts), Millis(1)).unwrap();
        store.append_blocking(batch).unwrap()
    };
    write(vec![
        said("sim.a", "a", None),
        said("sim.b", "b", None).cause(Cause::Index(0)),
    ]);
    for (word, value) in [("c", 1), ("d", 2)] {
        write(vec![said("sim.registers", word, Some(value)).key("red").unwrap()]);
    }
    let mut oracle = Oracle::default();
    for words in [vec!["a", "b"], vec!["c"], vec!["d"]] {
        let batch = oracle.tries(words);
        oracle.told(batch, Told::Stands);
    }
    (oracle, store.page(&Select::All, Range::ALL).unwrap().rows)
}

fn judge(oracle: &mut Oracle, rows: &[Row]) -> Verdict {
    rows.iter().try_for_each(|row| oracle.take(row))?;
    oracle.batches()
}

#[test]
fn an_honest_log_is_let_through() {
    let (mut oracle, rows) = log();
    judge(&mut oracle, &rows).unwrap();
}

#[test]
fn each_broken_law_is_found() {
    type Break = fn(&mut Oracle, &mut Vec<Row>);
    let breaks: [(Break, &str); 11] = [
        (|_, rows| drop(rows.remove(1)), "pos 3 follows 1"),
        (|_, rows| rows.truncate(1), "1 of 2 words stand"),
        (|_, rows| rows.truncate(3), "0 of 1 words stand"),
        (|_, rows| rows[1].pos = 1, "pos 1 follows 1"),
        (|_, rows| rows[3].seq = 3, "sim.registers seq 3 is not 2"),
        (|_, rows| rows[0].at = Millis(i64::MAX), "at fell"),
        (|_, rows| rows[2].id = rows[0].id, "pos 3 is not intact"),
        (|_, rows| rows[1].cause = None, "its column leads to None"),
        (|oracle, _| oracle.told(1, Told::Refused), "`c` was refused and stands"),
        (
            |oracle, rows| {
                *oracle = Oracle::default();
                rows.truncate(1);
            },
            "nobody ever wrote `a`",
        ),
        (
            |_, rows| {
                let (first, second) = (rows[2].clone(), rows[3].clone());
                // As if both had read the register before either wrote.
                rows[2].record = second.record;
                rows[2].id = second.id;
                rows[3].record = first.record;
                rows[3].id = first.id;
            },
            "an update is lost",
        ),
    ];
    for (damage, told) in breaks {
        let (mut oracle, mut rows) = log();
        damage(&mut oracle, &mut rows);
        let verdict = judge(&mut oracle, &rows).unwrap_err();
        assert!(verdict.contains(told), "wanted `{told}`, found `{verdict}`");
    }
}

#[test]
fn a_word_that_stands_twice_is_found() {
    let (mut oracle, rows) = log();
    judge(&mut oracle, &rows).unwrap();
    let store = Memory::new().unwrap();
    let fill = (0..4).map(|n| said("sim.c", &n.to_string(), None));
    let again = Append::of(fill.chain([said("sim.d", "a", None)]));
    let again = again.expect(Expectation::Head(Topic::new("sim.c").unwrap(), 0));
    store
        .append_blocking(conformance::batch(again, Millis(1)).unwrap())
        .unwrap();
    let row = store.page(&Select::All, Range::ALL).unwrap().rows.pop().unwrap();
    assert_eq!(oracle.take(&row).unwrap_err(), "`a` stands twice");
}

#[test]
fn an_effect_that_stands_twice_or_of_what_is_no_message_is_found() {
    let effect = |message: u64, number: u64| (format!("effect-{message}-{number}"), "sim.effects");
    let judged = |words: [(String, &'static str); 3]| {
        let store = Memory::new().unwrap();
        let mut oracle = Oracle::default();
        for (word, topic) in &words {
            let batch = oracle.tries([&**word]);
            oracle.told(batch, Told::Stands);
            let append = Append::of([said(topic, word, None)]);
            let batch = conformance::batch(append, Millis(1)).unwrap();
            store.append_blocking(batch).unwrap();
        }
        let rows = store.page(&Select::All, Range::ALL).unwrap().rows;
        judge(&mut oracle, &rows).map(|()| oracle.unconsumed())
    };
    let (message, other) = (("a".to_owned(), "sim.a"), ("b".to_owned(), "sim.b"));
    assert_eq!(judged([message.clone(), other.clone(), effect(1, 1)]), Ok(0));
    assert_eq!(
        judged([message.clone(), other.clone(), ("c".to_owned(), "sim.a")]),
        Ok(2)
    );
    let twice = judged([message.clone(), effect(1, 1), effect(1, 2)]).unwrap_err();
    assert!(twice.contains("has it again at pos 3"), "{twice}");
    let none = judged([message, other, effect(2, 1)]).unwrap_err();
    assert!(none.contains("is the effect of"), "{none}");
}
