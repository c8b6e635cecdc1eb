//! L1: state is never stored, it is folded.

use std::{collections::BTreeMap, fs};

use neuron::{
    Append, Digest, Envelope, Error, Fold, Kind, Pattern,
    fold::{Codec, Count, Folded, Latest},
    store::{Select, Snapshot},
};
use proptest::{prelude::*, sample::Index};

use super::{Backend, Home, backend, block_on, cases, note, rows, script, topic};

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

/// Where everything was said, if it keeps snapshots or not.
#[derive(Clone)]
struct Places {
    select: Select,
    kept: bool,
}

impl Fold for Places {
    type State = BTreeMap<String, Vec<u64>>;

    fn init(&self) -> Self::State {
        BTreeMap::new()
    }

    fn apply(&self, places: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        places.entry(envelope.decode()?).or_default().push(envelope.pos);
        Ok(())
    }

    fn select(&self) -> Select {
        self.select.clone()
    }

    fn snapshot(&self) -> Option<Codec<Self::State>> {
        self.kept.then(|| Codec::new("places", 1))
    }
}

/// What has become of a snapshot.
#[derive(Clone, Copy, Debug)]
enum Fate {
    /// It is there.
    Whole,
    /// It names an envelope that does not stand at its place.
    Elsewhere,
    /// Its place is beyond the log.
    Beyond,
    /// What it holds is no state.
    Unreadable,
    /// The file that it is in is gone.
    Deleted,
    /// A byte of that file is another one.
    Damaged,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        Just(Fate::Whole),
        Just(Fate::Elsewhere),
        Just(Fate::Beyond),
        Just(Fate::Unreadable),
        Just(Fate::Deleted),
        Just(Fate::Damaged),
    ]
}

/// Puts the state at `cut` aside, and lets its fate have it.
fn put_aside(home: &Home, fold: &Places, cut: u64, fate: Fate, place: Index) {
    let folded = home
        .ledger
        .fold(
            &Places {
                kept: false,
                ..fold.clone()
            },
            Some(cut),
        )
        .unwrap();
    let codec = fold.snapshot().unwrap();
    let rows = rows(&home.ledger);
    let Some(at) = rows.iter().find(|row| row.pos == folded.upto) else {
        return;
    };
    let mut snapshot = Snapshot {
        pos: at.pos,
        id: at.id,
        state: codec.encode(&folded.state).unwrap(),
    };
    match fate {
        Fate::Elsewhere => snapshot.id = Digest::content(b"another"),
        Fate::Beyond => snapshot.pos += rows.len() as u64,
        Fate::Unreadable => drop(snapshot.state.pop()),
        Fate::Whole | Fate::Deleted | Fate::Damaged => {}
    }
    home.ledger.store().put_snapshot(&codec.key(), &snapshot).unwrap();
    if home.memory.is_some() {
        return;
    }
    let side = home.path().with_extension("db.side");
    match fate {
        Fate::Deleted => fs::remove_file(side).unwrap(),
        Fate::Damaged => {
            let mut bytes = fs::read(&side).unwrap();
            let place = place.index(bytes.len());
            bytes[place] ^= 0x55;
            fs::write(side, bytes).unwrap();
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn a_snapshot_of_any_cut_whole_lost_or_damaged_changes_no_answer(
        backend in backend(), script in script(), cut in 0..40_u64, upto in 0..40_u64, fate in fate(),
        place in any::<Index>(), one in any::<bool>(),
    ) {
        let home = Home::new(backend);
        home.write(&script);
        let select = if one { Select::Topic(topic(0)) } else { Select::Pattern(Pattern::new("law.*").unwrap()) };
        let kept = Places { select, kept: true };
        let plain = Places { kept: false, ..kept.clone() };
        put_aside(&home, &kept, cut, fate, place);
        let both = |upto| (home.ledger.fold(&kept, upto).unwrap(), home.ledger.fold(&plain, upto).unwrap());
        let (now, scratch) = both(None);
        prop_assert_eq!(&now, &scratch);
        let (then, scratch) = both(Some(upto));
        prop_assert_eq!(then, scratch);
        let all = rows(&home.ledger);
        let at = all[usize::try_from(cut).unwrap() % all.len()].at;
        let moment = (home.ledger.fold_at(&kept, at).unwrap(), home.ledger.fold_at(&plain, at).unwrap());
        prop_assert_eq!(moment.0, moment.1);
        // A view that begins there, and one more word.
        let (viewed, folded) = block_on(async {
            let view = home.ledger.view(kept.clone()).await.unwrap();
            let before = view.read(Clone::clone).unwrap();
            assert_eq!(before, now.state);
            let receipt = home.ledger.publish(note("one more")).await.unwrap();
            let viewed = view.at(&receipt).await.unwrap().read(Clone::clone).unwrap();
            (viewed, home.ledger.fold(&plain, None).unwrap().state)
        });
        prop_assert_eq!(viewed, folded);
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
