//! What holds for every command: which store is meant, how it ends, what it leaves untouched.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write},
    path::Path,
    process::{Command, Stdio},
};

use clap::Parser as _;
use insta::assert_snapshot;
use neuron::Digest;
use orchestrator::cli::{self, Console, Exit};

use crate::world::{World, note};

/// The stock binary, without what the environment says about stores.
fn binary(world: &World) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_neuron"));
    command
        .current_dir(world.folder())
        .env_remove("NEURON_STORE")
        .env("TZ", "UTC");
    command
}

#[test]
fn the_one_store_of_the_folder_is_meant() {
    let world = World::with_notes().closed();
    assert_eq!(world.ask(&["topics"]).exit, Exit::Success);
    // A file of another program does not make it doubtful.
    fs::write(world.folder().join("other.db"), "not a database at all").unwrap();
    assert_eq!(world.ask(&["topics"]).exit, Exit::Success);
    fs::copy(world.path(), world.folder().join("second.db")).unwrap();
    assert_snapshot!("store_several", world.ask(&["topics"]).whole());
    assert_eq!(world.ask(&["topics", "--store", "second.db"]).exit, Exit::Success);
    assert_snapshot!("store_none", World::empty().ask(&["topics"]).whole());
}

#[test]
fn a_store_that_is_none_is_named_with_what_is_wrong() {
    let world = World::empty();
    assert_snapshot!("store_missing", world.ask(&["log", "--store", "store.db"]).whole());
    assert_snapshot!(
        "store_folder_missing",
        world.ask(&["log", "--store", "no/such/store.db"]).whole()
    );
    assert_eq!(fs::read_dir(world.folder()).unwrap().count(), 0, "nothing was made");
    fs::write(world.path(), "# a note\n".repeat(200)).unwrap();
    assert_snapshot!("store_text", world.ask(&["log"]).whole());
    fs::write(world.path(), "").unwrap();
    assert_snapshot!("store_empty", world.ask(&["log"]).whole());
    assert_snapshot!("store_empty_order", world.ask(&["pause", "r1"]).whole());
}

#[test]
fn the_environment_names_a_store_and_the_command_line_overrules_it() {
    let world = World::with_notes().closed();
    let said = |command: &mut Command| command.output().unwrap().status.code();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut by_name = binary(&world);
    by_name
        .current_dir(elsewhere.path())
        .env("NEURON_STORE", world.path())
        .arg("topics");
    assert_eq!(said(&mut by_name), Some(0));
    by_name.args(["--store", "none.db"]);
    assert_eq!(said(&mut by_name), Some(2));
}

#[test]
fn a_wrong_question_ends_with_two_and_says_how_to_ask() {
    let world = World::with_notes();
    for args in [
        &["frobnicate"][..],
        &["log", "--since", "soon"],
        &["log", "a..b"],
        &["log", "--follow", "--reverse"],
        &["show"],
        &["show", "notes.today"],
        &["show", "notes.today@0"],
        &["show", "notes.today@x"],
        &["cat", "xyz"],
        &["schema", "xyz"],
        &["causes", "not an id"],
    ] {
        let said = world.ask(args);
        assert_eq!((said.exit, said.out.as_str()), (Exit::Fault, ""), "{args:?}");
        assert!(!said.err.is_empty(), "{args:?}");
    }
    assert_snapshot!("usage_show", world.ask(&["show", "notes.today"]).whole());
    assert_snapshot!("usage_since", world.ask(&["log", "--since", "soon"]).whole());
}

#[test]
fn what_is_not_there_ends_with_one() {
    let world = World::with_notes();
    for args in [
        &["show", "notes.today@9"][..],
        &["show", "notes.none@1"],
        &["show", "ffffffffffff"],
        &["log", "notes.none"],
        &["cat", "ffffffffffff"],
        &["lineage", "ffffffffffff"],
        &["schema", "ffffffffffff"],
        &["causes", "ffffffffffff"],
    ] {
        let said = world.ask(args);
        assert_eq!(
            (said.exit, said.out.as_str()),
            (Exit::Negative, ""),
            "{args:?}: {}",
            said.err
        );
        assert!(said.err.starts_with("neuron: "), "{args:?}");
    }
    assert_snapshot!("absent_seq", world.ask(&["show", "notes.today@9"]).whole());
    assert_snapshot!("absent_topic", world.ask(&["log", "notes.none"]).whole());
}

#[test]
fn a_beginning_that_several_ids_share_is_told_with_all_of_them() {
    let world = World::empty().opened();
    for nth in 0..40 {
        world.append([note(&nth.to_string())]);
    }
    let first = world.ask(&["log", "--json"]).values();
    let ids: Vec<_> = first.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect();
    let shared = |digit: &str| ids.iter().filter(|id| id.starts_with(digit)).count();
    let digit = (0..16)
        .map(|digit| format!("{digit:x}"))
        .find(|digit| shared(digit) > 1)
        .unwrap();
    let said = world.ask(&["show", &digit]);
    assert_eq!((said.exit, said.out.as_str()), (Exit::Fault, ""));
    assert!(said.err.contains("give more digits"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1 + shared(&digit), "{}", said.err);
}

/// A program that has the commands among its own.
#[derive(clap::Parser)]
struct App {
    #[command(flatten)]
    options: cli::Options,
    #[command(subcommand)]
    command: AppCommand,
}

#[derive(clap::Subcommand)]
enum AppCommand {
    Serve,
    #[command(flatten)]
    Neuron(cli::Command),
}

#[test]
fn the_commands_can_stand_among_those_of_another_program() {
    let world = World::with_notes();
    let app = App::parse_from(["app", "topics", "--json"]);
    let AppCommand::Neuron(command) = app.command else {
        panic!("`topics` is one of ours")
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let exit = command.run(&app.options, &mut world.console(Console::new(&mut out, &mut err)));
    assert_eq!(
        (exit, String::from_utf8(out).unwrap()),
        (Exit::Success, world.ask(&["topics", "--json"]).out)
    );
    assert!(matches!(App::parse_from(["app", "serve"]).command, AppCommand::Serve));
}

#[test]
fn help_and_version_are_answers() {
    let world = World::empty();
    for args in [&["--help"][..], &["log", "--help"], &["--version"]] {
        let said = world.ask(args);
        assert_eq!((said.exit, said.err.as_str()), (Exit::Success, ""), "{args:?}");
    }
    assert_snapshot!("help", world.ask(&["--help"]).out);
    assert_snapshot!("help_log", world.ask(&["log", "--help"]).out);
}

/// Every question there is, with arguments that have an answer.
const QUESTIONS: &[&[&str]] = &[
    &["topics"],
    &["log"],
    &["show", "notes.today@1"],
    &["causes", "notes.replies@1"],
    &["schema"],
    &["artifacts"],
    &["runs"],
    &["waiting"],
    &["consumers"],
    &["verify"],
    &["head"],
];

/// The bytes of every file of a folder, by name. Another process reads them, for closing a file of a store that this one
/// has open would drop its locks. What SQLite shares between processes while they have the store open is no content.
fn traces(folder: &Path) -> BTreeMap<String, Digest> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names
        .map(|name| name.into_string().unwrap())
        .filter(|name| !name.ends_with("-shm"));
    let read = |name: &String| Command::new("cat").arg(folder.join(name)).output().unwrap().stdout;
    names
        .map(|name| (name.clone(), Digest::content(&read(&name))))
        .collect()
}

#[test]
fn a_question_leaves_every_file_as_it_was() {
    let world = World::with_notes().closed();
    let before = traces(world.folder());
    for args in QUESTIONS {
        let said = binary(&world).args(*args).output().unwrap();
        assert_eq!(
            said.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        assert_eq!(traces(world.folder()), before, "{args:?}");
    }
}

#[test]
fn a_question_is_answered_while_another_process_has_the_store_open() {
    let world = World::with_notes();
    let before = traces(world.folder());
    for args in QUESTIONS {
        let said = binary(&world).args(*args).output().unwrap();
        assert_eq!(
            said.status.code(),
            Some(0),
            "{args:?}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
    }
    assert_eq!(traces(world.folder()), before);
    world.append([note("the other one goes on")]);
}

#[test]
fn a_folder_that_may_only_be_read_is_no_hindrance() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::with_notes().closed();
    let allow = |mode| fs::set_permissions(world.folder(), fs::Permissions::from_mode(mode)).unwrap();
    fs::set_permissions(world.path(), fs::Permissions::from_mode(0o444)).unwrap();
    allow(0o555);
    let asked = binary(&world).arg("log").output().unwrap().status.code();
    let ordered = binary(&world).args(["pause", "r1"]).output().unwrap();
    allow(0o755);
    assert_eq!(asked, Some(0));
    assert_ne!(ordered.status.code(), Some(0));
}

/// A reader that has gone away.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let world = World::with_notes();
    for args in [
        &["log"][..],
        &["log", "--json"],
        &["topics"],
        &["show", "notes.today@1"],
        &["log", "--follow"],
    ] {
        let mut err = Vec::new();
        let exit = cli::run_on(
            [&["neuron"], args].concat(),
            world.console(Console::new(&mut Gone, &mut err)),
        );
        assert_eq!((exit, err.as_slice()), (Exit::Success, &b""[..]), "{args:?}");
    }
}

#[test]
fn the_binary_too_ends_quietly_when_its_pipe_is_closed() {
    let world = World::empty().opened();
    let text = "x".repeat(10_000);
    for _ in 0..40 {
        world.append([note(&text)]);
    }
    let mut child = binary(&world)
        .args(["log", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn following_sees_what_other_processes_commit() {
    let world = World::with_notes();
    let mut child = binary(&world)
        .args(["log", "notes.today", "--follow", "--json", "--limit", "5"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let value: serde_json::Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        value["seq"].as_u64().unwrap()
    };
    assert_eq!([next(), next(), next()], [1, 2, 3]);
    world.append([note("live")]);
    assert_eq!(next(), 4);
    world.append([note("and again")]);
    assert_eq!(next(), 5);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(
        world
            .ledger()
            .store()
            .head(&crate::world::topic("notes.today"))
            .unwrap(),
        5
    );
}

#[test]
fn colours_come_only_when_they_are_wanted() {
    let world = World::with_notes();
    assert!(!world.ask(&["log"]).out.contains('\u{1b}'));
    assert!(world.ask(&["log", "--color", "always"]).out.contains("\u{1b}[2m"));
    assert!(world.ask(&["topics", "--color", "always"]).out.contains('\u{1b}'));
    // What an envelope says never reaches the terminal as an order.
    assert!(!world.ask(&["log", "--color", "always"]).out.contains("\u{1b}[31mred"));
}
