//! L11 under fire: processes that fight over names, and are killed, stopped and continued at any moment.

use std::{
    collections::{BTreeMap, HashMap},
    io::{BufRead as _, Write as _},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use neuron::{
    Append, Author, Contract, ErrorKind, Ledger, Pattern, Topic,
    ownership::{LeaseClaimed, LeaseReleased, Ownership, Takeover},
    store::{Durability, Options, Select, verify},
    topic::catalog,
    vocabulary::Message as _,
};
use neuron_workspace::{Dice, PATIENCE, Process, fresh_seed, is_long, scratch, seed_given};
use serde::{Deserialize, Serialize};

/// What an owner writes under its epoch.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Worked {
    name: String,
    incarnation: String,
    epoch: u64,
}

impl neuron::vocabulary::Message for Worked {
    const TYPE: &'static str = "worked";
}

fn work() -> Topic {
    Topic::new("work").unwrap()
}

/// This very test, started as a child with a deed.
fn child(path: &Path, deed: &str, seed: u64) -> Process {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "leases::a_child_does_its_deed", "--nocapture"])
        .env("LEASES_STORE", path)
        .env("LEASES_DEED", format!("{deed} {seed}"));
    Process::start(command)
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // Whoever started this one may be gone.
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

fn open(path: &Path) -> Ledger {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let ledger = Ledger::open(path, options).unwrap();
    let pattern = Pattern::new("work").unwrap();
    futures::executor::block_on(ledger.declare(&pattern, Contract::Durable, &Author::cli())).unwrap();
    ledger
}

/// The children's part of this file; without a deed there is nothing to do.
#[test]
fn a_child_does_its_deed() {
    let Some(path) = std::env::var_os("LEASES_STORE").map(PathBuf::from) else {
        return;
    };
    let deed = std::env::var("LEASES_DEED").unwrap();
    let (deed, seed) = deed.split_once(' ').unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ledger = open(&path);
    let outcome = match deed {
        "fight" => runtime.block_on(fight(ledger, Dice::new(seed.parse().unwrap()))),
        "own" => runtime.block_on(own(ledger)),
        "covet" => runtime.block_on(covet(ledger)),
        _ => panic!("no deed: {deed}"),
    };
    if let Err(error) = outcome {
        say(&format!("error {:?} {error}", error.kind()));
    }
}

const NAMES: usize = 100;
/// Short, so that a stopped owner is taken over while the test runs.
const TTL: Duration = Duration::from_millis(600);

fn worked(owner: &Ownership, name: &str, epoch: u64) -> Append {
    let message = Worked {
        name: name.into(),
        incarnation: owner.incarnation().into(),
        epoch,
    };
    let draft = message.draft(work(), Author::cli()).unwrap();
    Append::of([draft]).owner(name, epoch)
}

/// Claims names, works under them, hands them over, gives them back or keeps them, without end. What it believes to own it
/// goes on believing until the store says otherwise: also after it was stopped for as long as anybody likes.
async fn fight(ledger: Ledger, mut dice: Dice) -> neuron::Result<(), neuron::Error> {
    let owner = Ownership::join(ledger.clone(), TTL)?;
    let mut mine: BTreeMap<String, u64> = BTreeMap::new();
    say("fights");
    loop {
        let mut name = format!("name:{}", dice.below(NAMES));
        if !mine.is_empty() && !dice.once_in(4) {
            let names: Vec<String> = mine.keys().cloned().collect();
            name.clone_from(dice.pick(&names));
        }
        let Some(epoch) = mine.get(&name).copied() else {
            let claimed = if dice.once_in(100) {
                // Long enough to see a stopped owner hang, if it is one.
                tokio::time::timeout(TTL * 2, owner.claim_when_free(&name)).await
            } else {
                Ok(owner.claim(&name).await)
            };
            match claimed {
                Ok(Ok(claimed)) => drop(mine.insert(name, claimed.epoch)),
                Ok(Err(error)) if ![ErrorKind::Busy, ErrorKind::Owned].contains(&error.kind()) => return Err(error),
                // Its owner lives, or somebody was stopped inside a commit.
                Ok(Err(_)) | Err(_) => {}
            }
            continue;
        };
        let outcome = match dice.below(30) {
            0 => {
                mine.remove(&name);
                owner.release(&name).await
            }
            1 => {
                let peers = owner.peers();
                let to = &dice.pick(&peers).incarnation;
                match owner.hand_over(&name, to).await {
                    Ok(_) if to != owner.incarnation() => drop(mine.remove(&name)),
                    Ok(_) => {}
                    // It died between the look and the hand-over.
                    Err(error) if [ErrorKind::NotFound, ErrorKind::Busy].contains(&error.kind()) => {}
                    // The store has taken it away, or says so now.
                    Err(error) if error.kind() == ErrorKind::Fenced => drop(mine.remove(&name)),
                    Err(error) => return Err(error),
                }
                Ok(())
            }
            _ => ledger.append(worked(&owner, &name, epoch)).await.map(drop),
        };
        match outcome {
            Err(error) if error.kind() == ErrorKind::Fenced => {
                mine.remove(&name);
                owner.forget(&name);
            }
            // Somebody was stopped inside a commit for longer than anybody waits.
            Err(error) if error.kind() == ErrorKind::Busy => {}
            outcome => outcome?,
        }
    }
}

/// Holds each log of a name to its law: epochs grow by one, and what is written is written by the newest owner.
fn check(path: &Path) -> BTreeMap<String, usize> {
    let ledger = open(path);
    // Of each name: the newest epoch, who has it, and whether it was given back.
    let mut newest: HashMap<String, (u64, String, bool)> = HashMap::new();
    let mut seen = BTreeMap::new();
    let mut works = 0;
    for envelope in ledger.read(Select::All).envelopes() {
        let envelope = envelope.unwrap();
        if envelope.topic == catalog::leases() && envelope.body.kind == LeaseClaimed::TYPE {
            let claim: LeaseClaimed = envelope.decode().unwrap();
            let last = newest.get(&claim.name);
            let (epoch, free) = last.map_or((0, true), |(epoch, _, released)| (*epoch, *released));
            assert_eq!(claim.epoch, epoch + 1, "{claim:?} after {last:?}");
            assert!(free || claim.from != Takeover::Free, "{claim:?} after {last:?}");
            *seen.entry(format!("{:?}", claim.from)).or_default() += 1;
            newest.insert(claim.name, (claim.epoch, claim.incarnation, false));
        } else if envelope.topic == catalog::leases() && envelope.body.kind == LeaseReleased::TYPE {
            let release: LeaseReleased = envelope.decode().unwrap();
            let last = newest.get_mut(&release.name).unwrap();
            assert_eq!((last.0, &last.1), (release.epoch, &release.incarnation), "{release:?}");
            last.2 = true;
        } else if envelope.topic == work() {
            let worked: Worked = envelope.decode().unwrap();
            let (epoch, incarnation, released) = &newest[&worked.name];
            assert_eq!(
                (*epoch, incarnation),
                (worked.epoch, &worked.incarnation),
                "pos {}",
                envelope.pos
            );
            assert!(
                !released,
                "pos {} was written after its owner had given the name back",
                envelope.pos
            );
            assert_eq!(envelope.headers.decode::<u64>("epoch"), Some(worked.epoch));
            works += 1;
        }
    }
    assert!(works > 0);
    verify::verify(&**ledger.store()).unwrap();
    seen
}

/// Lets processes go on until they have written so much, or a moment has passed: one may be stopped inside a commit.
fn a_while(ledger: &Ledger, works: u64) {
    let written = || ledger.store().head(&work()).unwrap();
    let (enough, until) = (written() + works, Instant::now() + Duration::from_millis(80));
    while written() < enough && Instant::now() < until {
        std::thread::park_timeout(Duration::from_millis(1));
    }
}

#[test]
fn of_ten_processes_that_fight_over_a_hundred_names_only_the_newest_owner_of_each_writes() {
    let seed = seed_given().unwrap_or_else(fresh_seed);
    eprintln!("seed {seed}");
    let mut dice = Dice::new(seed);
    let folder = scratch();
    let path = folder.path().join("fight.db");
    let ledger = open(&path);
    let start = |dice: &mut Dice| child(&path, "fight", dice.roll());
    let mut fighters: Vec<Process> = (0..10).map(|_| start(&mut dice)).collect();
    for fighter in &mut fighters {
        fighter.wait_for("fights");
    }
    let mut stopped = [false; 10];
    for _ in 0..if is_long() { 3_000 } else { 70 } {
        let one = dice.below(10);
        match dice.below(6) {
            0 => {
                fighters[one].kill();
                let said = fighters[one].said().join("\n");
                assert!(
                    !said.contains("error") && !said.contains("panicked"),
                    "seed {seed}: {said}"
                );
                fighters[one] = start(&mut dice);
                stopped[one] = false;
            }
            1 | 2 if !stopped[one] => {
                fighters[one].pause();
                stopped[one] = true;
            }
            _ => {
                for (fighter, stopped) in fighters.iter().zip(&mut stopped) {
                    if *stopped && dice.once_in(2) {
                        fighter.resume();
                        *stopped = false;
                    }
                }
            }
        }
        a_while(&ledger, 30);
    }
    fighters.iter().for_each(Process::resume);
    // Everybody goes on, whatever it believed when it was stopped.
    let enough = ledger.store().head(&work()).unwrap() + 200;
    let until = Instant::now() + PATIENCE;
    while ledger.store().head(&work()).unwrap() < enough {
        assert!(Instant::now() < until, "seed {seed}: nobody gets on");
        std::thread::park_timeout(Duration::from_millis(1));
    }
    for mut fighter in fighters {
        fighter.kill();
        let said = fighter.said().join("\n");
        assert!(
            !said.contains("error") && !said.contains("panicked"),
            "seed {seed}: {said}"
        );
    }
    drop(ledger);
    let claims = check(&path);
    eprintln!("{claims:?}");
    for from in ["Free", "Dead", "HandedOver"] {
        assert!(
            claims.contains_key(from),
            "seed {seed}: nobody claimed so: {from}; {claims:?}"
        );
    }
    // Who joins removes what the dead left.
    let owner = Ownership::join(open(&path), TTL).unwrap();
    let left = std::fs::read_dir(folder.path().join("fight.db.owners"))
        .unwrap()
        .count();
    assert_eq!((left, owner.peers().len()), (1, 1));
}

/// Owns a name; appends under it for each line that it reads, and gives it back on `release`.
async fn own(ledger: Ledger) -> neuron::Result<(), neuron::Error> {
    let owner = Ownership::join(ledger.clone(), TTL)?;
    let claimed = owner.claim("name:a").await?;
    say(&format!("owns {}", claimed.epoch));
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        if line == "release" {
            owner.release("name:a").await?;
            say("released");
            continue;
        }
        match ledger.append(worked(&owner, "name:a", claimed.epoch)).await {
            Ok(_) => say("worked"),
            Err(error) => say(&format!("refused {:?}", error.kind())),
        }
    }
    Ok(())
}

/// Waits for the name until it has it.
async fn covet(ledger: Ledger) -> neuron::Result<(), neuron::Error> {
    let owner = Ownership::join(ledger.clone(), TTL)?;
    say("waits");
    let claimed = owner.claim_when_free("name:a").await?;
    ledger.append(worked(&owner, "name:a", claimed.epoch)).await?;
    say(&format!("took {:?} {}", claimed.from, claimed.epoch));
    // Its slot stays until it is ended.
    let _ = std::io::stdin().read_line(&mut String::new());
    Ok(())
}

fn owner_and_rival(path: &Path) -> (Process, Process) {
    let mut owner = child(path, "own", 0);
    owner.wait_for("owns 1");
    let mut rival = child(path, "covet", 0);
    rival.wait_for("waits");
    (owner, rival)
}

/// It is time itself that makes an owner look hung, so here it has to pass.
fn time_passes(duration: Duration) {
    let until = Instant::now() + duration;
    while let Some(left) = until.checked_duration_since(Instant::now()) {
        std::thread::park_timeout(left);
    }
}

#[test]
fn a_machine_that_slept_makes_nobody_look_hung() {
    let folder = scratch();
    let path = folder.path().join("asleep.db");
    let (mut owner, mut rival) = owner_and_rival(&path);
    for _ in 0..2 {
        // Everybody stops, for longer than a hung owner is waited for, and the rival wakes first.
        owner.pause();
        rival.pause();
        time_passes(TTL * 3);
        rival.resume();
        owner.resume();
        owner.say("work");
        owner.wait_for("worked");
        // Awake, the owner shows that it lives for as long.
        time_passes(TTL * 2);
    }
    owner.say("work");
    owner.wait_for("worked");
    owner.say("release");
    owner.wait_for("released");
    rival.wait_for("took Free 2");
    drop((owner, rival));
    check(&path);
}

#[test]
fn an_owner_stopped_outside_a_commit_is_taken_over_and_writes_nothing_when_it_goes_on() {
    let folder = scratch();
    let path = folder.path().join("stopped.db");
    let (mut owner, mut rival) = owner_and_rival(&path);
    owner.say("work");
    owner.wait_for("worked");
    owner.pause();
    rival.wait_for("took Hung 2");
    // What it was about to do when it was stopped, it tries now.
    owner.say("work");
    owner.resume();
    owner.wait_for("refused Fenced");
    drop((owner, rival));
    check(&path);
}

#[test]
fn a_dead_owner_is_taken_over_without_a_wait_for_its_heartbeat() {
    let folder = scratch();
    let path = folder.path().join("dead.db");
    let (mut owner, mut rival) = owner_and_rival(&path);
    owner.kill();
    rival.wait_for("took Dead 2");
    drop(rival);
    check(&path);
}
