//! A repository in a directory of its own, with fixed people and dates.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::git::{GitError, Progress, Reader, Repository, Subject};
use crate::judgement::Findings;
use crate::{dependencies, docs, history, judgement, report, risk, structure};

pub(super) struct Fixture {
    dir: TempDir,
    /// Seconds of the next commit: each is a day later, so that the log has an order.
    at: std::cell::Cell<i64>,
}

impl Fixture {
    pub(super) fn new() -> Self {
        let fixture = Self {
            dir: tempfile::tempdir().unwrap(),
            at: std::cell::Cell::new(1_700_000_000),
        };
        std::fs::create_dir(fixture.path()).unwrap();
        fixture.git(["init", "--quiet", "--initial-branch=main"]);
        fixture
    }

    pub(super) fn path(&self) -> PathBuf {
        self.dir.path().join("repository")
    }

    /// A path beside the repository.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Writes a file of the work tree. The name is bytes.
    pub(super) fn write(&self, name: &[u8], content: impl AsRef<[u8]>) -> &Self {
        let path = self.path().join(os(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// Commits the whole work tree in the name of `author`.
    pub(super) fn commit_by(&self, author: &str) -> &Self {
        self.git(["add", "--all"]);
        self.at.set(self.at.get() + 86_400);
        let (name, email) = (
            format!("user.name={author}"),
            format!("user.email={author}@example.org"),
        );
        self.git([
            "-c",
            &name,
            "-c",
            &email,
            "commit",
            "--quiet",
            "--allow-empty",
            "-m",
            "change",
        ]);
        self
    }

    pub(super) fn commit(&self) -> &Self {
        self.commit_by("ada")
    }

    /// Puts an entry into the index that no work tree could hold portably, and commits it.
    pub(super) fn commit_entry(&self, mode: &str, id: &str, name: &str) -> &Self {
        self.git(["update-index", "--add", "--cacheinfo", &format!("{mode},{id},{name}")]);
        self.at.set(self.at.get() + 86_400);
        self.git([
            "-c",
            "user.name=ada",
            "-c",
            "user.email=ada@example.org",
            "commit",
            "--quiet",
            "-m",
            "entry",
        ]);
        self
    }

    /// Stores a blob and gives its id.
    pub(super) fn blob(&self, content: &[u8]) -> String {
        let mut command = self.command(["hash-object", "-w", "--stdin"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(content).unwrap();
        let output = child.wait_with_output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(super) fn git<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Reviews the repository; gives the findings and the text.
    pub(super) fn review(&self) -> (Subject, Findings, String) {
        review(&self.path()).unwrap()
    }

    fn command<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Command {
        let date = format!("{} +0000", self.at.get());
        let mut command = Command::new("git");
        command.current_dir(self.path()).args(args);
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command.env("GIT_AUTHOR_DATE", &date).env("GIT_COMMITTER_DATE", &date);
        command
            .env_remove("GIT_DIR")
            .env_remove("GIT_WORK_TREE")
            .env_remove("GIT_INDEX_FILE");
        command
    }
}

pub(super) fn review(path: &Path) -> Result<(Subject, Findings, String), GitError> {
    let repository = Repository::open(path)?;
    let subject = repository.subject()?;
    let findings = findings(&repository.reader(), &subject)?;
    let text = report::review(&subject, &findings, &judgement::weigh(&findings));
    Ok((subject, findings, text))
}

/// What the agents find, without agents: one after the other.
pub(super) fn findings(reader: &Reader, subject: &Subject) -> Result<Findings, GitError> {
    let quiet: Progress<'_> = &mut |_| Ok(());
    let walk = history::walk(reader, subject, quiet)?;
    let hot = history::present(reader, subject, walk.candidates.clone(), quiet)?;
    let ownership = history::measure(&walk);
    let listing = structure::list(reader, subject, quiet)?;
    let lines = structure::count_lines(reader, subject, quiet)?;
    let manifests = dependencies::find(reader, subject, quiet)?;
    let reading = docs::read(reader, subject, quiet)?;
    let broken = docs::check(reader, subject, &reading.links, quiet)?;
    Ok(Findings {
        history: history::summarise(&walk, ownership, hot),
        structure: structure::summarise(listing, &lines),
        risk: risk::rank(risk::scan(reader, subject, quiet)?),
        dependencies: dependencies::compare(&manifests, &dependencies::read(reader, &manifests, quiet)?),
        docs: docs::summarise(reading, broken),
    })
}

#[cfg(unix)]
fn os(name: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    OsStr::from_bytes(name).into()
}

#[cfg(not(unix))]
fn os(name: &[u8]) -> PathBuf {
    std::str::from_utf8(name).unwrap().into()
}
