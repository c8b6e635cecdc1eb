use std::collections::BTreeMap;

use neuron::store::verify;
use neuron_workspace::{Dice, Process, fresh_seed, is_long, seed_given};
use rusqlite::{Connection, OpenFlags};

use super::Victim;

/// How many rows a till writes for itself.
const OWN: u32 = 1;

fn reader(victim: &Victim) -> Option<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(victim.store(), flags).ok()
}

/// Rows of the program and answers on the log, as one reading sees them.
fn rows_and_answers(reader: &Connection) -> (u32, u32) {
    let counts =
        "SELECT (SELECT count(*) FROM sale), (SELECT count(*) FROM envelope JOIN type ON type.id = envelope.type
                                                     WHERE type.name = 'transaction.committed')";
    let both = reader.query_row(counts, [], |row| Ok((row.get(0)?, row.get(1)?)));
    // Before the first of them there is no table.
    both.unwrap_or_default()
}

fn assert_one_each(victim: &Victim, when: &str) {
    let Some(reader) = reader(victim) else { return };
    let (rows, answers) = rows_and_answers(&reader);
    assert_eq!(rows, answers, "{when}");
}

/// Everything was sold once, whoever crashed.
fn assert_sold_once(victim: &Victim, runs: &[&str], customers: u32, when: &str) {
    assert_one_each(victim, when);
    let reader = reader(victim).unwrap();
    let mut sales = reader
        .prepare("SELECT customer, count(*) FROM sale GROUP BY 1")
        .unwrap();
    let sales = sales.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let sales: BTreeMap<String, u32> = sales.map(Result::unwrap).collect();
    assert!(sales.values().all(|count| *count == 1), "{when}: {sales:?}");
    let (sold, runs) = (u32::try_from(sales.len()).unwrap(), u32::try_from(runs.len()).unwrap());
    assert_eq!(sold, runs * 2 * (customers + OWN), "{when}: {sales:?}");
    let left: u32 = reader
        .query_row("SELECT left FROM stock", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 1_000 - runs * 2 * customers, "{when}");
    verify::verify(&**victim.ledger().unwrap().store()).unwrap();
}

#[test]
fn aborted_at_any_commit_rows_of_the_program_are_as_many_as_answers_and_each_is_there_once() {
    let wanted = Some("result: 4");
    let points: &[&str] = &["before", "after"];
    for point in points {
        for commit in 1.. {
            let victim = Victim::new("till");
            let when = format!("aborted {point} commit {commit}");
            let undisturbed = victim.run(&["--abort", point, &commit.to_string()]);
            assert_one_each(&victim, &when);
            if undisturbed.is_none() {
                assert_eq!(victim.run(&[]).as_deref(), wanted, "{when}");
            }
            assert_sold_once(&victim, &["r"], 2, &when);
            if undisturbed.is_some() {
                assert_eq!(undisturbed.as_deref(), wanted, "{when}");
                assert!(commit > 10, "{commit} commits");
                break;
            }
        }
    }
}

#[test]
fn a_process_that_dies_inside_a_transaction_leaves_nothing_of_it() {
    let mut victim = Victim::new("till");
    victim.dies_in("sell-r-a-1");
    assert_one_each(&victim, "dead");
    let begun = reader(&victim).unwrap();
    let rows: u32 = begun
        .query_row("SELECT count(*) FROM sale WHERE customer = 'r-a-1'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(rows, 0);
    drop(begun);
    assert_eq!(victim.run(&[]).as_deref(), Some("result: 4"));
    assert_sold_once(&victim, &["r"], 2, "run again");
}

/// Waits until it has committed some transactions.
fn sells(process: &mut Process, times: usize) {
    for _ in 0..times {
        if process.line("transaction.committed").is_err() {
            return;
        }
    }
}

#[test]
fn of_two_processes_killed_at_any_moment_each_sale_is_made_once() {
    const CUSTOMERS: u32 = 60;
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("NEURON_SEED={seed}");
    let mut dice = Dice::new(seed);
    let mut victim = Victim::new("till");
    victim.set("CUSTOMERS", &CUSTOMERS.to_string());
    let runs = ["r", "s"];
    let start = |victim: &mut Victim, run: usize| victim.set("RUN", runs[run]).start(&[]);
    let mut processes = [start(&mut victim, 0), start(&mut victim, 1)];
    for round in 0..if is_long() { 60 } else { 6 } {
        let dies = dice.below(2);
        sells(&mut processes[dies], 1 + dice.below(5));
        // While both of them write.
        assert_one_each(&victim, &format!("round {round}, alive"));
        processes[dies].kill();
        assert_one_each(&victim, &format!("round {round}"));
        processes[dies] = start(&mut victim, dies);
    }
    for mut process in processes {
        process.wait_for(&format!("result: {}", 2 * CUSTOMERS));
        assert!(process.wait().0.success());
    }
    assert_sold_once(&victim, &runs, CUSTOMERS, "in the end");
}
