//! What a body is given beside its steps: a limit of time, artifacts, progress, and an account of what it took.

#![allow(clippy::unwrap_used, missing_docs, reason = "a test that fails is meant to panic")]

mod world;

use std::{
    io::{self, Read},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::SeqCst},
    },
    time::Duration,
};

use neuron::{
    ArtifactRef, Author, Burn, Content, Cx, Digest, Error, ErrorKind, Ledger, Millis, Pattern, Result, RunId,
    SystemClock, TokenId, agent,
    agent::{LedgerJournal, Place, history},
    pipeline::Pipeline,
    schema::Upcasters,
    scope::{Manner, Runtime, Scope, contain},
    step,
    store::{Memory, Select},
    topic::catalog,
    vocabulary::{
        Message as _,
        step::{StepArtifact, StepProgressed, StepStarted},
    },
};
use world::{Seen, World, cut_everywhere, entry};

static SEEN: Seen = Seen::new();

// -- a limit of time --

#[step]
async fn lasts(_cx: &Cx, seconds: u64) -> Result<u64> {
    SEEN.note(format!("lasts {seconds}"));
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok(seconds)
}

#[agent]
async fn limited(cx: &Cx) -> Result<Vec<String>> {
    let mut told = Vec::new();
    for seconds in [1, 100] {
        told.push(match cx.timeout(Duration::from_secs(10), lasts(cx, seconds)).await {
            Ok(answer) => format!("{}", answer?),
            Err(late) => format!("{:?}", late.kind()),
        });
    }
    Ok(told)
}

#[tokio::test(start_paused = true)]
async fn who_was_first_stays_first_in_every_replay() {
    let whole = World::new();
    assert_eq!(whole.run(limited, ()).await.unwrap(), ["1", "Timeout"]);
    let fired = whole
        .log()
        .iter()
        .position(|line| line == "timer.fired $sleep")
        .unwrap();
    for cut in 0..=whole.len() {
        let (world, begun) = (whole.cut(cut), SEEN.starting("lasts 100"));
        let ended = world.count("step.completed lasts") == 1;
        let told = world.run(limited, ()).await.unwrap();
        // The clock went on: what had not ended by the cut may be late by now.
        assert_eq!(
            told[usize::from(!ended)..],
            ["1", "Timeout"][usize::from(!ended)..],
            "cut {cut}"
        );
        let again = SEEN.starting("lasts 100") - begun;
        assert_eq!(
            again,
            usize::from(cut <= fired),
            "cut {cut}: a timer that fired has won"
        );
    }
}

#[step(retry(3, backoff = "20s"))]
async fn hasty(cx: &Cx) -> Result<u32> {
    let limit = Duration::from_secs(10);
    cx.sleep(Duration::from_secs(4)).await?;
    if cx.attempt() == 1 {
        return Err("the line is down".into());
    }
    let work = tokio::time::sleep(Duration::from_secs(if cx.attempt() == 2 { 11 } else { 9 }));
    cx.timeout(limit, work).await?;
    Ok(cx.attempt())
}

#[agent]
async fn patient(cx: &Cx) -> Result<u32> {
    Ok(hasty(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn each_attempt_of_a_step_has_its_own_time_and_one_that_was_late_is_made_again() {
    let world = World::new();
    let began = tokio::time::Instant::now();
    assert_eq!(world.run(patient, ()).await.unwrap(), 3);
    let errors = world.payloads("step.attempted");
    let kinds: Vec<_> = errors
        .iter()
        .map(|attempt| attempt["error"]["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["Failed", "Timeout"]);
    assert_eq!(began.elapsed().as_secs(), 4 + 20 + (4 + 10) + 40 + (4 + 9));
}

// -- attempts --

#[step(retry(4))]
async fn busy(cx: &Cx, who: u32) -> Result<u32> {
    if cx.attempt() < 4 { Err("busy".into()) } else { Ok(who) }
}

#[agent]
async fn crowd(cx: &Cx) -> Result<u32> {
    let (left, right) = futures::join!(busy(cx, 1), busy(cx, 2));
    Ok(left? + right?)
}

fn waits(world: &World, who: u32) -> Vec<i64> {
    let started = world.payloads("step.started");
    let key = &started.iter().find(|start| start["args"]["who"] == who).unwrap()["key"];
    let lines = world.journal.lines().into_iter();
    let attempts = lines.filter(|(_, record)| record.kind == "step.attempted" && record.key.as_ref() == key);
    attempts
        .map(|(place, record)| record.payload.to_value()["retryAt"].as_i64().unwrap() - place.at.0)
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_retry_without_a_backoff_waits_longer_each_time_and_not_all_at_once() {
    let world = World::new();
    assert_eq!(world.run(crowd, ()).await.unwrap(), 3);
    let (left, right) = (waits(&world, 1), waits(&world, 2));
    for (wait, whole) in left.iter().zip([100, 200, 400]) {
        assert!((whole / 2..=whole).contains(wait), "{left:?}");
    }
    assert_ne!(left, right, "calls that failed together do not come back together");
    let again = World::new();
    again.run(crowd, ()).await.unwrap();
    assert_eq!(waits(&again, 1), left, "the wait is the call's own");
}

// -- artifacts --

static READ: AtomicU32 = AtomicU32::new(0);

/// Counts how often it is read from the start.
struct Counted(io::Cursor<&'static [u8]>);

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.0.position() == 0 {
            READ.fetch_add(1, SeqCst);
        }
        self.0.read(into)
    }
}

struct Torn;

impl Read for Torn {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        READ.fetch_add(100, SeqCst);
        Err(io::Error::other("the disc is scratched"))
    }
}

#[agent]
async fn writer(cx: &Cx) -> Result<(ArtifactRef, ArtifactRef, String)> {
    let text = cx.artifact("a.txt", "report", "first").await?;
    let streamed = Content::read(Counted(io::Cursor::new(b"second")));
    let streamed = cx.artifact("a.txt", "report", streamed).await?;
    let torn = cx.artifact("b.txt", "report", Content::read(Torn)).await.unwrap_err();
    Ok((text, streamed, torn.to_string()))
}

#[tokio::test]
async fn an_artifact_of_an_agent_is_an_answer_and_its_content_is_read_once() {
    let whole = World::new();
    let live = whole.run(writer, ()).await.unwrap();
    assert_eq!(live.0.0, Digest::content(b"first"));
    assert_eq!(live.1.0, Digest::content(b"second"));
    assert_eq!(live.2, "the artifact cannot be read: the disc is scratched");
    assert_eq!(
        whole.log(),
        [
            "step.artifact $artifact",
            "step.artifact $artifact",
            "step.failed $artifact"
        ]
    );
    assert_eq!(whole.journal.blob(&live.1.0).unwrap().as_ref(), b"second");
    let kept = &whole.journal.lines()[1].1.artifacts[0];
    assert_eq!(
        (kept.name.as_str(), kept.kind.as_deref(), kept.hash),
        ("a.txt", Some("report"), Some(live.1.0))
    );

    let read = READ.load(SeqCst);
    let again = whole.crash();
    assert_eq!(again.run(writer, ()).await.unwrap(), live, "replayed");
    assert_eq!(READ.load(SeqCst), read, "a replay reads nothing");
    assert_eq!(again.len(), whole.len());
    cut_everywhere(writer, ()).await;
}

static KEPT: AtomicU32 = AtomicU32::new(0);

#[step(retry(2, backoff = "1ms"))]
async fn keeps(cx: &Cx) -> Result<ArtifactRef> {
    let kept = KEPT.fetch_add(1, SeqCst);
    let same = cx.artifact("log", "log", b"the same").await?;
    let other = cx.artifact("page", "page", format!("take {kept}")).await?;
    nothing(cx).await?;
    if kept == 0 {
        return Err("again".into());
    }
    assert_ne!(same, other);
    Ok(other)
}

#[step]
async fn nothing(_cx: &Cx) -> Result<()> {
    Ok(())
}

#[agent]
async fn keeper(cx: &Cx) -> Result<ArtifactRef> {
    Ok(keeps(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn a_step_that_runs_again_keeps_what_it_has_then_and_says_nothing_twice() {
    let world = World::new();
    assert_eq!(world.run(keeper, ()).await.unwrap().0, Digest::content(b"take 1"));
    let names = world
        .journal
        .lines()
        .into_iter()
        .flat_map(|(_, record)| record.artifacts);
    let names: Vec<_> = names.map(|kept| kept.name).collect();
    assert_eq!(
        names,
        ["log", "page", "page"],
        "what is the same was said by the first attempt"
    );
    let ends = ["step.attempted keeps", "step.completed keeps"];
    let log = world.log();
    let last = log.iter().rposition(|line| line == "step.artifact $artifact").unwrap();
    assert!(last < log.iter().position(|line| line == ends[1]).unwrap(), "{log:#?}");

    // A crash after the first word and before the end of the attempt: the run after it has another page.
    let first = log.iter().position(|line| line == "step.completed nothing").unwrap();
    let again = world.cut(first);
    KEPT.store(7, SeqCst);
    assert_eq!(again.run(keeper, ()).await.unwrap().0, Digest::content(b"take 7"));
}

#[tokio::test]
async fn an_artifact_has_a_name_and_a_kind_that_is_not_the_engines() {
    let cx: Cx = neuron::test();
    for kind in ["payload", "head", "member", "superseded"] {
        let refused = cx.artifact("a", kind, "x").await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Misuse, "{refused}");
        assert!(refused.to_string().contains(kind), "{refused}");
    }
    assert_eq!(
        cx.artifact("", "log", "x").await.unwrap_err().kind(),
        ErrorKind::Malformed
    );
    assert_eq!(
        cx.artifact("a", &"k".repeat(257), "x").await.unwrap_err().kind(),
        ErrorKind::Malformed
    );
    assert_eq!(cx.artifact("a", "log", "x").await.unwrap().0, Digest::content(b"x"));
}

// -- progress --

#[agent]
async fn counts(cx: &Cx, to: u64) -> Result<u64> {
    for done in 1..=to {
        nothing(cx).await?;
        SEEN.note(format!("counts {done}"));
        cx.progress(done, to, format_args!("step {done}"));
    }
    Ok(to)
}

#[tokio::test]
async fn a_replay_says_nothing_of_how_far_it_is_until_it_is_further() {
    let world = World::new();
    world.run(counts, 3).await.unwrap();
    let told = world.journal.progressed().unwrap();
    assert_eq!((told.done, told.total, told.text.as_str()), (3, Some(3), "step 3"));
    let two = world
        .log()
        .iter()
        .rposition(|line| line == "step.completed nothing")
        .unwrap();
    let behind = world.cut(two);
    assert_eq!(behind.run(counts, 2).await.unwrap(), 2);
    assert_eq!(
        behind.journal.progressed().unwrap().done,
        2,
        "it has come to where its log ends"
    );
    let whole = world.crash();
    let again = whole.run(counts, 4).await.unwrap();
    assert_eq!((again, whole.journal.progressed().unwrap().done), (4, 4));
}

/// A run of an agent on a ledger, as an orchestrator would seat it.
async fn seated(ledger: &Ledger, run: &RunId) -> Result<ArtifactRef, Error> {
    let token = TokenId::new("painter-1").unwrap();
    let place = Place {
        topic: catalog::steps(&token),
        author: Author::from(&token),
        owner: ("run:r".into(), 0),
        control: vec![catalog::control(&token)],
        given: catalog::control(&token),
        cause: None,
        progress: Some(catalog::progress(run)),
    };
    let past = history(ledger, [place.topic.clone()]).unwrap();
    let journal = Arc::new(LedgerJournal::new(
        ledger.clone(),
        place,
        Arc::new(Upcasters::default()),
    ));
    let runtime = Arc::new(Runtime::new(journal).history(past));
    let scope = Scope::root(&runtime, "package", Millis(1), Manner::Replayed);
    let none = neuron::Json::parse("{}").unwrap();
    contain(&scope, entry(painter).run(scope.clone(), none))
        .await
        .unwrap()
        .map(|ran| ran.json.decode().unwrap())
}

/// Keeps one artifact, and has a step keep another.
#[agent]
async fn painter(cx: &Cx) -> Result<ArtifactRef> {
    let sketch = cx.artifact("sketch.svg", "sketch", "<svg/>").await?;
    Ok(paints(cx, sketch).await?)
}

#[step]
async fn paints(cx: &Cx, sketch: ArtifactRef) -> Result<ArtifactRef> {
    cx.progress(1, None, "priming");
    let canvas = cx.artifact("canvas.png", "picture", sketch.0.to_string()).await?;
    cx.progress(1, 1, "dry");
    cx.burn(Burn {
        tool_calls: 2,
        ..Burn::default()
    });
    Ok(canvas)
}

#[tokio::test]
async fn on_the_ledger_artifacts_stand_in_their_place_and_progress_on_the_runs_topic() {
    let ledger = Ledger::over(
        Arc::new(Memory::new().unwrap()),
        Arc::new(SystemClock),
        Pipeline::default(),
    )
    .unwrap();
    let run = RunId::new("r").unwrap();
    let mut listener = ledger.bus().listen(Pattern::exactly(&catalog::progress(&run)));
    let canvas = seated(&ledger, &run).await.unwrap();

    let mut text = String::new();
    ledger.blob(&canvas.0).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, Digest::content(b"<svg/>").to_string());
    let token = TokenId::new("painter-1").unwrap();
    let read = || {
        ledger
            .read(Select::Topic(catalog::steps(&token)))
            .envelopes()
            .map(Result::unwrap)
    };
    let envelopes: Vec<neuron::Envelope> = read().collect();
    let kinds: Vec<_> = envelopes
        .iter()
        .map(|envelope| envelope.body.kind.to_string())
        .collect();
    assert_eq!(
        kinds,
        ["step.artifact", "step.started", "step.artifact", "step.completed"]
    );
    assert_eq!(
        envelopes[2].parent_seq,
        Some(2),
        "it belongs to the step that was running"
    );
    let word: StepArtifact = envelopes[2].decode().unwrap();
    assert_eq!(word.scope, envelopes[1].decode::<StepStarted>().unwrap().key);
    assert_eq!(envelopes[3].headers.decode::<u64>("tool-calls"), Some(2));

    for (done, total) in [(1, None), (1, Some(1))] {
        let told: StepProgressed = listener.next().await.unwrap().decode().unwrap();
        assert_eq!((told.done, told.total), (done, total));
    }
    let mut late = ledger.bus().listen(Pattern::exactly(&catalog::progress(&run)));
    assert_eq!(
        StepProgressed::read(&late.next().await.unwrap()).unwrap().unwrap().text,
        "dry"
    );

    assert_eq!(seated(&ledger, &run).await.unwrap(), canvas);
    assert_eq!(read().count(), envelopes.len(), "a replay keeps nothing again");
}

// -- what it took --

#[step(retry(2, backoff = "1ms"))]
async fn thinks(cx: &Cx) -> Result<u32> {
    cx.burn(Burn {
        tokens_in: 10,
        ..Burn::default()
    });
    let aside = cx.spawn_thread("aside", |cx| async move {
        cx.burn(Burn {
            tokens_out: 5,
            ..Burn::default()
        });
        Ok::<_, Error>(())
    });
    aside.await?;
    asks(cx).await?;
    if cx.attempt() == 1 { Err("again".into()) } else { Ok(1) }
}

#[step]
async fn asks(cx: &Cx) -> Result<()> {
    cx.burn(Burn {
        tokens_in: 1000,
        ..Burn::default()
    });
    Ok(())
}

#[agent]
async fn thinker(cx: &Cx) -> Result<u32> {
    Ok(thinks(cx).await?)
}

#[tokio::test(start_paused = true)]
async fn each_attempt_is_charged_with_what_it_took_itself() {
    let world = World::new();
    world.run(thinker, ()).await.unwrap();
    let lines = world.journal.lines().into_iter().map(|(_, record)| record);
    let burnt: Vec<_> = lines
        .filter_map(|record| Some((record.kind, record.burn?)))
        .map(|(kind, burn)| (kind, burn.tokens_in, burn.tokens_out))
        .collect();
    // The thread's answer and the nested step's hold for the second attempt, and are not paid again.
    assert_eq!(
        burnt,
        [
            ("step.completed", 1000, 0),
            ("step.attempted", 10, 5),
            ("step.completed", 10, 0)
        ]
    );
}
