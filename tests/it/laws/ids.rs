//! L4: an envelope's id is the hash of its canonical form.

use neuron::{
    Append, Author, Contract, Digest, Draft, ENVELOPE_CONTEXT, Envelope, ErrorKind, Json, Kind, Millis, TokenId, Topic,
    agent::history,
    store::{
        Select,
        verify::{Bad, verify},
    },
    topic::catalog,
    vocabulary::{Message as _, step::StepCompleted},
};
use proptest::{prelude::any, prop_assert, prop_assert_eq, proptest, sample::Index};
use rusqlite::{Connection, params};

use super::{Backend, Home, backend, cases, note, rows, script};

/// Every way to change one thing about an envelope.
fn changed(envelope: &Envelope) -> Vec<Envelope> {
    let change = |change: fn(&mut Envelope)| {
        let mut other = envelope.clone();
        change(&mut other);
        other
    };
    vec![
        change(|e| e.topic = Topic::new(format!("{}.x", e.topic)).unwrap()),
        change(|e| e.seq += 1),
        change(|e| e.parent_seq = Some(e.parent_seq.map_or(1, |seq| seq + 1))),
        change(|e| e.author = Author::human("eve").unwrap()),
        change(|e| e.at = Millis(e.at.0 - 1)),
        change(|e| e.headers = neuron::Headers::default()),
        change(|e| e.body.kind = Kind::new(format!("{}.", e.body.kind)).unwrap()),
        change(|e| e.body.payload = None),
        change(|e| e.body.payload = Some(Json::of("another").unwrap())),
        change(|e| e.body.payload_schema = None),
        change(|e| e.body.contract = e.body.payload_schema),
        change(|e| {
            e.body.artifacts.push(neuron::Artifact {
                name: "x".into(),
                hash: None,
                kind: None,
            });
        }),
    ]
}

#[test]
fn a_damaged_declaration_is_told_to_whoever_needs_it_and_to_nobody_else() {
    let home = Home::new(Backend::Sqlite);
    home.declare("late.*", Contract::Durable);
    let shell = Connection::open(home.path()).unwrap();
    shell.execute_batch("DROP TRIGGER envelope_no_UPDATE").unwrap();
    for damage in [r#"replace(record, '"durable"', '"durabel"')"#, "'no JSON'"] {
        let update = format!("UPDATE envelope SET record = {damage} WHERE pos = 2");
        shell.execute_batch(&update).unwrap();
        let ledger = home.another();
        ledger.append_blocking(Append::of([note("one")])).unwrap();
        let late = Draft::new(Topic::new("late.a").unwrap(), Author::cli(), "said").unwrap();
        let refusal = ledger.append_blocking(Append::of([late])).unwrap_err();
        assert_eq!(refusal.kind(), ErrorKind::Corrupt);
        let told = refusal.to_string();
        assert!(told.contains("$topics seq 2") || told.contains("pos 2"), "{told}");
    }
}

#[test]
fn nothing_is_replayed_from_a_record_that_is_not_the_one_that_was_written() {
    let home = Home::new(Backend::Sqlite);
    let token = TokenId::new("worker-7fq3m2kd4t6wzx5a").unwrap();
    let steps = catalog::steps(&token);
    let completed = |n: u32| {
        let completed = StepCompleted {
            scope: "run-1".into(),
            key: format!("key#{n}"),
            name: "pay".into(),
            attempt: 1,
            output: Some(Json::of(&100).unwrap()),
            output_schema: None,
            resolved: None,
        };
        completed.draft(steps.clone(), Author::from(&token)).unwrap()
    };
    home.ledger.append_blocking(Append::of((0..3).map(completed))).unwrap();
    history(&home.another(), [steps.clone()]).unwrap();
    // A sum that reads well, and is another one.
    let shell = Connection::open(home.path()).unwrap();
    shell.execute_batch("DROP TRIGGER envelope_no_UPDATE").unwrap();
    let update = "UPDATE envelope SET record = replace(record, '100', '900') WHERE seq = 2 AND pos > 2";
    assert_eq!(shell.execute(update, []).unwrap(), 1);
    let refusal = history(&home.another(), [steps.clone()]).unwrap_err();
    assert_eq!(refusal.kind(), ErrorKind::Corrupt);
    let told = refusal.to_string();
    assert!(told.contains(&format!("{steps} seq 2")), "{told}");
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn an_id_is_the_hash_of_the_record_and_any_other_record_has_another(backend in backend(), script in script()) {
        let home = Home::new(backend);
        home.write(&script);
        for row in rows(&home.ledger) {
            prop_assert_eq!(Digest::derive(ENVELOPE_CONTEXT, row.record.as_bytes()), row.id);
            let canonical = Json::parse(&row.record).unwrap();
            prop_assert_eq!(canonical.as_str(), &*row.record);
            let envelope = row.envelope().unwrap();
            prop_assert!(envelope.is_intact().unwrap());
            for other in changed(&envelope) {
                if other != envelope {
                    prop_assert!(!other.is_intact().unwrap(), "{:?}", other);
                }
            }
        }
        prop_assert!(verify(&**home.ledger.store()).is_ok());
    }

    #[test]
    fn any_byte_of_a_record_or_of_an_id_that_changes_is_found_and_its_envelope_named(
        script in script(), which in any::<Index>(), place in any::<Index>(), bits in 1..=255_u8, of_id in any::<bool>(),
    ) {
        let home = Home::new(Backend::Sqlite);
        home.write(&script);
        let rows = rows(&home.ledger);
        let row = &rows[which.index(rows.len())];
        let column = if of_id { "id" } else { "record" };
        let mut bytes = if of_id { row.id.as_bytes().to_vec() } else { row.record.as_bytes().to_vec() };
        let place = place.index(bytes.len());
        bytes[place] ^= bits;
        let shell = Connection::open(home.path()).unwrap();
        shell.execute_batch("DROP TRIGGER envelope_no_UPDATE").unwrap();
        let value = if of_id { "?1" } else { "CAST(?1 AS TEXT)" };
        let update = format!("UPDATE envelope SET {column} = {value} WHERE pos = ?2");
        shell.execute(&update, params![bytes, i64::try_from(row.pos).unwrap()]).unwrap();
        // Whatever was damaged, the store opens, so that it can be looked at.
        let error = verify(&**home.another().store()).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        prop_assert_eq!(error.detail::<Bad>().map(|bad| bad.pos), Some(row.pos), "{}", error);
        // Whoever acts on what it reads is told when it comes to that envelope.
        let mut reading = home.another().read(Select::All).checked().envelopes();
        let before = reading.by_ref().take_while(Result::is_ok).count();
        prop_assert!((before as u64) < row.pos);
        let refusal = home.another().read(Select::All).from(row.pos).checked().envelopes().next().unwrap().unwrap_err();
        prop_assert_eq!(refusal.kind(), ErrorKind::Corrupt);
        let told = refusal.to_string();
        prop_assert!(told.contains(&format!("pos {}", row.pos)), "{}", told);
    }
}
