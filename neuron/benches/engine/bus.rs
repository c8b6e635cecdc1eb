//! Row 7: an ephemeral envelope, from publish to delivery.

use std::{
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use neuron::{
    Author, Draft, Envelope, Ledger, Listener, Pattern, RequestId, SystemClock, Topic,
    pipeline::Pipeline,
    store::{Memory, Options},
    topic::catalog,
};
use tokio::sync::mpsc;

use crate::table::Row;

const COUNT: usize = 200_000;
const WINDOWS: usize = 7;
/// So far the publisher may be ahead, on both sides: neither queue is ever full.
const AHEAD: usize = 512;

fn stream(name: &str) -> Topic {
    catalog::stream(&RequestId::new(name).unwrap())
}

fn gauge() -> Draft {
    let payload = neuron::Json::of(&serde_json::json!({"done": 3, "of": 10, "text": "reading page three"})).unwrap();
    // Like the tokens of a reply: nothing is retained.
    let topic = stream("request-1");
    Draft::new(topic, Author::new("bench").unwrap(), "gauge")
        .unwrap()
        .json(payload, None)
}

/// Messages per second, from `send` to `receive`, each on its own task.
async fn pass<F, R>(mut send: impl FnMut() + Send + 'static, receive: R) -> f64
where
    R: FnOnce(Arc<AtomicUsize>) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let received = Arc::new(AtomicUsize::new(0));
    let reader = tokio::spawn(receive(received.clone()));
    let began = Instant::now();
    let sender = tokio::spawn(async move {
        for sent in 0..COUNT {
            while sent - received.load(Ordering::Relaxed) >= AHEAD {
                tokio::task::yield_now().await;
            }
            send();
        }
    });
    sender.await.unwrap();
    reader.await.unwrap();
    COUNT as f64 / began.elapsed().as_secs_f64()
}

async fn bare() -> f64 {
    let draft = gauge();
    let (sender, mut receiver) = mpsc::channel::<Draft>(1_024);
    let send = move || sender.try_send(draft.clone()).unwrap();
    pass(send, |received| async move {
        for _ in 0..COUNT {
            assert!(receiver.recv().await.is_some());
            received.fetch_add(1, Ordering::Relaxed);
        }
    })
    .await
}

async fn ours(ledger: &Ledger) -> f64 {
    let (draft, bus) = (gauge(), ledger.bus().clone());
    let mut listener = bus.listen(Pattern::exactly(draft.topic()));
    let send = move || drop::<Arc<Envelope>>(bus.publish(draft.clone()).unwrap());
    pass(send, |received| async move {
        for _ in 0..COUNT {
            listener.next().await.unwrap();
            received.fetch_add(1, Ordering::Relaxed);
        }
    })
    .await
}

fn row(threads: usize) -> Row {
    let runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread().build().unwrap(),
        _ => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .build()
            .unwrap(),
    };
    let store = Arc::new(Memory::new().unwrap());
    let ledger = Ledger::over(store, Arc::new(SystemClock), Pipeline::default()).unwrap();
    // In turns, so that whatever else the machine does meets both.
    let (ours, bare) = runtime.block_on(async {
        let mut best = (0.0_f64, 0.0_f64);
        for _ in 0..WINDOWS {
            best = (best.0.max(ours(&ledger).await), best.1.max(bare().await));
        }
        best
    });
    Row {
        work: format!("7 ephemeral publish to deliver, {threads} thread(s), against tokio mpsc"),
        ours,
        baseline: bare,
        goal: "≥ 0.3",
        envelopes: 1.0,
        commits: 0.0,
        unit: "envelopes",
    }
}

/// Where the process at the other end of the bridge finds the store.
const OTHER: &str = "NEURON_BENCH_OTHER";

/// The other end: says back what it hears, until it is killed. Nothing, in the process that measures.
pub(crate) fn answer() {
    let Some(path) = std::env::var_os(OTHER) else { return };
    let ledger = Ledger::open(path, Options::default()).unwrap();
    let mut heard = ledger.bus().listen(Pattern::exactly(&stream("there")));
    loop {
        futures::executor::block_on(heard.next()).unwrap();
        ledger.bus().publish(on("back")).unwrap();
    }
}

fn on(name: &str) -> Draft {
    Draft::new(stream(name), Author::new("bench").unwrap(), "gauge").unwrap()
}

/// Half of the way there and back, the median, in microseconds.
fn bridged(path: &Path) -> f64 {
    let ledger = Ledger::open(path, Options::default()).unwrap();
    let mut back: Listener = ledger.bus().listen(Pattern::exactly(&stream("back")));
    let mut other = Command::new(std::env::current_exe().unwrap())
        .env(OTHER, path)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    // Until it is there.
    while back.try_next().unwrap().is_none() {
        ledger.bus().publish(on("there")).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    while back.try_next().unwrap().is_some() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let mut turns: Vec<f64> = (0..5_000)
        .map(|_| {
            let began = Instant::now();
            ledger.bus().publish(on("there")).unwrap();
            futures::executor::block_on(back.next()).unwrap();
            began.elapsed().as_secs_f64() * 1e6 / 2.0
        })
        .collect();
    other.kill().unwrap();
    other.wait().unwrap();
    turns.sort_by(f64::total_cmp);
    turns[turns.len() / 2]
}

pub(crate) fn delivered() -> Vec<Row> {
    let folder = tempfile::tempdir().unwrap();
    println!(
        "the bridge, publish in one process to deliver in another: {:.0} µs, the median",
        bridged(&folder.path().join("store.db"))
    );
    vec![row(1), row(2)]
}
