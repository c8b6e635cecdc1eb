//! A child process: watched line by line, stopped and killed as hard as a machine would.

use std::{
    fmt, fs,
    io::{self, BufRead as _, BufReader, Read, Write as _},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Instant,
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use super::PATIENCE;

/// A running child. Dropping it kills it.
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// The built example `name` of this package, as a command.
pub fn example(name: &str) -> Command {
    built(&["examples", name])
}

/// The built binary `name` of this workspace, as a command.
pub fn binary(name: &str) -> Command {
    built(&[name])
}

/// Tests run from `target/<profile>/deps`, beside what they test.
fn built(parts: &[&str]) -> Command {
    let this = std::env::current_exe().expect("the path of this test");
    let deps = this
        .ancestors()
        .find(|path| path.ends_with("deps"))
        .expect("tests run from a folder `deps`");
    let path: PathBuf = deps.with_file_name("").join(parts.iter().collect::<PathBuf>());
    assert!(
        path.exists(),
        "{} is not built: run `cargo build --workspace --examples --bins`",
        path.display()
    );
    Command::new(path)
}

impl Process {
    /// Starts `command` with its input and output piped to this process.
    pub fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        let (sender, lines) = channel();
        follow(child.stdout.take(), sender.clone());
        follow(child.stderr.take(), sender);
        Self {
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line of output, standard or error, that contains `text`, and gives it.
    ///
    /// # Errors
    /// What the process has said so far, if it ends or goes silent before.
    pub fn line(&mut self, text: &str) -> Result<String, String> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.lines.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.contains(text) {
                        return Ok(line);
                    }
                }
                Err(end) => {
                    let how = if end == RecvTimeoutError::Timeout {
                        "does not say"
                    } else {
                        "ended without saying"
                    };
                    return Err(format!(
                        "{} {how} `{text}`; it said:\n{}",
                        self.id(),
                        self.seen.join("\n")
                    ));
                }
            }
        }
    }

    /// As [`line`](Self::line); the test fails where it does not come.
    pub fn wait_for(&mut self, text: &str) -> String {
        self.line(text).unwrap_or_else(|fault| panic!("{fault}"))
    }

    /// Every line so far, of standard output and error.
    pub fn said(&mut self) -> &[String] {
        self.seen.extend(self.lines.try_iter());
        &self.seen
    }

    /// Writes a line to its standard input.
    pub fn say(&mut self, line: &str) {
        self.try_say(line).expect("the process reads");
    }

    /// As [`say`](Self::say), to a process that may be dead.
    ///
    /// # Errors
    /// That of the pipe, if nobody reads any more.
    pub fn try_say(&mut self, line: &str) -> io::Result<()> {
        let input = self.child.stdin.as_mut().expect("input is piped");
        writeln!(input, "{line}")
    }

    /// Ends its standard input.
    pub fn hang_up(&mut self) {
        drop(self.child.stdin.take());
    }

    /// Waits until it ends by itself; gives how, and everything it has said.
    pub fn wait(mut self) -> (ExitStatus, Vec<String>) {
        self.hang_up();
        self.seen.extend(self.lines.iter());
        (self.child.wait().expect("a child"), std::mem::take(&mut self.seen))
    }

    /// Kills it and what it has started with SIGKILL, and waits until it is gone.
    pub fn kill(&mut self) -> ExitStatus {
        if let Ok(Some(ended)) = self.child.try_wait() {
            return ended;
        }
        self.signal(Signal::STOP); // nothing may be started while its children are looked up
        for pid in self.family() {
            let _ = kill_process(pid, Signal::KILL); // one that is gone is as good as killed
        }
        self.child.wait().expect("a child")
    }

    /// Stops it and what it has started with SIGSTOP; it is stopped when this returns.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        let stopped = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), stopped).expect("a child");
        for pid in self.family().into_iter().skip(1) {
            let _ = kill_process(pid, Signal::STOP);
        }
    }

    /// Lets it and what it has started go on.
    pub fn resume(&self) {
        for pid in self.family().into_iter().rev() {
            let _ = kill_process(pid, Signal::CONT);
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a child that was not waited for");
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Itself first, then every process that descends from it.
    fn family(&self) -> Vec<Pid> {
        let mut family = vec![self.pid()];
        let everybody = processes();
        let mut next = 0;
        while let Some(parent) = family.get(next) {
            let parent = parent.as_raw_pid();
            let children = everybody.iter().filter(|(_, of)| *of == parent);
            family.extend(children.filter_map(|(pid, _)| Pid::from_raw(*pid)));
            next += 1;
        }
        family
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id())
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}

fn follow(output: Option<impl Read + Send + 'static>, to: Sender<String>) {
    let mut output = BufReader::new(output.expect("output is piped"));
    thread::spawn(move || {
        let mut line = Vec::new();
        while output.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
            let _ = to.send(String::from_utf8_lossy(&line).trim_end().to_owned()); // read on, so that it never blocks
            line.clear();
        }
    });
}

/// Every process with its parent: from `/proc` where there is one, else from `ps`.
fn processes() -> Vec<(i32, i32)> {
    let stat = |entry: fs::DirEntry| {
        let text = fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((entry.file_name().to_str()?.parse().ok()?, parent))
    };
    if let Ok(entries) = fs::read_dir("/proc") {
        return entries.flatten().filter_map(stat).collect();
    }
    let ps = Command::new("ps")
        .args(["-A", "-o", "pid=,ppid="])
        .output()
        .expect("`ps` lists processes");
    let pair = |line: &str| {
        let mut ids = line.split_whitespace().map(str::parse);
        Some((ids.next()?.ok()?, ids.next()?.ok()?))
    };
    String::from_utf8_lossy(&ps.stdout).lines().filter_map(pair).collect()
}
