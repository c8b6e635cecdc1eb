//! Whatever a repository may hold, and whatever is none.

use super::fixture::{Fixture, findings, review};
use crate::git::{GitError, READ_MAX, Repository};

#[test]
fn a_repository_without_commits_is_reviewed_and_told_what_to_do() {
    let (subject, _, text) = Fixture::new().review();
    assert_eq!(subject.commit, None);
    assert!(text.contains("Commit something"), "{text}");
}

#[test]
fn a_commit_without_files_is_reviewed() {
    let fixture = Fixture::new();
    let (_, findings, text) = fixture.commit().review();
    assert_eq!((findings.history.commits, findings.structure.listing.files), (1, 0));
    assert!(text.contains("Nothing stands out"), "{text}");
}

#[test]
fn a_directory_that_is_no_repository_is_named_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let error = review(dir.path()).unwrap_err();
    assert!(matches!(error, GitError::NoRepository { .. }), "{error}");
    let message = error.to_string();
    assert!(
        message.contains(dir.path().to_str().unwrap()) && message.contains("git init"),
        "{message}"
    );

    let error = review(&dir.path().join("nowhere")).unwrap_err();
    assert!(matches!(error, GitError::NoDirectory(_)), "{error}");
}

#[test]
fn a_bare_clone_and_a_directory_within_give_the_same_review() {
    let fixture = Fixture::new();
    fixture
        .write(b"src/lib.rs", "pub fn f() {}\n")
        .write(b"README.md", "[x](src/lib.rs)\n")
        .commit();
    let bare = fixture.beside("bare.git");
    fixture.git(["clone", "--quiet", "--bare", ".", bare.to_str().unwrap()]);
    let (_, _, text) = fixture.review();
    assert_eq!(review(&bare).unwrap().2, text);
    assert_eq!(review(&fixture.path().join("src")).unwrap().2, text);
}

#[test]
fn the_review_is_of_the_commit_and_not_of_the_work_tree_or_the_user_s_taste() {
    let fixture = Fixture::new();
    fixture
        .write(b"a.rs", "fn a() {}\n")
        .commit()
        .write(b"b.rs", "fn a() {}\n")
        .commit();
    let (subject, _, text) = fixture.review();
    fixture
        .write(b"a.rs", "// TODO\n")
        .write(b".mailmap", "Eve <ada@example.org>\n")
        .write(b".gitattributes", "*.rs -diff\n");
    fixture.git(["config", "color.ui", "always"]);
    fixture.git(["config", "log.showSignature", "true"]);
    fixture.git(["config", "diff.renames", "copies"]);
    fixture.git(["config", "diff.noprefix", "true"]);
    fixture.git(["config", "log.showRoot", "false"]);
    assert_eq!(fixture.review(), (subject.clone(), fixture.review().1, text.clone()));

    // A later commit does not change what a subject means.
    fixture.commit();
    let repository = Repository::open(&fixture.path()).unwrap();
    let findings = findings(&repository.reader(), &subject).unwrap();
    assert_eq!(
        crate::report::review(&subject, &findings, &crate::judgement::weigh(&findings)),
        text
    );
}

#[cfg(unix)]
#[test]
fn names_that_are_not_utf_8_are_shown_escaped() {
    let fixture = Fixture::new();
    fixture
        .write(b"caf\xe9\n|`.rs", "// FIXME: name\nfn a() { x.unwrap() }\n")
        .write(b"zz\xff/b.md", "[x](c.md)\n");
    let (_, findings, text) = fixture.commit().review();
    assert_eq!(findings.risk.scan.marked[0].place.path, "caf\\xe9\\x0a|`.rs");
    assert_eq!(findings.docs.broken.first[0].place.path, "zz\\xff/b.md");
    assert_eq!(findings.history.hot.len(), 2);
    assert!(text.contains("``caf\\xe9\\x0a\\|`.rs``"), "{text}");
}

#[test]
fn a_shallow_clone_is_reviewed_and_called_shallow() {
    let fixture = Fixture::new();
    for content in ["1\n", "2\n", "3\n"] {
        fixture.write(b"a.txt", content).commit();
    }
    let clone = fixture.beside("clone");
    let address = format!("file://{}", fixture.path().display());
    fixture.git(["clone", "--quiet", "--depth", "1", &address, clone.to_str().unwrap()]);
    let (subject, findings, text) = review(&clone).unwrap();
    assert!(subject.shallow);
    assert_eq!(findings.history.commits, 1);
    assert!(text.contains("This clone is shallow"), "{text}");
    assert!(!fixture.review().0.shallow);
}

#[test]
fn submodules_and_symbolic_links_are_counted_and_not_followed() {
    let fixture = Fixture::new();
    let target = fixture.blob(b"/etc/passwd");
    fixture
        .write(b"README.md", "[in](sub/file.md) [out](none.md)\n")
        .commit();
    fixture.commit_entry("160000", &"1".repeat(40), "sub");
    fixture.commit_entry("120000", &target, "link.rs");
    let (_, findings, text) = fixture.review();
    let listing = &findings.structure.listing;
    assert_eq!((listing.files, listing.symlinks, listing.submodules), (1, 1, 1));
    assert_eq!(listing.first_submodules[0].path, "sub");
    assert_eq!(findings.risk.scan.coverage.files, 1);
    assert_eq!(
        findings.docs.broken.count, 1,
        "what a submodule holds is not known to be missing"
    );
    assert!(
        text.contains("1 symbolic link (not followed); 1 submodule (not entered)"),
        "{text}"
    );
}

#[test]
fn binary_files_and_huge_lines_are_named_and_a_long_file_is_read_to_the_bound() {
    let fixture = Fixture::new();
    let long = usize::try_from(READ_MAX).unwrap() + 1000;
    fixture
        .write(b"image.png", b"\x89PNG\0\0")
        .write(b"min.js", "x".repeat(600_000));
    fixture
        .write(
            b"big.rs",
            [&b"//".repeat(long / 2)[..], b"\n// TODO: past the bound\n"].concat(),
        )
        .commit();
    let (_, findings, text) = fixture.review();
    let scan = &findings.risk.scan;
    assert_eq!((scan.binaries.count, scan.binaries.first[0].bytes), (1, 6));
    assert_eq!(scan.long_lines.count, 2);
    assert_eq!((scan.coverage.cut, scan.markers.len()), (1, 0));
    assert!(
        text.contains("At a bound: 1 files read only to their first 1,048,576 bytes by the risk agent"),
        "{text}"
    );
}

#[test]
fn a_malformed_manifest_is_a_finding() {
    let fixture = Fixture::new();
    fixture
        .write(b"Cargo.toml", "[dependencies]\na = \"1\"\na = \"2\"\n")
        .write(b"web/package.json", "{\"dependencies\": ");
    fixture
        .write(b"requirements.txt", b"\xff\xfe")
        .write(b"pom.xml", "<project><dependency>")
        .commit();
    let (_, findings, text) = fixture.review();
    assert_eq!(findings.dependencies.malformed, 4);
    assert_eq!(text.matches("cannot be read").count(), 4, "{text}");
}

#[test]
fn a_damaged_repository_is_an_error_that_names_the_command() {
    let fixture = Fixture::new();
    fixture.write(b"a.txt", "1\n").commit().write(b"a.txt", "2\n").commit();
    let id = fixture.git(["rev-parse", "HEAD:a.txt"]);
    std::fs::remove_file(fixture.path().join(".git/objects").join(&id[..2]).join(&id[2..])).unwrap();
    let error = review(&fixture.path()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("`git log -z --numstat` failed") && message.contains(&id),
        "{message}"
    );
}

#[test]
fn a_reading_that_nobody_wants_any_more_stops_at_once() {
    let fixture = Fixture::new();
    fixture.write(b"a", "1\n").commit().write(b"a", "2\n").commit();
    let repository = Repository::open(&fixture.path()).unwrap();
    let mut seen = 0;
    let stop: crate::git::Progress<'_> = &mut |count| {
        seen = count;
        Err(GitError::Stopped)
    };
    let stopped = crate::history::walk(&repository.reader(), &repository.subject().unwrap(), stop);
    assert!(matches!(stopped, Err(GitError::Stopped)));
    assert_eq!(seen, 1);
}
