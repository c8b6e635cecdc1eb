//! The main job as a user runs it: killed after any commit and run again, its review is the one that nobody
//! interrupted.

mod world;

use std::{fs, path::Path, process::Command};

use neuron::{Ledger, RunId, vocabulary::orchestration::EdgeReason};
use neuron_workspace::{Process, binary};
use orchestrator::{board::BoardView, package::Phase, runs::Runs};

use self::world::World;

/// Steps of one review.
const STEPS: usize = 18;

fn runs(ledger: &Ledger) -> Vec<RunId> {
    ledger.fold(&Runs, None).unwrap().state.into_keys().collect()
}

#[test]
fn it_reviews_says_how_that_came_about_and_where_to_look_further() {
    let world = World::small();
    let said = world.reviewed();
    let text = world.text();
    assert!(text.contains("README.md") && text.contains("serde"), "{text}");
    assert!(said.stdout.contains("18 steps ran in this process."), "{}", said.stdout);
    assert!(
        said.stdout
            .contains("`docs` owns `cat-file`, which `dependencies` owns"),
        "{}",
        said.stdout
    );
    for what in ["review.md", "TOOL CALLS", "--store review.db verify"] {
        assert!(said.stdout.contains(what), "{}", said.stdout);
    }
    assert!(said.stderr.contains("walk_history done (1 of 4"), "{}", said.stderr);
    assert!(!text.contains(world.folder().to_str().unwrap()), "{text}");
    world.assert_sound();
}

#[test]
fn the_five_stand_on_the_board_before_anything_runs_and_share_one_pipe_in_turn() {
    let world = World::small();
    world.reviewed();
    let ledger = world.ledger().unwrap();
    let board = BoardView::of(&ledger, &runs(&ledger)[0]).unwrap();
    let names: Vec<_> = board.packages().iter().map(|package| &*package.assigned.name).collect();
    assert_eq!(
        names,
        ["history", "structure", "risk", "dependencies", "docs", "synthesis"]
    );
    assert!(
        board
            .packages()
            .iter()
            .all(|package| board.phase(package) == Phase::Done)
    );
    assert_eq!(board.rounds(), 1);
    let name = |key: &str| board.package(key).unwrap().assigned.name.clone();
    let injected = board.edges().iter().filter(|edge| edge.why == EdgeReason::Clearance);
    let injected: Vec<_> = injected
        .map(|edge| (name(&edge.from), name(&edge.to), edge.resource.clone().unwrap()))
        .collect();
    let turn = |first: &str, then: &str| (first.into(), then.into(), "cat-file".into());
    assert_eq!(injected, [turn("risk", "dependencies"), turn("dependencies", "docs")]);
}

#[test]
fn no_path_of_the_machine_is_on_the_log() {
    let world = World::small();
    world.reviewed();
    let folder = world.folder().to_str().unwrap().to_owned();
    let ledger = world.ledger().unwrap();
    for envelope in ledger.read(neuron::store::Select::All).envelopes() {
        let record = envelope.unwrap().record().unwrap();
        assert!(!record.as_str().contains(&folder), "{record}");
    }
}

/// Aborts a review of `repository` after every `nth` commit, each with a store of its own, and runs it again; gives how
/// often it was aborted.
fn survives(repository: &Path, nth: usize) -> usize {
    let whole = World::new();
    assert_eq!(whole.review_at(repository, &[]).code, Some(0));
    for (crashes, commit) in (1..).step_by(nth).enumerate() {
        let world = World::new();
        let said = world.review_at(repository, &["--crash-after", &commit.to_string()]);
        if said.aborted {
            assert!(said.stdout.is_empty(), "{}", said.stdout);
            let crash = world.last();
            let said = world.review_at(repository, &[]);
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            world.assert_only_what_was_in_flight_ran_again(crash);
        }
        assert_eq!(world.text(), whole.text(), "after a crash at commit {commit}");
        world.assert_sound();
        if !said.aborted {
            assert_eq!(said.code, Some(0), "{}", said.stderr);
            return crashes;
        }
    }
    unreachable!()
}

#[test]
fn killed_after_any_commit_and_run_again_the_review_is_the_one_nobody_interrupted() {
    let crashes = survives(&World::small().repository(), 1);
    // The answers of six packages, the round, and the ends of the steps, some of which share a commit.
    assert!(crashes > 12, "only {crashes} commits were made");
}

#[test]
fn killed_again_and_again_it_goes_on_each_time() {
    let whole = World::small();
    whole.reviewed();
    let world = World::small();
    let mut crashes = 0;
    while world.aborted(10).aborted {
        crashes += 1;
        assert!(crashes < 20, "it does not get any further");
    }
    assert!(crashes > 1);
    assert_eq!(world.text(), whole.text());
    world.assert_sound();
}

#[test]
fn a_step_that_is_cut_off_each_time_waits_for_a_person_who_is_told_what_to_do() {
    let whole = World::small();
    whole.reviewed();
    let world = World::small();
    for times in 0.. {
        assert!(times < 20, "no step is in doubt");
        let said = world.aborted(2);
        assert!(said.aborted, "{}", said.stderr);
        if said.stderr.contains("is in doubt") {
            break;
        }
    }
    let mut process = world.start(&[]);
    while let Ok(line) = process.line(" resolve ") {
        let args: Vec<_> = line
            .split_whitespace()
            .skip_while(|word| *word != "--")
            .skip(1)
            .collect();
        let ruled = binary("neuron")
            .args(args)
            .current_dir(world.folder())
            .output()
            .unwrap();
        assert!(
            ruled.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&ruled.stderr)
        );
    }
    let (status, said) = process.wait();
    assert!(status.success(), "{said:?}");
    assert_eq!(world.text(), whole.text());
    world.assert_sound();
}

#[test]
fn a_run_that_goes_on_says_which_steps_the_log_answered() {
    let world = World::small();
    let said = world.aborted(12);
    assert!(said.aborted, "{}", said.stderr);
    let answered = said.stderr.lines().filter(|line| line.contains(" done (")).count();
    let said = world.reviewed();
    assert!(said.stderr.contains("goes on where its log ends"), "{}", said.stderr);
    assert!(
        said.stdout.contains("answered from the log and did not run again:"),
        "{}",
        said.stdout
    );
    let now = said.stderr.lines().filter(|line| line.contains(" done (")).count();
    // What was committed last may have been told by neither.
    assert!(answered + now <= STEPS && now < STEPS, "{answered} + {now}");
    assert!(
        said.stdout.contains(&format!("{now} steps ran in this process:")),
        "{}",
        said.stdout
    );
}

#[test]
fn of_two_at_once_one_drives_the_run_and_the_other_waits_for_it() {
    let world = World::small();
    let both = [world.start(&[]), world.start(&[])].map(Process::wait);
    assert!(both.iter().all(|(status, _)| status.success()), "{both:?}");
    let says = |what: &str| {
        let says = both
            .iter()
            .filter(|(_, said)| said.iter().any(|line| line.contains(what)));
        says.count()
    };
    assert_eq!(says("18 steps ran in this process."), 1, "{both:?}");
    assert_eq!(says("18 steps were answered from the log"), 1, "{both:?}");
    world.assert_only_what_was_in_flight_ran_again(0);
    world.assert_sound();
}

#[test]
fn a_paused_run_says_how_it_goes_on() {
    let world = World::small();
    assert!(world.aborted(9).aborted);
    let id = runs(&world.ledger().unwrap()).remove(0);
    let ordered = |order: &str| {
        let mut neuron = binary("neuron");
        neuron.args(["--store", "review.db", order, id.as_str()]);
        assert!(neuron.current_dir(world.folder()).output().unwrap().status.success());
    };
    ordered("pause");
    let mut process = world.start(&[]);
    process.wait_for(&format!("resume {id}"));
    ordered("resume");
    let (status, said) = process.wait();
    assert!(status.success(), "{said:?}");
    world.assert_sound();
}

#[test]
fn a_finished_run_is_answered_from_the_log_and_writes_nothing_but_the_review() {
    let world = World::small();
    world.reviewed();
    let (text, last) = (world.text(), world.last());
    fs::remove_file(world.folder().join("review.md")).unwrap();
    let said = world.reviewed();
    assert!(said.stderr.contains("has ended before"), "{}", said.stderr);
    assert!(said.stdout.contains("no step ran in this process"), "{}", said.stdout);
    assert_eq!((world.text(), world.last()), (text, last));
}

#[test]
fn an_unfinished_run_goes_first_even_if_head_has_moved() {
    let world = World::small();
    let first = world.git(&["rev-parse", "HEAD"]);
    assert!(world.aborted(9).aborted);
    world.write("late.rs", "fn late() {}\n");
    world.commit();
    let said = world.reviewed();
    assert!(said.stderr.contains("HEAD has moved since"), "{}", said.stderr);
    assert!(world.text().contains(&first), "{}", world.text());
    world.reviewed();
    assert!(
        world.text().contains(&world.git(&["rev-parse", "HEAD"])),
        "{}",
        world.text()
    );
    assert_eq!(runs(&world.ledger().unwrap()).len(), 2);
    world.assert_sound();
}

#[test]
fn an_unfinished_run_of_another_repository_stays_as_it_is() {
    let (world, other) = (World::small(), World::empty());
    other.write("a.py", "x = 1\n");
    other.commit();
    assert!(world.aborted(9).aborted);
    let said = world.review_at(&other.repository(), &[]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        world.text().contains(&other.git(&["rev-parse", "HEAD"])),
        "{}",
        world.text()
    );
    world.reviewed();
    assert!(
        world.text().contains(&world.git(&["rev-parse", "HEAD"])),
        "{}",
        world.text()
    );
}

#[test]
fn an_id_means_one_review() {
    let world = World::small();
    assert_eq!(world.review(&["--run", "mine"]).code, Some(0));
    assert_eq!(runs(&world.ledger().unwrap()), [RunId::new("mine").unwrap()]);
    world.write("late.rs", "fn late() {}\n");
    world.commit();
    let said = world.review(&["--run", "mine"]);
    assert_eq!(said.code, Some(2));
    assert!(
        said.stderr.contains("`mine`") && said.stderr.contains("another id"),
        "{}",
        said.stderr
    );
}

#[test]
fn a_repository_without_commits_is_reviewed() {
    let world = World::empty();
    world.reviewed();
    assert!(world.text().contains("Commit something"), "{}", world.text());
    world.assert_sound();
}

#[test]
fn a_directory_that_is_no_repository_is_named_and_no_store_is_made() {
    let world = World::new();
    let said = world.review_at(world.folder(), &[]);
    assert_eq!(said.code, Some(2));
    let folder = world.folder().to_str().unwrap();
    assert!(
        said.stderr.contains(folder) && said.stderr.contains("git init"),
        "{}",
        said.stderr
    );
    assert!(!world.store().exists());
    let said = world.review_at(Path::new("nowhere"), &[]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("nowhere"), "{}", said.stderr);
}

#[test]
fn a_store_that_is_none_is_left_as_it_is() {
    let world = World::small();
    fs::write(
        world.store(),
        "a diary, and no store at all; long enough to have a header of SQLite's size in it".repeat(9),
    )
    .unwrap();
    let before = fs::read(world.store()).unwrap();
    let said = world.review(&[]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("review.db"), "{}", said.stderr);
    assert_eq!(fs::read(world.store()).unwrap(), before);
}

#[test]
fn odd_names_links_and_submodules_pass_through_a_crash_unharmed() {
    let world = World::small();
    let (code, target) = (world.blob("fn a() { x.unwrap() }\n"), world.blob("src/lib.rs"));
    world.entry("100644", &code, b"caf\xe9\n|`.rs");
    world.entry("120000", &target, b"link.rs");
    let commit = world.git(&["rev-parse", "HEAD"]);
    world.entry("160000", &commit, b"vendor/module");
    world.commit_index();
    assert!(world.aborted(10).aborted);
    world.reviewed();
    let text = world.text();
    assert!(text.contains("caf") && !text.contains('\u{fffd}'), "{text}");
    assert!(
        text.contains("1 submodule") && text.contains("1 symbolic link"),
        "{text}"
    );
    world.assert_sound();
}

#[test]
fn a_shallow_clone_is_reviewed_as_one_and_beside_the_whole() {
    let world = World::small();
    world.reviewed();
    let (from, to) = (
        format!("file://{}", world.repository().display()),
        world.folder().join("shallow"),
    );
    world.git(&["clone", "--quiet", "--depth", "1", &from, to.to_str().unwrap()]);
    let said = world.review_at(&to, &[]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(world.text().contains("shallow"), "{}", world.text());
    assert_eq!(runs(&world.ledger().unwrap()).len(), 2);
}

#[test]
fn this_repository_survives_a_crash_at_every_seventh_commit() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let commit = Command::new("git")
        .current_dir(here)
        .args(["rev-parse", "HEAD"])
        .output();
    if !commit.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: these sources are no clone");
        return;
    }
    assert!(survives(here, 7) > 1);
}
