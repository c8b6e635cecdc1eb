//! L2: nothing is overwritten.

use neuron::{
    Append, Author, Contract, ErrorKind, Kind, Ledger, Millis, Pattern, Topic,
    fold::{Count, Latest},
    ledger::From,
    store::{Range, Select, verify},
};
use proptest::{collection::vec, prelude::any, prop_assert_eq, proptest};
use rusqlite::{Connection, types::Value};

use super::{BEGIN, Backend, Home, KEYS, KINDS, TOPICS, any_of, backend, block_on, cases, note, rows, script, topic};

/// The tables of a store as the file itself lists them, so that a new one is not forgotten here.
fn tables(shell: &Connection) -> Vec<String> {
    let query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    column(shell, query)
}

fn columns(shell: &Connection, table: &str) -> Vec<String> {
    column(
        shell,
        &format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid"),
    )
}

fn column(shell: &Connection, query: &str) -> Vec<String> {
    let mut statement = shell.prepare(query).unwrap();
    let names = statement.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

/// Every value of every row of every table.
fn dump(shell: &Connection) -> Vec<Vec<Value>> {
    let of = |table: String| {
        let width = columns(shell, &table).len();
        let mut statement = shell.prepare(&format!("SELECT * FROM {table} ORDER BY rowid")).unwrap();
        let rows = statement
            .query_map([], |row| (0..width).map(|place| row.get(place)).collect())
            .unwrap();
        rows.map(Result::unwrap).collect::<Vec<Vec<Value>>>()
    };
    tables(shell).into_iter().flat_map(of).collect()
}

#[test]
fn every_table_of_the_store_refuses_update_delete_and_replacing_insert() {
    let home = Home::new(Backend::Sqlite);
    home.ledger.store_blob(&b"a blob"[..]).unwrap();
    home.ledger.append_blocking(Append::of([note("a note")])).unwrap();
    let shell = Connection::open(home.path()).unwrap();
    let before = dump(&shell);
    let names = tables(&shell);
    assert!(names.len() >= 6, "{names:?}");
    for table in names {
        let filled: bool = shell
            .query_row(&format!("SELECT count(*) > 0 FROM {table}"), [], |row| row.get(0))
            .unwrap();
        assert!(filled, "{table} holds nothing that could be changed");
        let mut changes = vec![
            format!("DELETE FROM {table}"),
            format!("DELETE FROM {table} WHERE rowid = (SELECT max(rowid) FROM {table})"),
            format!("REPLACE INTO {table} SELECT * FROM {table}"),
            format!("INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1"),
        ];
        for column in columns(&shell, &table) {
            changes.push(format!("UPDATE {table} SET {column} = {column}"));
            changes.push(format!("UPDATE OR REPLACE {table} SET {column} = {column}"));
        }
        for change in changes {
            let refusal = shell.execute_batch(&change).unwrap_err().to_string();
            assert!(refusal.contains("append only"), "{change}: {refusal}");
        }
    }
    assert_eq!(dump(&shell), before);
}

#[test]
fn a_row_goes_nowhere_but_to_the_end_of_the_log() {
    let home = Home::new(Backend::Sqlite);
    home.ledger.append_blocking(Append::of([note("a note")])).unwrap();
    let shell = Connection::open(home.path()).unwrap();
    let before = dump(&shell);
    let last: i64 = shell
        .query_row("SELECT max(pos) FROM envelope", [], |row| row.get(0))
        .unwrap();
    let copied = columns(&shell, "envelope").split_off(2).join(", ");
    for pos in [i64::MIN, -2, -1, 0, 1, last, last + 2, i64::MAX] {
        // Its `seq` would be right, so that nothing but its place speaks against it.
        let insert = format!(
            "INSERT OR REPLACE INTO envelope SELECT {pos}, topic, seq + 1, {} FROM envelope WHERE pos = {last}",
            copied.replacen("seq, ", "", 1)
        );
        assert!(shell.execute_batch(&insert).is_err(), "pos {pos} was taken");
    }
    assert_eq!(dump(&shell), before);
}

/// What a ledger answers to every question there is.
fn answers(ledger: &Ledger) -> Vec<String> {
    let store = ledger.store();
    let (last, at) = store.last().unwrap();
    let mut said = vec![format!("{last} {at:?}"), format!("{:?}", store.topics().unwrap())];
    let whole = rows(ledger);
    for index in 0..TOPICS.len() {
        let topic = topic(index);
        let head = store.head(&topic).unwrap();
        let beyond = store.row(&topic, head + 1).unwrap();
        let keyed = KEYS.map(|key| store.keyed(&topic, key).unwrap());
        let bytes = store.bytes(&topic, u64::MAX >> 1).unwrap();
        said.push(format!(
            "{head} {beyond:?} {keyed:?} {bytes} {:?}",
            store.row(&topic, head).unwrap()
        ));
    }
    let kinds = KINDS.map(|kind| Select::Kind(Kind::new(kind).unwrap()));
    let selected = [
        Select::Pattern(Pattern::new("law.**").unwrap()),
        Select::Topic(topic(1)),
    ];
    for select in kinds.into_iter().chain(selected) {
        let newest = ledger.read(select.clone()).newest_first().limit(3);
        let newest: Vec<_> = newest.envelopes().map(|envelope| envelope.unwrap().pos).collect();
        said.push(format!("{:?} {newest:?}", ledger.read(select).envelopes().count()));
    }
    for row in &whole {
        let found = store.with_id(&row.id.to_string()[..16]).unwrap();
        said.push(format!(
            "{found:?} {:?}",
            ledger.as_of_time(row.at).unwrap().store().last().unwrap()
        ));
    }
    said.push(format!("{:?}", ledger.fold(&(Count, Latest), None).unwrap()));
    said.push(format!("{:?}", verify::head(&**store).unwrap()));
    said.push(format!("{whole:?}"));
    said
}

proptest! {
    #![proptest_config(cases(120))]

    #[test]
    fn the_past_answers_as_it_did_then_and_takes_nothing(
        backend in backend(),
        first in script(),
        second in script(),
    ) {
        let home = Home::new(backend);
        home.write(&first);
        let (pos, at) = home.ledger.store().last().unwrap();
        let then = answers(&home.ledger);
        home.write(&second);
        let past = home.ledger.as_of(pos).unwrap();
        prop_assert_eq!(&answers(&past), &then);
        prop_assert_eq!(&answers(&home.ledger.as_of_time(at).unwrap()), &then);
        prop_assert_eq!(&answers(&home.ledger.as_of_time(Millis(at.0 + 6)).unwrap()), &then);
        prop_assert_eq!(past.append_blocking(Append::of([note("late")])).unwrap_err().kind(), ErrorKind::ReadOnly);
        prop_assert_eq!(past.defer(Append::of([note("late")])).unwrap_err().kind(), ErrorKind::ReadOnly);
        prop_assert_eq!(past.store_blob(&b"late"[..]).unwrap_err().kind(), ErrorKind::ReadOnly);
        let mut never = past.subscribe(Pattern::new("law.**").unwrap(), From::After(pos)).unwrap();
        prop_assert_eq!(never.try_next().unwrap().map(|envelope| envelope.pos), None);
        prop_assert_eq!(answers(&past), then);
        let beyond = home.ledger.store().last().unwrap().0 + 1;
        prop_assert_eq!(home.ledger.as_of(beyond).unwrap_err().kind(), ErrorKind::NotFound);
        let begin = home.ledger.as_of_time(Millis(BEGIN.0 - 1)).unwrap();
        prop_assert_eq!(begin.store().page(&Select::All, Range::ALL).unwrap().rows, vec![]);
    }

    #[test]
    fn what_was_written_reads_the_same_for_ever(backend in backend(), first in script(), second in script()) {
        let home = Home::new(backend);
        home.write(&first);
        let before = rows(&home.ledger);
        home.write(&second);
        prop_assert_eq!(&rows(&home.ledger)[..before.len()], &before[..]);
        let home = home.reopened();
        prop_assert_eq!(&rows(&home.ledger)[..before.len()], &before[..]);
    }

    #[test]
    fn a_contract_is_fixed_at_creation_whoever_asks(
        backend in backend(),
        order in vec((0..2_usize, any_of(&["new.*", "new.a", "new.**"]), any::<bool>()), 1..6),
    ) {
        // Two processes that know nothing of each other but what stands in the store.
        let home = Home::new(backend);
        let ledgers = [home.another(), home.another()];
        for (who, family, durable) in order {
            let contract = if durable { Contract::Durable } else { Contract::EPHEMERAL };
            let declared = block_on(ledgers[who].declare(
                &Pattern::new(family).unwrap(),
                contract,
                &Author::cli(),
            ));
            if let Err(error) = declared {
                prop_assert_eq!(error.kind(), ErrorKind::Contract);
            }
        }
        let new = Topic::new("new.a").unwrap();
        let seen = |ledger: &Ledger| ledger.contract(&new).map_err(|error| error.kind());
        let fresh = seen(&home.another());
        prop_assert_eq!(seen(&ledgers[0]), fresh);
        prop_assert_eq!(seen(&ledgers[1]), fresh);
    }
}
