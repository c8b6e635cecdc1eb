//! A folder with a Git repository, a store, and the main job run on them.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write as _,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use neuron::{
    Ledger, Pattern,
    store::{Access, Options, Select, verify},
    vocabulary::{
        Message as _,
        step::{StepCompleted, StepStarted},
    },
};
use neuron_workspace::{Process, example};
use tempfile::TempDir;

/// What one command said and how it ended.
pub(super) struct Said {
    pub(super) code: Option<i32>,
    pub(super) aborted: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

pub(super) struct World {
    folder: TempDir,
    /// Seconds of the next commit, so that each has an id of its own.
    at: Cell<u64>,
}

impl World {
    /// A folder without a repository.
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            at: Cell::new(1_700_000_000),
        }
    }

    /// A repository without commits.
    pub(super) fn empty() -> Self {
        let world = Self::new();
        fs::create_dir(world.repository()).unwrap();
        world.git(&["init", "--quiet", "--initial-branch=main"]);
        world
    }

    /// A small repository in which each agent finds something.
    pub(super) fn small() -> Self {
        let world = Self::empty();
        world.write("src/lib.rs", "// TODO: all of it\npub fn a() { b().unwrap() }\n");
        world.write("README.md", "# Small\n\n[nowhere](none.md)\n");
        world.write(
            "Cargo.toml",
            "[package]\nname = \"small\"\n[dependencies]\nserde = \"*\"\n",
        );
        world.commit();
        world.write("src/lib.rs", "/// One.\npub fn a() { b().unwrap() }\nfn b() {}\n");
        world.commit();
        world
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn repository(&self) -> PathBuf {
        self.folder().join("repository")
    }

    pub(super) fn store(&self) -> PathBuf {
        self.folder().join("review.db")
    }

    pub(super) fn write(&self, name: &str, content: &str) {
        let path = self.repository().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(super) fn commit(&self) {
        self.git(&["add", "--all"]);
        self.commit_index();
    }

    pub(super) fn commit_index(&self) {
        self.at.set(self.at.get() + 86_400);
        let (name, email) = ("user.name=ada", "user.email=ada@example.org");
        self.git(&["-c", name, "-c", email, "commit", "--quiet", "-m", "change"]);
    }

    /// Puts an entry into the index alone: a name or a kind of file that not every work tree can hold.
    pub(super) fn entry(&self, mode: &str, id: &str, name: &[u8]) {
        let mut git = self.command(&["update-index", "-z", "--index-info"]);
        let mut git = git.stdin(Stdio::piped()).spawn().unwrap();
        let mut input = git.stdin.take().unwrap();
        input
            .write_all(&[format!("{mode} {id}\t").as_bytes(), name, b"\0"].concat())
            .unwrap();
        drop(input);
        assert!(git.wait().unwrap().success());
    }

    /// Stores a blob and gives its id.
    pub(super) fn blob(&self, content: &str) -> String {
        let path = self.folder().join("blob");
        fs::write(&path, content).unwrap();
        self.git(&["hash-object", "-w", path.to_str().unwrap()])
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        let output = self.command(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn command(&self, args: &[&str]) -> Command {
        let date = format!("{} +0000", self.at.get());
        let mut git = Command::new("git");
        git.current_dir(self.repository()).args(args);
        git.envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)]);
        git.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")]);
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            git.env_remove(name);
        }
        git
    }

    /// Reviews the repository.
    pub(super) fn review(&self, args: &[&str]) -> Said {
        self.review_at(&self.repository(), args)
    }

    /// Begins to review the repository.
    pub(super) fn start(&self, args: &[&str]) -> Process {
        Process::start(self.job(&self.repository(), args))
    }

    fn job(&self, repository: &Path, args: &[&str]) -> Command {
        let mut command = example("repo_review");
        command.current_dir(self.folder()).arg(repository).args(args);
        command
    }

    /// Reviews another repository with the same store.
    pub(super) fn review_at(&self, repository: &Path, args: &[&str]) -> Said {
        let Output { status, stdout, stderr } = self.job(repository, args).output().unwrap();
        Said {
            code: status.code(),
            aborted: status.signal() == Some(rustix::process::Signal::ABORT.as_raw()),
            stdout: String::from_utf8(stdout).unwrap(),
            stderr: String::from_utf8(stderr).unwrap(),
        }
    }

    /// The same, and it goes well.
    pub(super) fn reviewed(&self) -> Said {
        let said = self.review(&[]);
        assert_eq!(said.code, Some(0), "{}{}", said.stdout, said.stderr);
        said
    }

    /// The same, aborted after its `commit`th commit.
    pub(super) fn aborted(&self, commit: u64) -> Said {
        self.review(&["--crash-after", &commit.to_string()])
    }

    /// The exported review.
    pub(super) fn text(&self) -> String {
        fs::read_to_string(self.folder().join("review.md")).unwrap()
    }

    /// The store as anybody reads it who opens it; `None` before a process has made it whole.
    pub(super) fn ledger(&self) -> Option<Ledger> {
        let reading = Options {
            access: Access::Read,
            ..Options::default()
        };
        self.store()
            .exists()
            .then(|| Ledger::open(self.store(), reading).unwrap())
    }

    /// The last `pos` of the store; 0 if there is none.
    pub(super) fn last(&self) -> u64 {
        self.ledger().map_or(0, |ledger| ledger.store().last().unwrap().0)
    }

    /// The store is what was written, and each type stands where the catalogue says.
    pub(super) fn assert_sound(&self) {
        let ledger = self.ledger().unwrap();
        verify::verify(&**ledger.store()).unwrap();
        crate::wire::assert_catalogued(&ledger);
    }

    /// Every step has one answer; what had none at `crash` was begun once more, and nothing else was.
    pub(super) fn assert_only_what_was_in_flight_ran_again(&self, crash: u64) {
        let ledger = self.ledger().unwrap();
        let steps = ledger.read(Select::Pattern(Pattern::new("agent.*.steps").unwrap()));
        let (mut answered, mut begun_again) = (BTreeMap::<_, Vec<u64>>::new(), BTreeMap::<_, usize>::new());
        for envelope in steps.envelopes().map(Result::unwrap) {
            if let Some(completed) = StepCompleted::read(&envelope).unwrap() {
                answered.entry(completed.key).or_default().push(envelope.pos);
            } else if let Some(started) = StepStarted::read(&envelope).unwrap()
                && envelope.pos > crash
            {
                *begun_again.entry(started.key).or_default() += 1;
            }
        }
        let twice: Vec<_> = answered.iter().filter(|(_, answers)| answers.len() != 1).collect();
        assert!(twice.is_empty(), "answered more than once: {twice:?}");
        let open: BTreeSet<_> = answered
            .iter()
            .filter(|(_, answers)| answers[0] > crash)
            .map(|(key, _)| key)
            .collect();
        assert_eq!(begun_again.keys().collect::<BTreeSet<_>>(), open);
        assert!(begun_again.values().all(|times| *times == 1), "{begun_again:?}");
        assert_eq!(answered.len(), super::STEPS);
    }
}
