//! Consumers whose process is really aborted, killed, or stopped: effects in the store happen exactly once, nothing is
//! lost, what is parked stays parked, and a message that kills its process does not do so for ever.

use std::{
    collections::BTreeMap,
    env,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use neuron::{
    Append, Author, ConsumerId, Contract, Draft, Ledger, Pattern, Topic,
    consumer::{Consumer, Progress, Redrive, State},
    ownership::Ownership,
    store::{Crash, Durability, Fault, Options, Point, Select, verify},
};
use neuron_workspace::{Process, scratch};

const STORE: &str = "CRASH_CONSUMER";
const DEED: &str = "CRASH_CONSUMER_DEED";
/// Three polls of a third of this, and a process that hangs is taken over.
const TTL: Duration = Duration::from_millis(600);
const MAX_DELIVERIES: u32 = 3;
const ORDERS: [&str; 6] = ["one", "two", "unreadable", "three", "fails at first", "four"];
/// One of these kills whoever bills it.
const FATAL: [&str; 4] = ["one", "kills", "two", "three"];

/// This very test, started as a child.
fn child(path: &Path, deed: &str) -> Process {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "crash_consumer::a_child_consumes", "--nocapture"])
        .env(STORE, path)
        .env(DEED, deed);
    Process::start(command)
}

/// The children's part of this file. Without a store it does nothing.
#[test]
fn a_child_consumes() {
    let Some(path) = env::var_os(STORE).map(PathBuf::from) else {
        return;
    };
    let deed = env::var(DEED).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    let words: Vec<&str> = deed.split(' ').collect();
    match words[..] {
        ["bill"] => runtime.block_on(bill_all(&path, None, &ORDERS)),
        ["bill", before, commit] => {
            let point = if before == "before" {
                Point::BeforeCommit
            } else {
                Point::AfterCommit
            };
            runtime.block_on(bill_all(
                &path,
                Some(Crash::at(point, commit.parse().unwrap())),
                &ORDERS,
            ));
        }
        ["fatal"] => runtime.block_on(bill_all(&path, None, &FATAL)),
        ["hold"] => runtime.block_on(hold(&path)),
        _ => panic!("no deed: {deed}"),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).unwrap();
}

fn topic(name: &str) -> Topic {
    Topic::new(name).unwrap()
}

fn said(at: &str, text: &str) -> Draft {
    let draft = Draft::new(topic(at), Author::cli(), "said").unwrap();
    draft.payload(&text.to_owned()).unwrap()
}

async fn open(path: &Path, fault: Option<Arc<dyn Fault>>, orders: &[&str]) -> Ledger {
    let options = Options {
        durability: Durability::Process,
        fault,
        ..Options::default()
    };
    let ledger = Ledger::open(path, options).unwrap();
    for name in ["orders", "bills"] {
        let pattern = Pattern::new(name).unwrap();
        ledger
            .declare(&pattern, Contract::Durable, &Author::cli())
            .await
            .unwrap();
    }
    let orders = Append::of(orders.iter().map(|text| said("orders", text)));
    ledger.append(orders.idempotency_key("orders").unwrap()).await.unwrap();
    ledger
}

async fn billing(ledger: &Ledger) -> Consumer {
    let process = Ownership::join(ledger.clone(), TTL).unwrap();
    let builder = process.consumer("billing").unwrap();
    let builder = builder.pattern(Pattern::new("orders").unwrap());
    builder
        .max_deliveries(MAX_DELIVERIES)
        .schedule([Duration::from_millis(1)])
        .open()
        .await
        .unwrap()
}

fn standing(ledger: &Ledger) -> State {
    let billing = ConsumerId::new("billing").unwrap();
    ledger.fold(&Progress::new(billing), None).unwrap().state
}

/// Bills every order there is. What it is told to die of, it dies of.
async fn bill_all(path: &Path, fault: Option<Arc<dyn Fault>>, orders: &[&str]) {
    let ledger = open(path, fault, orders).await;
    let mut consumer = billing(&ledger).await;
    loop {
        let state = standing(&ledger);
        let orders = ledger.read(Select::Topic(topic("orders"))).envelopes();
        let open = orders
            .map(Result::unwrap)
            .filter(|order| !state.is_settled(order.pos))
            .count();
        if open == 0 {
            break;
        }
        let mut delivery = consumer.next().await.unwrap();
        let text: String = delivery.envelope().decode().unwrap();
        match text.as_str() {
            "unreadable" => delivery.poison("it cannot be read").await.unwrap(),
            "fails at first" if delivery.attempt() == 1 => delivery.fail("not yet").await.unwrap(),
            "kills" => std::process::abort(),
            _ => drop(delivery.ack_with(Append::of([said("bills", &text)])).await.unwrap()),
        }
    }
    consumer.close().await.unwrap();
    say("done");
}

/// Takes the first order, waits for a word, and bills it.
async fn hold(path: &Path) {
    let ledger = open(path, None, &["held"]).await;
    say("asks");
    let mut consumer = billing(&ledger).await;
    let mut delivery = consumer.next().await.unwrap();
    say(&format!("holds {}", delivery.attempt()));
    tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()).unwrap())
        .await
        .unwrap();
    match delivery.ack_with(Append::of([said("bills", "held")])).await {
        Ok(_) => say("billed"),
        Err(error) => say(&format!("refused {:?}", error.kind())),
    }
    let _ = consumer.close().await;
    say("ends");
}

/// How often each order was billed.
fn bills(ledger: &Ledger) -> BTreeMap<String, usize> {
    let mut bills = BTreeMap::new();
    for bill in ledger.read(Select::Topic(topic("bills"))).envelopes() {
        *bills.entry(bill.unwrap().decode().unwrap()).or_default() += 1;
    }
    bills
}

fn assert_billed_once(path: &Path, orders: &[&str], parked: usize, when: &str) {
    let ledger = Ledger::open(path, Options::default()).unwrap();
    let wanted: BTreeMap<String, usize> = orders.iter().map(|order| ((*order).to_owned(), 1)).collect();
    assert_eq!(bills(&ledger), wanted, "{when}");
    let state = standing(&ledger);
    assert_eq!(
        (state.parked.len(), state.pending.len()),
        (parked, 0),
        "{when}: {state:?}"
    );
    verify::verify(&**ledger.store()).unwrap();
}

#[test]
fn aborted_at_any_commit_and_started_again_each_order_is_billed_once_and_none_is_lost() {
    let readable: Vec<&str> = ORDERS.into_iter().filter(|order| *order != "unreadable").collect();
    std::thread::scope(|scope| {
        for point in ["before", "after"] {
            let readable = &readable;
            scope.spawn(move || {
                for commit in 1.. {
                    let folder = scratch();
                    let path = folder.path().join("orders.db");
                    let when = format!("aborted {point} commit {commit}");
                    let (status, lines) = child(&path, &format!("bill {point} {commit}")).wait();
                    let ended = lines.iter().any(|line| line == "done");
                    if !ended {
                        assert!(!status.success(), "{when}: {lines:?}");
                        let (status, lines) = child(&path, "bill").wait();
                        assert!(status.success(), "{when}: {lines:?}");
                    }
                    assert_billed_once(&path, readable, 1, &when);
                    if ended {
                        assert!(commit > ORDERS.len(), "{commit} commits");
                        break;
                    }
                }
            });
        }
    });
}

#[test]
fn an_order_that_kills_its_process_is_parked_and_stays_so_until_it_is_redriven() {
    let folder = scratch();
    let path = folder.path().join("orders.db");
    let mut starts = 0;
    loop {
        starts += 1;
        let (status, lines) = child(&path, "fatal").wait();
        if status.success() {
            break;
        }
        assert!(starts <= MAX_DELIVERIES + 1, "it goes on killing: {lines:?}");
    }
    assert_eq!(
        starts,
        MAX_DELIVERIES + 2,
        "one delivery is not recorded, then as many as any other gets"
    );
    assert_billed_once(&path, &["one", "two", "three"], 1, "after it was parked");
    let ledger = Ledger::open(&path, Options::default()).unwrap();
    let billing = ConsumerId::new("billing").unwrap();
    let parked = ledger.parked(&billing).unwrap().next().unwrap().unwrap();
    assert_eq!(parked.attempts, MAX_DELIVERIES);
    assert!(parked.because.contains("never ended"), "{}", parked.because);
    ledger
        .redrive_blocking(&billing, Redrive::One(parked.pos), &Author::cli(), None)
        .unwrap();
    drop(ledger);
    let (status, _) = child(&path, "fatal").wait();
    assert!(!status.success(), "it is handed out again, and kills again");
}

#[test]
fn of_two_processes_one_consumes_and_the_other_takes_over_when_it_dies() {
    let folder = scratch();
    let path = folder.path().join("orders.db");
    let mut first = child(&path, "hold");
    first.wait_for("holds 1");
    let mut second = child(&path, "hold");
    second.wait_for("asks");
    first.kill();
    second.wait_for("holds");
    second.say("go on");
    second.wait_for("billed");
    assert!(second.wait().0.success());
    assert_billed_once(&path, &["held"], 0, "killed");
}

#[test]
fn a_stopped_process_is_taken_over_and_what_it_has_in_hand_is_refused_when_it_goes_on() {
    let folder = scratch();
    let path = folder.path().join("orders.db");
    let mut first = child(&path, "hold");
    first.wait_for("holds 1");
    first.pause();
    let mut second = child(&path, "hold");
    second.wait_for("holds");
    first.resume();
    first.say("go on");
    first.wait_for("refused Fenced");
    second.say("go on");
    second.wait_for("billed");
    assert!(first.wait().0.success() && second.wait().0.success());
    assert_billed_once(&path, &["held"], 0, "stopped");
}
