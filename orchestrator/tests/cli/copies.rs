//! Backups, exports and archives, made and asked on the command line.

use std::{
    fs,
    io::Write as _,
    process::{Command, Stdio},
};

use insta::assert_snapshot;

use crate::world::{World, evidence, note};

/// A store with notes and one artifact that is named.
fn world() -> World {
    let world = World::with_notes();
    let hash = world.ledger().store_blob(&b"a long page"[..]).unwrap();
    world.append([note("with a page").artifact(evidence("page", hash, "report"))]);
    world
}

#[test]
fn a_backup_is_a_store_that_says_the_same() {
    let world = world();
    assert_snapshot!(
        "backup",
        world.ask(&["backup", "copy.db", "--store", "store.db"]).whole()
    );
    for args in [&["log"][..], &["topics"], &["verify"], &["artifacts"], &["head"]] {
        let of = |store: &str| world.ask(&[args, &["--store", store]].concat()).out;
        assert_eq!(of("copy.db"), of("store.db"), "{args:?}");
    }
    assert_snapshot!(
        "backup_taken",
        world.ask(&["backup", "copy.db", "--store", "store.db"]).whole()
    );
    assert_eq!(
        world
            .ask(&["backup", "other.db", "--store", "store.db", "--at-pos", "1"])
            .exit
            .code(),
        2
    );
    assert!(!world.folder().join("other.db").exists());
    let said = world.ask_on(80, &["backup", "on.db", "--store", "store.db"]);
    assert_eq!(said.exit.code(), 0, "{}", said.err);
}

#[test]
fn an_export_of_everything_makes_an_archive_that_says_the_same() {
    let world = world();
    let exported = world.ask(&["export"]);
    // Schemas say what their types say about themselves, which is no matter of this test.
    let lines = exported.out.lines().filter(|line| !line.starts_with("{\"schema\""));
    let lines: Vec<_> = lines.map(|line| line.split(",\"hash\"").next().unwrap()).collect();
    assert_snapshot!("export", format!("{}\n{}", lines.join("\n"), exported.err));
    fs::write(world.folder().join("all.ndjson"), &exported.out).unwrap();
    assert_snapshot!("import", world.ask(&["import", "all.ndjson", "archive.db"]).whole());
    let questions: &[&[&str]] = &[
        &["log"],
        &["log", "--json"],
        &[
            "log",
            "notes.today",
            "--since",
            "2026-09-21T14:13:21Z",
            "--until",
            "2026-09-21T14:13:23Z",
        ],
        &["log", "--reverse", "-n", "2"],
        &["topics"],
        &["show", "notes.replies@1"],
        &["causes", "notes.replies@1"],
        &["schema"],
        &["artifacts"],
        &["runs"],
        &["head"],
        &["verify"],
    ];
    for args in questions {
        let of = |store: &str| world.ask(&[*args, &["--store", store]].concat());
        let (store, archive) = (of("store.db"), of("archive.db"));
        assert_eq!(
            (archive.out, archive.exit),
            (store.out, store.exit),
            "{args:?}: {}",
            archive.err
        );
    }
    let hash = world.ask(&["artifacts", "--json", "--store", "archive.db"]).values()[0][0]["hash"].to_string();
    assert_eq!(
        world.ask(&["cat", hash.trim_matches('"'), "--store", "archive.db"]).out,
        "a long page"
    );
    assert_snapshot!(
        "archive_order",
        world.ask(&["pause", "r1", "--store", "archive.db"]).whole()
    );
    assert_snapshot!(
        "archive_doctor",
        world.ask(&["doctor", "--store", "archive.db"]).whole()
    );
}

#[test]
fn a_part_is_exported_by_topic_place_and_time() {
    let world = world();
    let places = |args: &[&str]| {
        let said = world.ask(&[&["export", "--store", "store.db"], args].concat());
        assert_eq!(said.exit.code(), 0, "{args:?}: {}", said.err);
        let envelopes = said
            .values()
            .into_iter()
            .filter_map(|line| line["envelope"]["pos"].as_u64());
        envelopes.collect::<Vec<_>>()
    };
    assert_eq!(places(&["--topic", "notes.today"]), [2, 3, 4, 6]);
    assert_eq!(places(&["--topic", "notes.*", "--from", "4"]), [4, 5, 6]);
    assert_eq!(places(&["--from", "2", "--to", "3"]), [2, 3]);
    assert_eq!(
        places(&["--since", "1790000001001", "--until", "1790000002002"]),
        [3, 4]
    );
    assert_eq!(places(&["--topic", "nobody"]), [0; 0]);
    assert_eq!(places(&["--at-pos", "3"]), [1, 2, 3]);
    assert_eq!(world.ask(&["export", "--from", "3", "--to", "2"]).exit.code(), 2);
    let part = world.ask(&["export", "--topic", "notes.today", "--from", "3"]).out;
    fs::write(world.folder().join("part.ndjson"), part).unwrap();
    assert_eq!(world.ask(&["import", "part.ndjson", "part.db"]).exit.code(), 0);
    assert_snapshot!("part_topics", world.ask(&["topics", "--store", "part.db"]).whole());
    assert_snapshot!("part_log", world.ask(&["log", "--store", "part.db"]).whole());
    assert_eq!(world.ask(&["verify", "--store", "part.db"]).exit.code(), 0);
    assert_snapshot!("part_head", world.ask(&["head", "--store", "part.db"]).whole());
    // Neither its own head nor that of the store makes it a store that was cut.
    for store in ["part.db", "store.db"] {
        let head = world.ask(&["head", "--store", store]).out;
        let said = world.ask(&["check", "--since", head.trim(), "--store", "part.db"]);
        assert_eq!(said.exit.code(), 2);
        assert!(said.err.contains("an archive is sealed"), "{}", said.err);
    }
}

#[test]
fn a_file_that_is_no_export_is_refused_with_its_line_and_nothing_is_left() {
    let world = world();
    let lines = world.ask(&["export"]).out;
    let (all, changed, cut) = ("all.ndjson", "changed.ndjson", "cut.ndjson");
    fs::write(world.folder().join(all), &lines).unwrap();
    fs::write(world.folder().join(changed), lines.replace("buy bread", "buy breed")).unwrap();
    fs::write(world.folder().join(cut), &lines[..lines.len() / 2]).unwrap();
    let before = fs::read_dir(world.folder()).unwrap().count();
    assert_snapshot!("import_changed", world.ask(&["import", changed, "archive.db"]).whole());
    assert_eq!(world.ask(&["import", cut, "archive.db"]).exit.code(), 2);
    assert_snapshot!(
        "import_missing",
        world.ask(&["import", "none.ndjson", "archive.db"]).whole()
    );
    assert_eq!(world.ask(&["import", all, "store.db"]).exit.code(), 2);
    assert_eq!(world.ask(&["import", "store.db", "archive.db"]).exit.code(), 2);
    assert_eq!(fs::read_dir(world.folder()).unwrap().count(), before);
}

#[test]
fn an_export_is_piped_into_an_archive() {
    let world = world();
    world.append([note("last")]);
    let binary = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_neuron"));
        command
            .current_dir(world.folder())
            .env_remove("NEURON_STORE")
            .args(args);
        command
    };
    let exported = binary(&["export", "--store", "store.db"]).output().unwrap();
    let mut import = binary(&["import", "-", "piped.db"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    import.stdin.take().unwrap().write_all(&exported.stdout).unwrap();
    assert_eq!(import.wait().unwrap().code(), Some(0));
    assert_eq!(
        world.ask(&["head", "--store", "piped.db"]).out,
        world.ask(&["head", "--store", "store.db"]).out
    );
}
