//! L1: state is never stored, it is folded.

use neuron::{
    Append, Envelope, Error, Fold, Kind,
    fold::{Count, Folded, Latest},
    store::Select,
};
use proptest::{prop_assert_eq, proptest};

use super::{Backend, Home, backend, cases, note, rows, script, topic};

/// What was said on one topic, in order. It decodes what it is given, so an envelope of another topic would fail it.
struct Said;

impl Fold for Said {
    type State = Vec<String>;

    fn init(&self) -> Self::State {
        Vec::new()
    }

    fn apply(&self, said: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        said.push(format!("{} {}", envelope.seq, envelope.decode::<String>()?));
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(topic(0))
    }
}

/// How often something was asked.
struct Asked;

impl Fold for Asked {
    type State = u64;

    fn init(&self) -> u64 {
        0
    }

    fn apply(&self, asked: &mut u64, _: &Envelope) -> Result<(), Error> {
        *asked += 1;
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Kind(Kind::new("asked").unwrap())
    }
}

type Everything = ((Said, Asked), (Latest, Count));

fn everything() -> Everything {
    ((Said, Asked), (Latest, Count))
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_fold_that_goes_on_from_any_cut_equals_one_in_one_pass(
        backend in backend(), script in script(), cut in 0..40_u64,
    ) {
        let home = Home::new(backend);
        home.write(&script);
        let whole = home.ledger.fold(&everything(), None).unwrap();
        let mut folded = home.ledger.fold(&everything(), Some(cut)).unwrap();
        prop_assert_eq!(folded.upto, cut.min(whole.upto));
        home.ledger.fold_on(&everything(), &mut folded, None).unwrap();
        prop_assert_eq!(&folded, &whole);
        // One by one, with every envelope shown twice.
        let mut slow = Folded::start(&everything());
        for row in rows(&home.ledger) {
            for _ in 0..2 {
                slow.resume(&everything(), [row.envelope()]).unwrap();
            }
        }
        prop_assert_eq!(slow, whole);
    }

    #[test]
    fn folds_in_one_pass_equal_each_alone(backend in backend(), script in script()) {
        let home = Home::new(backend);
        home.write(&script);
        let ((said, asked), (latest, count)) = home.ledger.fold(&everything(), None).unwrap().state;
        prop_assert_eq!(said, home.ledger.fold(&Said, None).unwrap().state);
        prop_assert_eq!(asked, home.ledger.fold(&Asked, None).unwrap().state);
        prop_assert_eq!(latest, home.ledger.fold(&Latest, None).unwrap().state);
        prop_assert_eq!(count, home.ledger.fold(&Count, None).unwrap().state);
    }

    #[test]
    fn everything_that_is_not_of_record_can_be_deleted_and_is_rebuilt_equal(backend in backend(), script in script()) {
        let home = Home::new(backend);
        let receipts = home.write(&script);
        let views = |home: &Home| {
            let store = home.ledger.store();
            let places: Vec<_> = receipts.iter().map(|r| store.with_id(&r.id.to_string()).unwrap()).collect();
            let folded = home.ledger.fold(&everything(), None).unwrap();
            (folded, places, store.topics().unwrap(), home.ledger.contract(&topic(2)).unwrap())
        };
        let before = views(&home);
        let home = home.reopened();
        prop_assert_eq!(views(&home), before);
    }
}

/// Says what it was given before it fails.
struct Picky;

impl Fold for Picky {
    type State = u64;

    fn init(&self) -> u64 {
        0
    }

    fn apply(&self, state: &mut u64, envelope: &Envelope) -> Result<(), Error> {
        if envelope.decode::<String>()? == "two" {
            return Err(Error::terminal("no two"));
        }
        *state += 1;
        Ok(())
    }

    fn select(&self) -> Select {
        Select::Topic(topic(0))
    }
}

#[test]
fn a_fold_that_fails_says_where_and_has_not_gone_past() {
    let home = Home::new(Backend::Memory);
    home.ledger
        .append_blocking(Append::of([note("one"), note("two"), note("three")]))
        .unwrap();
    let mut folded = Folded::start(&Picky);
    let error = home.ledger.fold_on(&Picky, &mut folded, None).unwrap_err();
    assert_eq!(error.to_string(), "law.a seq 2: no two");
    assert_eq!(folded.state, 1);
    let again = home.ledger.fold_on(&Picky, &mut folded, None).unwrap_err();
    assert_eq!((again, folded.state), (error, 1));
}
