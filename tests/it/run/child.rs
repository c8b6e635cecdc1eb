//! The program that the other tests run as a child of theirs, on the store in the folder they name.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use neuron::{
    Author, Contract, Error, Pattern, Result,
    store::{Crash, Fault, Point},
};
use neuron_workspace::Process;
use orchestrator::prelude::*;

/// Where the child finds its folder. Without it, this test binary is no child.
const FOLDER: &str = "NEURON_TEST_FOLDER";
/// Three polls of a third of this, and a hung owner is taken over.
const TTL: Duration = Duration::from_millis(600);

/// What a child is to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Setting {
    /// The orchestrator: `house` or `gated`.
    pub(super) name: &'static str,
    /// Abort at this commit, before or after it is durable.
    pub(super) crash: Option<(Point, u64)>,
    /// Stay inside this commit for a while.
    pub(super) linger: Option<u64>,
    /// Recover what is unfinished before running it by its id.
    pub(super) recover: bool,
    /// Serve, instead of running anything by its id.
    pub(super) serve: bool,
}

pub(super) fn start(folder: &Path, setting: &Setting) -> Process {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([
        "run::child::a_process_that_is_no_child_does_nothing",
        "--exact",
        "--nocapture",
    ]);
    command
        .env(FOLDER, folder)
        .env("RUST_BACKTRACE", "0")
        .env("NEURON_TEST_RUN", setting.name);
    if let Some((point, commit)) = setting.crash {
        command.env("NEURON_TEST_CRASH", format!("{point:?} {commit}"));
    }
    if let Some(commit) = setting.linger {
        command.env("NEURON_TEST_LINGER", commit.to_string());
    }
    if setting.recover {
        command.env("NEURON_TEST_RECOVER", "1");
    }
    if setting.serve {
        command.env("NEURON_TEST_SERVE", "1");
    }
    Process::start(command)
}

struct Folder(PathBuf);

/// Does something to the world that a crash does not take back.
fn act(cx: &Cx, deed: &str) -> Result<()> {
    let Folder(folder) = cx.state()?;
    let mut file = fs::File::options()
        .create(true)
        .append(true)
        .open(folder.join("deeds"))?;
    file.write_all(format!("{deed}\n").as_bytes())?;
    Ok(())
}

#[step]
async fn look(cx: &Cx, what: String) -> Result<usize> {
    act(cx, &format!("look {what}"))?;
    Ok(what.len())
}

/// A step that calls another one.
#[step(retry(2))]
async fn look_twice(cx: &Cx, what: String) -> Result<usize> {
    Ok(look(cx, what.clone()).await? + look(cx, format!("{what} again")).await?)
}

#[step]
async fn add(_cx: &Cx, parts: Vec<usize>) -> Result<usize> {
    Ok(parts.into_iter().sum())
}

#[step(once, resolve = paid)]
async fn pay(cx: &Cx, cents: usize) -> Result<usize> {
    act(cx, "pay")?;
    Ok(cents)
}

/// Finds out whether the payment has happened.
#[step]
async fn paid(cx: &Cx, cents: usize) -> Result<Option<usize>> {
    let Folder(folder) = cx.state()?;
    let deeds = fs::read_to_string(folder.join("deeds")).unwrap_or_default();
    Ok(deeds.lines().any(|deed| deed == "pay").then_some(cents))
}

#[plan]
fn fan_out(plan: &Plan, words: Vec<String>) -> Node<usize> {
    let parts: Vec<_> = words.into_iter().map(|word| plan.step(look, word)).collect();
    plan.step(add, parts)
}

#[agent]
async fn walker(cx: &Cx, word: String) -> Result<usize> {
    let thread = cx.spawn_thread("beside", {
        let word = format!("{word} beside");
        |cx| async move { look(&cx, word).await }
    });
    cx.sleep(Duration::from_millis(2)).await?;
    let twice = look_twice(cx, word).await?;
    Ok(twice + thread.await?)
}

/// Says something, and waits for what it said, for what nobody says, and for whichever of two is first.
#[agent]
async fn caller(cx: &Cx) -> Result<usize> {
    let said = cx.emit(cx.draft("house.calls", "house.called")?.payload(&7)?).await?;
    let heard = cx.wait_for(Filter::on("house.*").payload("", &7)).await?;
    let none = cx.wait_within("house.calls", Duration::from_millis(1)).await?;
    let races = [
        cx.wait_for(Filter::on("house.calls").of_type("house.rung")),
        cx.wait_for("house.calls"),
    ];
    cx.emit(cx.draft("house.calls", "house.called")?.payload(&8)?).await?;
    let (first, won) = cx.race(races).await?;
    Ok(look(
        cx,
        format!("{} {} {} {first} {}", said.seq, heard.seq, none.is_some(), won.seq),
    )
    .await?
        - "1 1 false 1 2".len())
}

#[agent]
async fn payer(cx: &Cx, cents: usize) -> Result<usize> {
    Ok(pay(cx, cents).await?)
}

#[orchestrator]
async fn wing(board: &Board, words: Vec<String>) -> Result<usize> {
    let parts: Vec<_> = words.into_iter().map(|word| board.assign(walker, word)).collect();
    let mut sum = 0;
    for part in parts {
        sum += part.await?;
    }
    Ok(sum)
}

/// Everything that a run is made of: plans, agents, threads, timers, nested steps and orchestrators, a growing board.
#[orchestrator]
async fn house(board: &Board) -> Result<usize> {
    let words = || ["a", "bb"].map(String::from).to_vec();
    let (plans, wing) = (board.assign(fan_out, words()), board.assign(wing, words()));
    board.sleep(Duration::from_millis(1)).await?;
    let mut sum = plans.await? + wing.await? + board.assign(caller, ()).await?;
    sum += board.wait_for("house.calls").await?.decode::<usize>()? - 7;
    for round in 0..2 {
        sum += board.assign(walker, format!("round {round}")).await?;
    }
    Ok(board.assign(payer, sum).await?)
}

/// Says that it is there, and waits for the gate to be opened.
#[step]
async fn pass(cx: &Cx) -> Result<usize> {
    act(cx, "pass")?;
    let Folder(folder) = cx.state()?;
    say("at the gate");
    while !folder.join("gate").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(1)
}

#[agent]
async fn guest(cx: &Cx, name: String) -> Result<usize> {
    let before = look(cx, name.clone()).await?;
    let passed = pass(cx).await?;
    Ok(before + passed + look(cx, format!("{name} after")).await?)
}

#[orchestrator]
async fn gated(board: &Board) -> Result<usize> {
    Ok(board.assign(guest, "ada").await?)
}

/// Stays inside a commit until the file `commit` is there, so that the process can be stopped in it.
#[derive(Debug)]
struct Linger {
    folder: PathBuf,
    commit: u64,
    seen: AtomicU64,
}

impl Fault for Linger {
    fn at(&self, point: Point) -> Result<(), Error> {
        if point == Point::BeforeCommit && self.seen.fetch_add(1, Ordering::Relaxed) + 1 == self.commit {
            say("inside a commit");
            while !self.folder.join("commit").exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        Ok(())
    }
}

fn fault(folder: &Path) -> Option<Arc<dyn Fault>> {
    if let Ok(commit) = env::var("NEURON_TEST_LINGER") {
        return Some(Arc::new(Linger {
            folder: folder.into(),
            commit: commit.parse().unwrap(),
            seen: AtomicU64::new(0),
        }));
    }
    let crash = env::var("NEURON_TEST_CRASH").ok()?;
    let (point, commit) = crash.split_once(' ').unwrap();
    let point = match point {
        "BeforeCommit" => Point::BeforeCommit,
        _ => Point::AfterCommit,
    };
    Some(Crash::at(point, commit.parse().unwrap()))
}

#[allow(clippy::print_stdout, reason = "the parent listens to it")]
fn say(line: &str) {
    println!("{line}");
}

#[test]
fn a_process_that_is_no_child_does_nothing() {
    if let Ok(folder) = env::var(FOLDER) {
        tokio::runtime::Runtime::new()
            .unwrap()
            .block_on(live(Path::new(&folder)));
    }
}

async fn live(folder: &Path) {
    let mut builder = Neuron::builder()
        .state(Folder(folder.into()))
        .owner_ttl(TTL)
        .store_wait(Duration::from_millis(300));
    if let Some(fault) = fault(folder) {
        builder = builder.fault(fault);
    }
    let neuron = match builder.open(folder.join("run.db")).await {
        Ok(neuron) => neuron,
        Err(error) => return say(&format!("error {:?}: {error}", error.kind())),
    };
    let (calls, author) = (Pattern::new("house.calls").unwrap(), Author::cli());
    if let Err(error) = neuron.ledger().declare(&calls, Contract::Durable, &author).await {
        return say(&format!("error {:?}: {error}", error.kind()));
    }
    if env::var("NEURON_TEST_RECOVER").is_ok() {
        let recovered = neuron.recover().await.unwrap();
        say(&format!(
            "recovered {:?} elsewhere {:?}",
            recovered.here, recovered.elsewhere
        ));
    }
    if env::var("NEURON_TEST_SERVE").is_ok() {
        say("serving");
        let ended = neuron.serve().await;
        return say(&format!("{ended:?}"));
    }
    say("running");
    let ended = match env::var("NEURON_TEST_RUN").as_deref() {
        Ok("gated") => neuron.run(gated, ()).id("r").await,
        _ => neuron.run(house, ()).id("r").await,
    };
    match ended {
        Ok(output) => say(&format!("output {output}")),
        Err(error) => say(&format!("error {:?}: {error}", error.kind())),
    }
}
