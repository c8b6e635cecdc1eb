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
    let world = World::with_notes().closed();
    let bytes = fs::read(world.path()).unwrap();
    fs::write(world.path(), &bytes[..bytes.len() / 2]).unwrap();
    let said = world.ask(&["verify"]);
    assert_eq!(said.exit.code(), 1, "{}", said.err);
    assert_eq!(world.ask(&["log"]).exit.code(), 2);
}
