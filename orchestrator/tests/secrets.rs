//! A planted secret, looked for in every byte that a run leaves or says: store, write-ahead log, files beside them, copies,
//! traces, errors, panics, the command line.
//!
//! Traces and panics are caught for the whole program, so this is a program of its own.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::{
    fmt, fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use neuron::{
    Author, Callable, Contract, Ledger, Pattern,
    def::{Args, Def, Encoded, encode},
    plan::{Given, Input},
    store::{Part, Select, export::export},
};
use orchestrator::{Builder, cli, prelude::*};
use tokio::{runtime, sync::Notify};
use tracing::{
    Event as Traced, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

/// What nobody may find.
const PLANTED: &str = "sk-planted-7f3a91c25be04d68";
/// What is found, because it was exposed.
const EXPOSED: &str = "sk-exposed-c0ffee15badf00d5";

/// Everything that was traced or that panicked.
static SAID: Mutex<String> = Mutex::new(String::new());

fn say(text: &str) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
}

fn said() -> String {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Hears everything, at every level.
struct Ear;

struct Fields;

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        say(&format!("{field}={value:?}\n"));
    }
}

impl Subscriber for Ear {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &span::Attributes<'_>) -> span::Id {
        span.record(&mut Fields);
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut Fields);
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Traced<'_>) {
        event.record(&mut Fields);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[derive(Default)]
struct Gate {
    entered: Notify,
    open: Notify,
}

/// An error that tells of its parts, as a user would write it.
#[derive(Debug)]
struct Refused {
    key: Secret<String>,
    source: Option<Box<Refused>>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no entry with {}", self.key)
    }
}

impl std::error::Error for Refused {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[step]
async fn login(_cx: &Cx, user: String, password: Secret<String>) -> Result<usize> {
    tracing::info!(%user, ?password, "logs in");
    Ok(password.expose().len())
}

/// Its other argument is so long that all of them are an artifact.
#[step]
async fn upload(_cx: &Cx, password: Secret<String>, page: String) -> Result<usize> {
    Ok(password.expose().len() + page.len())
}

#[step(retry(2, backoff = "1ms"))]
async fn refused(_cx: &Cx, key: Secret<String>) -> Result<usize> {
    let source = Some(Box::new(Refused {
        key: key.clone(),
        source: None,
    }));
    Err(Refused { key, source }.into())
}

#[step]
async fn refused_for_good(_cx: &Cx, key: Secret<String>) -> Result<usize> {
    Err(Error::terminal(format!("{key:?} is of no use"))
        .with(&key)
        .context(&key)
        .into())
}

#[step]
async fn panics(_cx: &Cx, key: Secret<String>) -> Result<usize> {
    panic!("cannot use {key} or {key:?}")
}

#[step(once)]
async fn pays(_cx: &Cx, key: Secret<String>) -> Result<usize> {
    Err(Error::not_done(format!("no account for {key}")).into())
}

/// Waits at the gate, so that the process ends with it under way.
#[step]
async fn passes(cx: &Cx, key: Secret<String>) -> Result<usize> {
    let gate = cx.state::<Arc<Gate>>()?;
    gate.entered.notify_one();
    gate.open.notified().await;
    Ok(key.expose().len())
}

fn told(error: &Error) -> String {
    let chain = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    let chain: Vec<_> = chain.map(|error| format!("{error} {error:?}")).collect();
    format!(
        "{chain:?} {:?} {:?}",
        error.causes(),
        error.detail::<serde_json::Value>()
    )
}

#[agent]
async fn visitor(cx: &Cx, key: Secret<String>, page: String) -> Result<Vec<String>> {
    let mut said = Vec::new();
    login(cx, "ada".into(), key.clone()).await?;
    upload(cx, key.clone(), page.clone()).await?;
    said.push(told(&refused(cx, key.clone()).await.unwrap_err()));
    said.push(told(&refused_for_good(cx, key.clone()).await.unwrap_err()));
    said.push(told(&panics(cx, key.clone()).await.unwrap_err()));
    said.push(told(&pays(cx, key.clone()).await.unwrap_err()));
    let theirs = key.clone();
    let beside = cx.spawn_thread("beside", |cx| async move {
        login(&cx, "bob".into(), theirs.clone()).await?;
        Result::<()>::Err(format!("{theirs} is known already").into())
    });
    said.push(told(&beside.await.unwrap_err()));
    cx.progress(1, None, format!("in with {key}"));
    cx.emit(cx.draft("doors", "door.opened")?.payload(&key)?.header("with", &key)?)
        .await?;
    let nowhere = cx.draft("nowhere", "door.opened")?.payload(&key)?;
    said.push(told(&cx.emit(nowhere).await.unwrap_err()));
    let wanted = Filter::on("doors").payload("", &key).of_type("door.closed");
    cx.wait_within(wanted, Duration::from_millis(1)).await?;
    let may = cx.ask_human::<bool>(format!("May {key} in?"));
    may.within(Duration::from_millis(1)).await?;
    cx.artifact("key.txt", "note", format!("{key}")).await?;
    let (listed, text) = (key.clone(), key.clone());
    let kept = cx.transaction(move |tx| {
        tx.execute("CREATE TABLE IF NOT EXISTS door (said TEXT)", ())?;
        tx.execute("INSERT INTO door VALUES (?1)", [format!("{text}")])?;
        tx.execute("INSERT INTO door VALUES (?1)", (&listed,))
            .map(drop)
            .map_err(Into::into)
    });
    said.push(told(&kept.await.unwrap_err()));
    passes(cx, key.clone()).await?;
    said.push(told(&cx.continue_with(visitor, (key, page)).await.unwrap_err()));
    Ok(said)
}

/// Its row holds the secret as a value.
#[plan]
fn outline(plan: &Plan, key: Secret<String>) -> Node<usize> {
    plan.step(login, ("eve".to_owned(), key))
}

#[orchestrator]
async fn office(board: &Board, key: Secret<String>) -> Result<Vec<String>> {
    let planned = board.assign(outline, key.clone());
    let within = board.assign(annexe, key.clone());
    let mut said = board.assign(visitor, (key, "x".repeat(100_000))).await?;
    said.push(format!("{} {}", planned.await?, told(&within.await.unwrap_err())));
    Ok(said)
}

/// An orchestrator in another, which fails.
#[orchestrator]
async fn annexe(board: &Board, key: Secret<String>) -> Result<usize> {
    let lost = board.assign(lost, key.clone()).await;
    lost.map_err(|error| error.context(format!("{key} opens nothing")).into())
}

#[agent]
async fn lost(cx: &Cx, key: Secret<String>) -> Result<usize> {
    Ok(refused(cx, key).await?)
}

/// What a careless program does.
#[step]
async fn careless(_cx: &Cx, key: Secret<String>) -> Result<String> {
    tracing::info!(key = key.expose(), "says it");
    Ok(key.into_inner())
}

#[agent]
async fn chatterer(cx: &Cx, key: Secret<String>) -> Result<String> {
    Ok(careless(cx, key).await?)
}

#[orchestrator]
async fn leak(board: &Board, key: Secret<String>) -> Result<String> {
    Ok(board.assign(chatterer, key).await?)
}

fn builder(gate: &Arc<Gate>) -> Builder {
    Neuron::builder().state(gate.clone())
}

/// The files below a folder that hold a text; sockets hold none.
fn holding(folder: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            found.extend(holding(&path, text));
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Asks everything that a person can ask of the store, and gives all that is said.
fn asked(folder: &Path, gate: &Arc<Gate>) -> String {
    let store = folder.join("shop.db").display().to_string();
    let mut heard = String::new();
    let mut ask = |args: &[&str]| {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let console = cli::Console::new(&mut out, &mut err).program(builder(gate));
        let exit = cli::run_on([&["neuron", "--store", &store], args].concat(), console);
        let both = String::from_utf8(out).unwrap() + &String::from_utf8(err).unwrap();
        assert_ne!(exit.code(), 2, "{args:?}: {both}");
        heard.push_str(&both);
    };
    for json in [&[][..], &["--json"]] {
        for args in [
            &["runs"][..],
            &["board", "r"],
            &["cost", "r"],
            &["graph", "r"],
            &["waiting"],
            &["log", "**"],
            &["topics"],
            &["schema"],
            &["artifacts"],
            &["verify"],
            &["doctor"],
            &["replay", "--all-open"],
        ] {
            ask(&[args, json].concat());
        }
    }
    let ledger = Ledger::open(&store, neuron::store::Options::default()).unwrap();
    let mut hashes = Vec::new();
    for envelope in ledger.read(Select::All).envelopes().map(Result::unwrap) {
        let place = format!("{}@{}", envelope.topic, envelope.seq);
        ask(&["show", &place]);
        ask(&["causes", &place]);
        hashes.extend(envelope.body.artifacts.iter().filter_map(|artifact| artifact.hash));
    }
    assert!(hashes.len() > 1, "large arguments and a note");
    for hash in hashes {
        ask(&["cat", &hash.to_string()]);
    }
    heard
}

fn assert_nowhere(folder: &Path, when: &str) {
    assert_eq!(holding(folder, PLANTED), [""; 0], "{when}");
    let said = said();
    let at = said.find(PLANTED).map(|at| &said[at.saturating_sub(300)..]);
    assert_eq!(at, None, "{when}: traces and panics");
}

#[test]
fn a_secret_is_in_no_byte_that_a_run_leaves_or_says_and_an_exposed_one_is_found() {
    tracing::subscriber::set_global_default(Ear).unwrap();
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        say(&format!("{panic}\n"));
        tell(panic);
    }));
    let folder = tempfile::tempdir().unwrap();
    let (path, gate) = (folder.path().join("shop.db"), Arc::new(Gate::default()));
    let key = || Secret::new(PLANTED.to_owned());

    // A process that ends while a step is under way.
    let first = runtime::Runtime::new().unwrap();
    let declared = async |neuron: &Neuron| {
        let doors = Pattern::new("doors").unwrap();
        neuron
            .ledger()
            .declare(&doors, Contract::Durable, &Author::cli())
            .await
            .unwrap();
    };
    first.block_on(async {
        let neuron = builder(&gate).open(&path).await.unwrap();
        declared(&neuron).await;
        let running = neuron.run(office, key()).id("r").start().await.unwrap();
        gate.entered.notified().await;
        say(&format!("{running:?}"));
        assert!(folder.path().join("shop.db-wal").exists());
        assert_nowhere(folder.path(), "while it runs");
    });
    drop(first);
    assert_nowhere(folder.path(), "after it died");
    let heard = asked(folder.path(), &gate);
    assert!(!heard.contains(PLANTED), "the command line, of a run that is open");

    // The next one takes it up, told the secret anew, and ends it.
    let second = runtime::Runtime::new().unwrap();
    let output = second.block_on(async {
        let neuron = builder(&gate).open(&path).await.unwrap();
        gate.open.notify_one();
        let output = neuron.run(office, key()).id("r").await.unwrap();
        assert_nowhere(folder.path(), "at its end");
        let error = neuron.run(annexe, key()).id("lost").await.unwrap_err();
        say(&told(&error));
        output
    });
    drop(second);
    let output = output.join("\n");
    assert!(!output.contains(PLANTED), "{output}");
    assert!(
        output.matches("[secret]").count() > 10,
        "what the user prints stands there without it: {output}"
    );
    let heard = asked(folder.path(), &gate);
    assert!(
        !heard.contains(PLANTED) && heard.contains("[secret]"),
        "the command line, of a run that has ended"
    );
    let ledger = Ledger::open(&path, neuron::store::Options::default()).unwrap();
    ledger
        .store()
        .backup(&folder.path().join("copy.db"), &mut |_| {})
        .unwrap();
    let mut lines = String::new();
    let exported = export(&**ledger.store(), &Part::ALL, |line| {
        lines.push_str(line);
        Ok::<(), Error>(())
    });
    exported.unwrap();
    fs::write(folder.path().join("export.jsonl"), lines).unwrap();
    drop(ledger);
    assert_nowhere(folder.path(), "in copies");
    for form in printed(&key()) {
        assert!(!form.contains(PLANTED) && form.contains("[secret]"), "{form}");
    }

    // And all of this would have been seen.
    let third = runtime::Runtime::new().unwrap();
    third.block_on(async {
        let neuron = builder(&gate).open(&path).await.unwrap();
        let leaked = neuron.run(leak, Secret::new(EXPOSED.to_owned())).id("leak").await;
        assert_eq!(leaked.unwrap(), EXPOSED);
    });
    drop(third);
    assert_ne!(holding(folder.path(), EXPOSED), [""; 0]);
    assert!(said().contains(EXPOSED));
    assert!(asked(folder.path(), &gate).contains(EXPOSED));
}

type ArgsOf<F, M> = <<F as Callable<M>>::Def as Def>::Args;

fn encoded<M, F: Callable<M>>(_: F, args: <ArgsOf<F, M> as Args>::Bare) -> Encoded {
    encode::<F::Def>(&ArgsOf::<F, M>::from_bare(args)).unwrap()
}

/// What the engine keeps of it in memory, as somebody may print it.
fn printed(key: &Secret<String>) -> Vec<String> {
    let args = encoded(login, ("ada".to_owned(), key.clone()));
    let input = Input::Value(Given::of(key).unwrap());
    vec![format!("{args:?}"), format!("{input:?}"), format!("{key:?} {key}")]
}
