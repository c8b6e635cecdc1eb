//! The attributes as a user's crate sees them: what compiles, what does not, and what the compiler says then.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The release whose words stand in the `.stderr` files; another one may say the same otherwise.
const COMPILER: &str = "rustc 1.95.";

/// One file per mistake, named by it; what the compiler says stands beside it.
#[test]
fn a_mistake_does_not_compile_and_the_message_says_what_to_write() {
    let cases = trybuild::TestCases::new();
    let known = compiler().starts_with(COMPILER);
    for entry in fs::read_dir(root().join("tests/ui/fail")).expect("a folder") {
        // Relative, for so are the paths in what the compiler says.
        let file = Path::new("tests/ui/fail").join(entry.expect("a file").file_name());
        if file.extension().is_some_and(|it| it == "rs") {
            let said = fs::read_to_string(root().join(&file).with_extension("stderr")).unwrap_or_default();
            if known || !said.contains("error[E") {
                cases.compile_fail(file);
            } else {
                eprintln!("skipped: {} is told in the words of {COMPILER}x", file.display());
            }
        }
    }
}

#[test]
fn what_a_user_may_write_compiles_in_both_editions() {
    let crate_of_files = copied("accepted");
    copy_folder(&root().join("tests/ui/pass"), &crate_of_files.join("src/bin"));
    check(&crate_of_files);
    let manifest = crate_of_files.join("Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let (newest, older) = ("edition = \"2024\"", "edition = \"2021\"");
    assert!(text.contains(newest), "{text}");
    fs::write(&manifest, text.replace(newest, older)).expect("a written manifest");
    check(&crate_of_files);
}

#[test]
fn a_crate_that_depends_on_orchestrator_alone_has_all_it_needs() {
    check(&copied("alone"));
}

#[test]
fn a_crate_may_give_the_dependency_another_name() {
    check(&copied("renamed"));
}

/// Compiles a crate whose manifest is its own: it names nothing that a user would not name.
fn check(folder: &Path) {
    let output = Command::new(env!("CARGO"))
        .args(["check", "--offline", "--quiet", "--target-dir"])
        .arg(root().join("target"))
        .current_dir(folder)
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A copy of a fixture, so that nothing is written beside the sources, with the versions that this workspace has locked.
fn copied(fixture: &str) -> PathBuf {
    let (from, to) = (
        root().join("tests/fixtures").join(fixture),
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(fixture),
    );
    if to.exists() {
        fs::remove_dir_all(&to).expect("an old copy that can be removed");
    }
    copy_folder(&from, &to);
    let manifest = to.join("Cargo.toml");
    let relative = fs::read_to_string(&manifest).expect("a manifest");
    fs::write(&manifest, relative.replace("../../..", &root().to_string_lossy())).expect("a written manifest");
    fs::copy(root().join("Cargo.lock"), to.join("Cargo.lock")).expect("a copied lock");
    to
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new folder");
    for entry in fs::read_dir(from)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
    {
        let target = to.join(entry.file_name().expect("a name"));
        if entry.is_dir() {
            copy_folder(&entry, &target);
        } else {
            fs::copy(&entry, &target).expect("a copied file");
        }
    }
}

fn compiler() -> String {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().expect("rustc runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
