//! Whether the numbers are right.

use super::fixture::Fixture;
use crate::docs::Purpose;
use crate::risk::{Marker, RustUse};

#[test]
fn the_history_counts_commits_merges_people_and_the_files_that_are_left() {
    let fixture = Fixture::new();
    fixture
        .write(b"src/hot.rs", "1\n")
        .write(b"gone.rs", "1\n2\n3\n4\n5\n")
        .write(b"Cargo.lock", "1\n")
        .commit_by("ada");
    fixture.git(["checkout", "--quiet", "-b", "side"]);
    fixture.write(b"src/side.rs", "1\n").commit_by("bob");
    fixture.git(["checkout", "--quiet", "main"]);
    fixture
        .write(b"src/hot.rs", "2\n")
        .write(b"Cargo.lock", "2\n")
        .commit_by("ada");
    std::fs::remove_file(fixture.path().join("gone.rs")).unwrap();
    fixture.commit_by("cyd");
    fixture.git([
        "-c",
        "user.name=ada",
        "-c",
        "user.email=ADA@example.org",
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "m",
        "side",
    ]);
    let history = fixture.review().1.history;
    assert_eq!((history.commits, history.merges, history.changes), (5, 1, 7));
    assert_eq!((history.added, history.removed), (10, 7));
    assert_eq!(history.last.unwrap() - history.first.unwrap(), 3 * 86_400);
    let hot: Vec<_> = history
        .hot
        .iter()
        .map(|file| (file.path.as_str(), file.commits, file.added))
        .collect();
    assert_eq!(
        hot,
        [("src/hot.rs", 2, 2), ("src/side.rs", 1, 1)],
        "neither the deleted file nor the lock file"
    );
    let owners = &history.ownership;
    assert_eq!(
        (owners.authors, owners.bus_factor),
        (3, 1),
        "an address in capitals is the same person"
    );
    assert_eq!((owners.owners[0].name.as_str(), owners.owners[0].changes), ("ada", 5));
    assert_eq!(
        (owners.directories[0].path.as_str(), owners.directories[0].changes),
        (".", 4)
    );
    assert_eq!(
        (owners.directories[1].path.as_str(), owners.directories[1].authors),
        ("src", 2)
    );
}

#[test]
fn the_commit_s_mailmap_joins_two_addresses_of_one_person() {
    let fixture = Fixture::new();
    fixture
        .write(b"a", "1\n")
        .commit_by("ada")
        .write(b"a", "2\n")
        .commit_by("lovelace");
    assert_eq!(fixture.review().1.history.ownership.authors, 2);
    fixture
        .write(b".mailmap", "Ada <ada@example.org> <lovelace@example.org>\n")
        .commit_by("ada");
    let owners = fixture.review().1.history.ownership;
    assert_eq!((owners.authors, owners.owners[0].commits), (1, 3));
}

#[test]
fn the_structure_counts_files_lines_and_tests_by_language() {
    let fixture = Fixture::new();
    fixture
        .write(b"src/a/b/c.rs", "1\n2\n3\n")
        .write(b"src/a.rs", "1\n")
        .write(b"tests/t.rs", "1\n2");
    fixture
        .write(b"vendor/v.rs", "1\n".repeat(100))
        .write(b"README.md", "x\n")
        .write(b"empty.py", "")
        .commit();
    let structure = fixture.review().1.structure;
    let listing = &structure.listing;
    assert_eq!(
        (listing.files, listing.bytes, listing.directories),
        (6, 6 + 2 + 3 + 200 + 2, 5)
    );
    assert_eq!(
        (
            structure.lines,
            structure.code,
            structure.tests,
            structure.tests_permille
        ),
        (107, 6, 2, 333)
    );
    let rust = &structure.languages[0];
    assert_eq!((rust.name.as_str(), rust.files, rust.lines), ("Rust", 4, 106));
    let deepest: Vec<_> = listing
        .deepest
        .iter()
        .map(|one| (one.path.as_str(), one.depth, one.files))
        .collect();
    assert_eq!(
        deepest,
        [("src/a/b", 3, 1), ("src", 1, 1), ("tests", 1, 1), ("vendor", 1, 1)]
    );
    assert_eq!(listing.largest[0].path, "vendor/v.rs");
}

#[test]
fn the_risk_scan_tells_code_from_tests_and_prose() {
    let fixture = Fixture::new();
    let source = "// TODO: one\nfn a() {\n    b().unwrap();\n    c().expect(\"x.unwrap()\");\n    unsafe { d() }\n    panic!()\n}\n\
                  #[cfg(test)]\nmod tests {\n    // HACK\n    fn t() { e().unwrap() }\n}\n";
    fixture
        .write(b"src/lib.rs", source)
        .write(b"NOTES.md", "TODO: prose is no code\n");
    let sign = |sign: &str| sign.repeat(7);
    let conflict = format!("{} a\n1\n{}\n2\n{} b\n", sign("<"), sign("="), sign(">"));
    fixture
        .write(b"c.py", conflict)
        .write(b"title.rst", format!("Title\n{}\n", sign("=")));
    fixture
        .write(b"deploy/id", format!("-----BEGIN {} KEY-----\n", "RSA PRIVATE"))
        .commit();
    let (_, findings, text) = fixture.review();
    let scan = &findings.risk.scan;
    assert_eq!(
        scan.rust,
        RustUse {
            lines: 6,
            unwrap: 1,
            expect: 1,
            panic: 1,
            unsafe_code: 1
        }
    );
    assert_eq!((scan.rust_tests.lines, scan.rust_tests.unwrap), (4, 1));
    assert_eq!(
        scan.markers.iter().collect::<Vec<_>>(),
        [(&Marker::Hack, &1), (&Marker::Todo, &1)]
    );
    assert_eq!((scan.conflicts.count, scan.conflicts.first[0].line), (1, 1));
    assert_eq!((scan.secrets.count, scan.secrets.first[0].test), (1, false));
    let now = text.split("Before the next larger change").next().unwrap();
    assert!(
        now.contains("like a secret, the first at `deploy/id:1`") && now.contains("merge conflict"),
        "{text}"
    );
}

#[test]
fn dependencies_are_counted_compared_and_looked_up_in_the_nearest_lock_file() {
    let fixture = Fixture::new();
    fixture
        .write(b"Cargo.toml", "[workspace.dependencies]\na = \"1\"\n")
        .write(b"Cargo.lock", "");
    fixture.write(
        b"x/Cargo.toml",
        "[dependencies]\na = { workspace = true }\nb = \"*\"\nc = \"1\"\n[dev-dependencies]\nc = \"2\"\nd = \"1\"\n",
    );
    fixture
        .write(b"y/Cargo.toml", "[dependencies]\nd = \"2\"\n")
        .write(b"web/package.json", "{\"dependencies\": {\"e\": \"^1\"}}");
    fixture.write(b"web/node_modules/f/package.json", "{").commit();
    let found = fixture.review().1.dependencies;
    assert_eq!(
        (found.manifests, found.vendored, found.malformed, found.direct),
        (4, 1, 0, 5)
    );
    assert_eq!(
        (found.unpinned, found.twice, found.unlocked, found.at_odds),
        (1, 1, 1, 1)
    );
    assert_eq!(
        (
            found.first_at_odds[0].name.as_str(),
            found.first_at_odds[0].requirements.join(" ")
        ),
        ("d", "1 2".into())
    );
    assert_eq!(
        (
            found.shown[0].path.as_str(),
            found.shown[0].direct,
            found.shown[0].development
        ),
        ("x/Cargo.toml", 3, 1)
    );
    assert_eq!(found.shown[0].lock.as_deref(), Some("Cargo.lock"));
}

#[test]
fn the_docs_agent_finds_the_customary_files_and_links_that_lead_nowhere() {
    let fixture = Fixture::new();
    fixture.write(
        b"README.md",
        "[a](docs/) [b](docs/x.md#y) [c](docs/none.md) [d](https://example.org) [e](../../issues)\n",
    );
    fixture
        .write(b"docs/x.md", "[up](../README.md) ![i](/gone.png)\n")
        .write(b"LICENSE", "MIT\n");
    fixture
        .write(b"src/lib.rs", "/// Doc.\npub fn a() {}\npub fn b() {}\n")
        .commit();
    let docs = fixture.review().1.docs;
    assert_eq!((docs.markdown, docs.links, docs.broken.count), (2, 5, 2));
    let broken: Vec<_> = docs.broken.first.iter().map(|one| one.written.as_str()).collect();
    assert_eq!(broken, ["docs/none.md", "/gone.png"]);
    assert_eq!(
        docs.customs.iter().map(|one| one.purpose).collect::<Vec<_>>(),
        [Purpose::Readme, Purpose::Licence]
    );
    assert_eq!((docs.items, docs.documented, docs.documented_permille), (2, 1, 500));
}

#[test]
fn a_file_that_is_hot_and_dangerous_is_named_by_what_both_agents_say() {
    let fixture = Fixture::new();
    for round in 0..4 {
        let body = format!("fn a() {{ b({round}).unwrap() }}\n");
        fixture.write(b"src/core.rs", body.repeat(6)).commit();
    }
    let (_, _, text) = fixture.review();
    assert!(
        text.contains("`src/core.rs` changes often (4 commits), and 6 calls in it can panic."),
        "{text}"
    );
}

#[test]
fn the_findings_survive_json_and_two_reviews_of_a_commit_are_the_same_bytes() {
    let fixture = Fixture::new();
    fixture
        .write(b"a.rs", "// TODO\n")
        .write(b"Cargo.toml", "[dependencies]\na = \"1\"\n")
        .commit();
    let (_, findings, text) = fixture.review();
    let json = serde_json::to_string(&findings).unwrap();
    let back: crate::judgement::Findings = serde_json::from_str(&json).unwrap();
    assert_eq!(back, findings);
    assert_eq!(serde_json::to_string(&fixture.review().1).unwrap(), json);
    assert_eq!(fixture.review().2, text);
    assert!(
        !text.contains(fixture.path().to_str().unwrap()),
        "no path of the machine"
    );
}
