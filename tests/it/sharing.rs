//! Many processes on one file: opening and closing all at once, killed at any moment, and taking turns.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use neuron::{
    Append, Author, Draft, Error, ErrorKind, Json, Millis, Receipt, Topic,
    store::{Access, Durability, Options, Select, Sqlite, Store, conformance, verify},
};
use neuron_workspace::{Dice, PATIENCE, Process, fresh_seed, is_long, scratch, seed_given};

/// This very test, started as a child with a deed.
fn child(path: &Path, deed: &str) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "sharing::a_child_does_its_deed", "--nocapture"])
        .env("SHARING_STORE", path)
        .env("SHARING_DEED", deed);
    Process::start(command)
}

/// The children's part of this file; without a deed there is nothing to do.
#[test]
fn a_child_does_its_deed() {
    let Some(path) = std::env::var_os("SHARING_STORE").map(PathBuf::from) else {
        return;
    };
    let deed = std::env::var("SHARING_DEED").unwrap();
    let outcome = match deed.as_str() {
        "open" => open_and_close(&path),
        "read" => read_and_close(&path),
        "pour" => pour(&path),
        _ => panic!("no deed: {deed}"),
    };
    if let Err(error) = outcome {
        say(&format!("error of `{deed}`: {:?} {error}", error.kind()));
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever started this one may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn options(access: Access) -> Options {
    Options {
        access,
        durability: Durability::Process,
        ..Options::default()
    }
}

fn append(store: &Sqlite, topic: &str, text: &str) -> Result<Receipt, Error> {
    let draft = Draft::new(Topic::new(topic).unwrap(), Author::cli(), "said").unwrap();
    let draft = draft.json(Json::of(text).unwrap(), None);
    let batch = conformance::batch(Append::of([draft]), Millis(1)).unwrap();
    Ok(store.append_blocking(batch)?.remove(0))
}

/// Opens, appends and closes, once for each line that it reads.
fn open_and_close(path: &Path) -> Result<(), Error> {
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let store = Sqlite::open(path, options(Access::Create))?;
        let receipt = append(&store, "opened", &line)?;
        drop(store);
        say(&format!("stands {} {}", receipt.pos, receipt.id));
    }
    Ok(())
}

/// Opens for reading and closes, once for each line that it reads.
fn read_and_close(path: &Path) -> Result<(), Error> {
    for line in std::io::stdin().lock().lines() {
        if line.is_err() {
            break;
        }
        let store = Sqlite::open(path, options(Access::Read))?;
        let (last, _) = store.last()?;
        let page = store.page(&Select::All, neuron::store::Range::ALL)?;
        assert!(page.rows.len() as u64 >= last.min(1), "what is read is no prefix");
        drop(store);
        say(&format!("read {last}"));
    }
    Ok(())
}

/// Appends without pause until it is killed.
fn pour(path: &Path) -> Result<(), Error> {
    let store = Sqlite::open(path, options(Access::Create))?;
    let own = poured(std::process::id());
    append(&store, &own, "first")?;
    say("pours");
    loop {
        append(&store, &own, "more")?;
    }
}

fn poured(process: u32) -> String {
    format!("poured.{process}")
}

/// Processes that append without pause.
fn pouring(path: &Path, count: usize) -> Vec<Process> {
    let mut children: Vec<Process> = (0..count).map(|_| child(path, "pour")).collect();
    for child in &mut children {
        child.wait_for("pours");
    }
    children
}

/// Waits until a process has appended so many times more.
fn goes_on(store: &Sqlite, child: &mut Process, times: u64) {
    let topic = Topic::new(poured(child.id())).unwrap();
    let enough = store.head(&topic).unwrap() + times;
    let until = Instant::now() + PATIENCE;
    while store.head(&topic).unwrap() < enough {
        assert!(Instant::now() < until, "it gets no turn; it said {:?}", child.said());
        std::thread::yield_now();
    }
}

/// What was acknowledged stands where it was said to.
fn check<'a>(path: &Path, said: impl IntoIterator<Item = &'a String>) {
    let store = Sqlite::open(path, Options::default()).unwrap();
    let mut ids = BTreeMap::new();
    let mut range = neuron::store::Range::ALL;
    loop {
        let page = store.page(&Select::All, range).unwrap();
        ids.extend(page.rows.iter().map(|row| (row.pos, row.id.to_string())));
        match page.next {
            Some(next) => range.from = next,
            None => break,
        }
    }
    for line in said {
        if let ["stands", pos, id] = line.split(' ').collect::<Vec<_>>()[..] {
            assert_eq!(ids[&pos.parse::<u64>().unwrap()], id);
        }
        assert!(!line.starts_with("error") && !line.contains("panicked"), "{line}");
    }
    verify::verify(&store).unwrap();
}

#[test]
fn twenty_processes_that_make_open_close_and_are_killed_at_once_see_no_error() {
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    let mut dice = Dice::new(seed);
    let folder = scratch();
    let (rounds, stores) = if is_long() { (2_000, 10) } else { (60, 2) };
    for number in 0..stores {
        let path = folder.path().join(format!("{number}.db"));
        // The first one is made by all of them at once.
        let mut children: Vec<Process> = (0..20).map(|_| child(&path, "open")).collect();
        let mut said = Vec::new();
        for child in &mut children {
            child.say("first");
        }
        for child in &mut children {
            said.push(child.wait_for("stands"));
        }
        for slot in [3, 7, 11] {
            children[slot] = reader(&path);
        }
        for _ in 0..rounds {
            let asked: Vec<usize> = (0..children.len()).filter(|_| dice.once_in(2)).collect();
            for &one in &asked {
                let child = &mut children[one];
                child
                    .try_say("again")
                    .unwrap_or_else(|_| panic!("seed {seed}: it ended; it said {:?}", child.said()));
            }
            let victim = dice.below(children.len());
            let reads = [3, 7, 11].contains(&victim);
            if dice.once_in(2) {
                children[victim].kill();
                said.extend(children[victim].said().iter().cloned());
                children[victim] = if reads { reader(&path) } else { child(&path, "open") };
            }
            for one in asked.into_iter().filter(|one| *one != victim) {
                let word = if [3, 7, 11].contains(&one) { "read" } else { "stands" };
                said.push(
                    children[one]
                        .line(word)
                        .unwrap_or_else(|fault| panic!("seed {seed}: {fault}")),
                );
            }
        }
        for child in children {
            said.extend(child.wait().1);
        }
        check(&path, &said);
    }
}

fn reader(path: &Path) -> Process {
    child(path, "read")
}

#[test]
fn of_four_processes_that_append_without_pause_none_is_kept_waiting_by_the_others() {
    let folder = scratch();
    let path = folder.path().join("poured.db");
    let mut children = pouring(&path, 4);
    let store = Sqlite::open(&path, options(Access::Create)).unwrap();
    for round in 0..5 {
        // Whoever comes in between gets its turn as well.
        append(&store, "between", &round.to_string()).unwrap();
        for child in &mut children {
            goes_on(&store, child, 20);
        }
    }
    drop(children);
    verify::verify(&store).unwrap();
}

#[test]
fn a_process_that_is_stopped_or_killed_while_it_waits_for_its_turn_is_passed_over() {
    let folder = scratch();
    let path = folder.path().join("turns.db");
    let mut children = pouring(&path, 3);
    let brief = Options {
        wait: Duration::from_millis(300),
        ..options(Access::Create)
    };
    let store = Sqlite::open(&path, brief).unwrap();
    // Stopped at any point: most of the time it waits. Inside a commit it holds up the others, who say so.
    let mut passed = 0;
    for round in 0..30 {
        let victim = round % 3;
        children[victim].pause();
        match append(&store, "between", &round.to_string()) {
            Ok(_) => {
                passed += 1;
                for other in [(victim + 1) % 3, (victim + 2) % 3] {
                    goes_on(&store, &mut children[other], 5);
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
        children[victim].resume();
        goes_on(&store, &mut children[victim], 1);
    }
    assert!(passed > 0, "somebody always stood inside a commit");
    children.remove(0).kill();
    for child in &mut children {
        goes_on(&store, child, 20);
    }
    drop(children);
    verify::verify(&store).unwrap();
}
