//! L4: an envelope's id is the hash of its canonical form.

use neuron::{
    Author, Digest, ENVELOPE_CONTEXT, Envelope, ErrorKind, Json, Kind, Millis, Topic,
    store::{
        Access, Options, Sqlite,
        verify::{Bad, verify},
    },
};
use proptest::{prelude::any, prop_assert, prop_assert_eq, proptest, sample::Index};
use rusqlite::{Connection, params};

use super::{Backend, Home, backend, cases, rows, script};

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
        // A ledger may refuse to open such a store; the store itself opens, and tells.
        let store = Sqlite::open_apart(home.path(), Options { access: Access::Read, ..Options::default() }).unwrap();
        let error = verify(&store).unwrap_err();
        prop_assert_eq!(error.kind(), ErrorKind::Corrupt);
        prop_assert_eq!(error.detail::<Bad>().map(|bad| bad.pos), Some(row.pos), "{}", error);
    }
}
