//! L3: headers inject only.

use neuron::{Append, Author, Draft, Envelope, Error, ErrorKind, Json, Ledger, Parent, ledger::HeaderInjected};
use proptest::{collection::vec, prelude::any, prop_assert_eq, proptest};
use serde_json::json;

use super::{BOTH, Home, any_of, backend, block_on, cases, note, rows, topic};

const RESERVED: [&str; 12] = [
    "authz",
    "principal",
    "tokens-in",
    "tokens-out",
    "tokens-of-a-kind-yet-to-come",
    "tool-calls",
    "duration-ms",
    "cost-usd",
    "key",
    "epoch",
    "idempotency-key",
    "caused-by",
];

fn envelope(ledger: &Ledger, seq: u64) -> Envelope {
    ledger.store().row(&topic(0), seq).unwrap().unwrap().envelope().unwrap()
}

/// An injection made by hand, as a program would that knows the wire and not the ledger's function.
fn by_hand(target: Option<u64>, payload: &serde_json::Value) -> Draft {
    let draft = Draft::new(topic(0), Author::cli(), "header.injected").unwrap();
    let draft = draft.json(Json::of(payload).unwrap(), None);
    match target {
        Some(seq) => draft.parent(Parent::Seq(seq)),
        None => draft,
    }
}

fn publish(ledger: &Ledger, draft: Draft) -> Result<(), Error> {
    ledger.append_blocking(Append::of([draft])).map(|_| ())
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn current_is_the_last_injection_history_is_all_and_the_birth_list_never_changes(
        backend in backend(),
        born in vec((any_of(&["mood", "role", "é"]), any::<i32>()), 0..4),
        later in vec((0..2_u64, any_of(&["mood", "role", "é"]), any::<i32>()), 0..8),
    ) {
        let home = Home::new(backend);
        for text in ["one", "two"] {
            let draft = born.iter().fold(note(text), |draft, (key, value)| draft.header(key, value).unwrap());
            publish(&home.ledger, draft).unwrap();
        }
        let mut wanted = [born.clone(), born.clone()];
        let mut seen = Vec::new();
        for (target, key, value) in &later {
            let to = envelope(&home.ledger, target + 1);
            let receipt = block_on(home.ledger.inject(&to, key, value, "because", &Author::cli())).unwrap();
            wanted[usize::try_from(*target).unwrap()].push((key, *value));
            seen.push((receipt.pos, wanted.clone()));
        }
        let read = |ledger: &Ledger, seq: u64, upto| -> Vec<(String, i32)> {
            let headers = ledger.headers(&envelope(ledger, seq), upto).unwrap();
            headers.iter().map(|header| (header.key.clone(), header.value.decode().unwrap())).collect()
        };
        let plain = |list: &[(&str, i32)]| list.iter().map(|(key, value)| ((*key).to_owned(), *value)).collect::<Vec<_>>();
        let home = home.reopened();
        for (index, wanted) in (1..).zip(&wanted) {
            prop_assert_eq!(read(&home.ledger, index, None), plain(wanted));
            // What each key says now is its last injection.
            let headers = home.ledger.headers(&envelope(&home.ledger, index), None).unwrap();
            for key in ["mood", "role", "é"] {
                let last = wanted.iter().rev().find(|(of, _)| *of == key).map(|(_, value)| *value);
                prop_assert_eq!(headers.decode::<i32>(key), last);
                prop_assert_eq!(headers.history(key).count(), wanted.iter().filter(|(of, _)| *of == key).count());
            }
            let birth = envelope(&home.ledger, index).headers;
            let birth: Vec<_> = birth.iter().map(|header| (header.key.clone(), header.value.decode().unwrap())).collect();
            prop_assert_eq!(birth, plain(&born));
        }
        // And as of every earlier moment.
        for (pos, then) in seen {
            for (index, wanted) in (1..).zip(&then) {
                prop_assert_eq!(read(&home.ledger, index, Some(pos)), plain(wanted));
            }
        }
    }
}

#[test]
fn a_reserved_key_cannot_be_injected_by_any_way_in() {
    for backend in BOTH {
        let home = Home::new(backend);
        publish(&home.ledger, note("target")).unwrap();
        let before = rows(&home.ledger);
        for key in RESERVED {
            let at_birth = note("x").header(key, &1).unwrap_err();
            let later = block_on(
                home.ledger
                    .inject(&envelope(&home.ledger, 1), key, &1, "because", &Author::cli()),
            );
            let forged = by_hand(Some(1), &json!({"key": key, "value": 1, "reason": "because"}));
            for refusal in [at_birth, later.unwrap_err(), publish(&home.ledger, forged).unwrap_err()] {
                assert_eq!(refusal.kind(), ErrorKind::Reserved, "{key}: {refusal}");
                assert!(refusal.to_string().contains(&format!("`{key}`")), "{refusal}");
            }
        }
        assert_eq!(rows(&home.ledger), before);
    }
}

#[test]
fn an_injection_that_the_fold_of_headers_could_not_read_is_refused() {
    for backend in BOTH {
        let home = Home::new(backend);
        publish(&home.ledger, note("target")).unwrap();
        let good = json!({"key": "mood", "value": 1, "reason": "because"});
        let schema = neuron::schema::of::<bool>().unwrap().reference();
        for (draft, kind) in [
            (by_hand(None, &good), ErrorKind::Malformed),
            (by_hand(Some(9), &good), ErrorKind::Malformed),
            (by_hand(Some(1), &json!({"key": "mood"})), ErrorKind::Schema),
            (by_hand(Some(1), &json!("mood")), ErrorKind::Schema),
            (
                by_hand(Some(1), &json!({"key": "", "value": 1, "reason": ""})),
                ErrorKind::Malformed,
            ),
            (
                by_hand(Some(1), &json!({"key": "x".repeat(257), "value": 1, "reason": ""})),
                ErrorKind::Malformed,
            ),
            (
                by_hand(
                    Some(1),
                    &json!({"key": "mood", "value": 1, "reason": "", "schema": schema}),
                ),
                ErrorKind::Schema,
            ),
        ] {
            let refusal = publish(&home.ledger, draft).unwrap_err();
            assert_eq!(refusal.kind(), kind, "{refusal}");
        }
        publish(&home.ledger, by_hand(Some(1), &good)).unwrap();
        let headers = home.ledger.headers(&envelope(&home.ledger, 1), None).unwrap();
        assert_eq!(headers.decode::<u32>("mood"), Some(1));
        let injection = envelope(&home.ledger, 2);
        assert!(injection.decode::<HeaderInjected>().is_ok());
        let twice = block_on(home.ledger.inject(&injection, "mood", &2, "again", &Author::cli()));
        assert_eq!(twice.unwrap_err().kind(), ErrorKind::Malformed);
    }
}
