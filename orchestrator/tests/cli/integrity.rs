//! Whether a store is what was written, asked on the command line.

use std::fs;

use insta::assert_snapshot;

use crate::world::{World, note};

#[test]
fn an_intact_store_is_said_to_be_intact() {
    let world = World::with_notes();
    assert_snapshot!("verify", world.ask(&["verify"]).whole());
    assert_eq!(world.ask(&["verify", "--json"]).values()[0]["intact"], true);
    assert_eq!(
        world.ask(&["verify", "--json"]).values()[0]["found"]["head"],
        world.ask(&["head"]).out.trim()
    );
}

#[test]
fn a_head_kept_elsewhere_proves_that_the_store_extends_it() {
    let world = World::with_notes();
    assert_snapshot!("head", world.ask(&["head"]).whole());
    let head = world.ask(&["head"]).out;
    assert_eq!(world.ask(&["check", "--since", head.trim()]).exit.code(), 0);
    world.append([note("more")]);
    assert_snapshot!("check", world.ask(&["check", "--since", head.trim()]).whole());
    let later = world.ask(&["head", "--json"]).values()[0]["head"]
        .as_str()
        .unwrap()
        .to_owned();
    let other = World::with_notes();
    assert_snapshot!("check_cut", other.ask(&["check", "--since", &later]).whole());
    let said = other.ask(&["check", "--since", &later, "--json"]);
    assert_eq!((said.exit.code(), &said.values()[0]["intact"]), (1, &false.into()));
    let foreign = format!("2:{}", "ab".repeat(32));
    assert_eq!(world.ask(&["check", "--since", &foreign]).exit.code(), 1);
    for wrong in ["", "5", "x:y"] {
        assert_eq!(world.ask(&["check", "--since", wrong]).exit.code(), 2, "{wrong}");
    }
}

/// Changes one byte of the file, as a hex editor would.
fn tamper(world: &World, from: &str, to: &str) {
    let mut bytes = fs::read(world.path()).unwrap();
    let at = bytes
        .windows(from.len())
        .position(|window| window == from.as_bytes())
        .unwrap();
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    fs::write(world.path(), bytes).unwrap();
}

#[test]
fn a_changed_byte_is_found_and_the_envelope_named() {
    let world = World::with_notes().closed();
    tamper(&world, "write home", "write Home");
    let said = world.ask(&["verify"]);
    assert_eq!(said.exit.code(), 1);
    assert!(said.err.contains("pos 3 (notes.today seq 2"), "{}", said.err);
    let said = world.ask(&["verify", "--json"]);
    assert_eq!(
        (said.exit.code(), said.values()[0]["envelope"]["pos"].as_u64()),
        (1, Some(3))
    );
}

#[test]
fn a_file_too_damaged_to_be_opened_is_not_intact() {
    let world = World::with_notes();
    for _ in 0..20 {
        world.append([note(&"x".repeat(2_000))]);
    }
    let world = world.closed();
    let bytes = fs::read(world.path()).unwrap();
    for (left, word) in [(4_096, "nothing of it"), (bytes.len() - 8_192, "can be read up to pos")] {
        fs::write(world.path(), &bytes[..left]).unwrap();
        let said = world.ask(&["verify"]);
        assert_eq!(said.exit.code(), 1, "{}", said.err);
        assert!(said.err.contains(word), "{}", said.err);
        assert_eq!(world.ask(&["log"]).exit.code(), 2);
        let said = world.ask(&["doctor"]);
        assert_eq!(said.exit.code(), 2, "{}", said.err);
        assert!(said.out.contains(word), "{}", said.out);
    }
}

#[test]
fn what_came_after_a_head_is_verified_alone() {
    let world = World::with_notes();
    let head = world.ask(&["head"]).out.trim().to_owned();
    world.append([note("more")]);
    assert_snapshot!("verify_since", world.ask(&["verify", "--since", &head]).whole());
    assert_snapshot!(
        "verify_trust",
        world.ask(&["verify", "--since", &head, "--trust"]).whole()
    );
    let said = world.ask(&["verify", "--since", &head, "--json"]).values();
    assert_eq!(
        (&said[0]["since"], &said[0]["found"]["envelopes"]),
        (&head.as_str().into(), &1.into())
    );
    let other = format!("2:{}", "ab".repeat(32));
    assert_eq!(world.ask(&["verify", "--since", &other]).exit.code(), 1);
    assert_eq!(world.ask(&["verify", "--trust"]).exit.code(), 2);
    let topic = world.ask(&["head", "notes.today"]).out;
    assert!(topic.starts_with("4:"), "{topic}");
}

#[test]
fn the_doctor_says_how_a_store_is_and_puts_right_what_is_no_record() {
    let world = World::with_notes().closed();
    assert_snapshot!("doctor_sound", world.ask(&["doctor"]).whole());
    let shell = rusqlite::Connection::open(world.path()).unwrap();
    shell.execute_batch("DROP TRIGGER envelope_no_DELETE").unwrap();
    drop(shell);
    fs::write(world.folder().join("store.db.side"), "no index".repeat(100)).unwrap();
    assert_snapshot!("doctor_mendable", world.ask_on(90, &["doctor"]).whole());
    let said = world.ask(&["verify"]);
    assert_eq!(said.exit.code(), 1);
    assert!(said.err.contains("neuron doctor --repair"), "{}", said.err);
    let said = world.ask(&["doctor", "--json"]).values();
    assert_eq!(
        (
            &said[0]["state"],
            said[0]["found"]["findings"].as_array().unwrap().len()
        ),
        (&"mendable".into(), 2)
    );
    assert_snapshot!("doctor_repair", world.ask(&["doctor", "--repair"]).whole());
    assert_eq!(world.ask(&["doctor"]).exit.code(), 0);
    assert_eq!(world.ask(&["verify"]).exit.code(), 0);
}

#[test]
fn the_doctor_of_a_damaged_store_ends_with_two_and_names_the_envelope() {
    let world = World::with_notes().closed();
    tamper(&world, "write home", "write Home");
    let said = world.ask(&["doctor"]);
    assert_snapshot!("doctor_damaged", said.whole());
    assert_eq!(world.ask(&["doctor", "--repair"]).exit.code(), 2);
    assert_eq!(World::empty().ask(&["doctor", "--store", "none.db"]).exit.code(), 2);
}

#[test]
fn what_shows_or_exports_a_record_that_was_changed_refuses_and_names_it() {
    let world = World::with_notes().closed();
    tamper(&world, "write home", "write Home");
    for args in [
        &["log"][..],
        &["log", "--json"],
        &["export"],
        &["show", "notes.today@2"],
    ] {
        let said = world.ask(args);
        assert_ne!(said.exit.code(), 0, "{args:?}: {}", said.out);
        assert!(
            said.err.contains("damaged") && said.err.contains("pos 3"),
            "{args:?}: {}",
            said.err
        );
    }
    assert_eq!(world.ask(&["export", "--to", "2"]).exit.code(), 0);
}

#[test]
fn a_schema_that_was_changed_is_named_as_damaged_by_whoever_looks() {
    let world = World::with_notes().closed();
    tamper(&world, "\"properties\"", "\"properties'");
    for args in [&["verify"][..], &["doctor"], &["export"]] {
        let said = world.ask(args);
        let told = said.out + &said.err;
        assert_ne!(said.exit.code(), 0, "{args:?}: {told}");
        assert!(
            told.contains("schema ") && told.contains("is damaged"),
            "{args:?}: {told}"
        );
    }
}

#[test]
fn whatever_is_asked_of_a_store_whose_log_breaks_off_says_so_and_does_not_end_well() {
    let world = World::with_notes();
    for n in 0..5 {
        world.append([note(&format!("more {n}"))]);
    }
    // As a crash leaves it: the copy has its log beside it.
    let copy = world.folder().join("copy.db");
    fs::copy(world.path(), &copy).unwrap();
    let log = |path: &std::path::Path| path.with_extension("db-wal");
    let mut bytes = fs::read(log(&world.path())).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 5;
    fs::write(log(&copy), bytes).unwrap();
    let asks: [&[&str]; 6] = [
        &["topics"],
        &["log"],
        &["head"],
        &["runs"],
        &["export"],
        &["backup", "kept.db"],
    ];
    for args in asks {
        let said = world.ask(&[args, &["--store", "copy.db"]].concat());
        assert_eq!(said.exit.code(), 1, "{args:?}: {}", said.err);
        assert!(said.err.contains("copy.db-wal is damaged"), "{args:?}: {}", said.err);
    }
    let order = world.ask(&["cancel", "any", "--store", "copy.db"]);
    assert_eq!(order.exit.code(), 2, "{}", order.err);
    assert!(order.err.contains("not written to"), "{}", order.err);
}
