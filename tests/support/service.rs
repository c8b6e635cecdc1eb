//! Real servers, each an instance of its own on a free loopback port with a fresh data folder.
//!
//! None on a default port is ever touched. A server that is not installed fails the test with the package to install.

use std::{
    fs,
    io::{self, Read as _, Write as _},
    net::TcpStream,
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::geteuid;
use tempfile::TempDir;

use super::{PATIENCE, Process, free_port};

/// How often another port is tried when somebody took the free one first.
const PORTS_TRIED_MAX: usize = 5;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// NATS with `JetStream`.
    Nats,
    /// Redis, without persistence.
    Redis,
    /// `PostgreSQL`, a cluster of its own; user and database `postgres`, no password.
    Postgres,
}

/// A running server. Dropping it kills it and removes its data.
#[derive(Debug)]
pub struct Service {
    kind: Kind,
    port: u16,
    process: Process,
    folder: TempDir,
}

/// The user a server runs as when the tests run as root, because `PostgreSQL` refuses to.
struct Account {
    uid: u32,
    gid: u32,
}

impl Service {
    /// Starts a server and waits until it answers.
    pub fn start(kind: Kind) -> Self {
        let folder = tempfile::tempdir().expect("a folder for the server's data");
        kind.prepare(folder.path());
        let mut fault = String::new();
        for _ in 0..PORTS_TRIED_MAX {
            let port = free_port();
            match kind.launch(port, folder.path()) {
                Ok(process) => {
                    return Self {
                        kind,
                        port,
                        process,
                        folder,
                    }
                    .answering();
                }
                Err(said) => fault = said,
            }
        }
        panic!("{kind:?} did not start on any of {PORTS_TRIED_MAX} ports: {fault}");
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// What a client library connects to.
    pub fn url(&self) -> String {
        let port = self.port;
        match self.kind {
            Kind::Nats => format!("nats://127.0.0.1:{port}"),
            Kind::Redis => format!("redis://127.0.0.1:{port}"),
            Kind::Postgres => format!("postgres://postgres@127.0.0.1:{port}/postgres"),
        }
    }

    /// Stops it with SIGSTOP: connections stay open and nothing answers.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets it go on after [`pause`](Self::pause).
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Kills it with SIGKILL; port and data stay for [`restart`](Self::restart).
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it if it runs, starts it on the same port and data, and waits until it answers.
    pub fn restart(&mut self) {
        self.process.kill();
        let started = self.kind.launch(self.port, self.folder.path());
        self.process = started.unwrap_or_else(|said| panic!("{:?} did not start again: {said}", self.kind));
        self.ping(PATIENCE).expect("a server that says it is ready answers");
    }

    /// One round trip in the server's own protocol, on a new connection.
    ///
    /// # Errors
    /// What the connection says, `WouldBlock` or `TimedOut` if no answer comes within `limit`.
    pub fn ping(&self, limit: Duration) -> io::Result<()> {
        let stream = self.connect(limit)?;
        self.kind.ask(&stream)?;
        self.kind.answered(&stream)
    }

    /// A connection whose reads and writes give up after `limit`.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn connect(&self, limit: Duration) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(limit))?;
        stream.set_write_timeout(Some(limit))?;
        Ok(stream)
    }

    fn answering(self) -> Self {
        self.ping(PATIENCE).expect("a server that says it is ready answers");
        self
    }
}

impl Kind {
    /// Asks a question that the server answers at once.
    ///
    /// # Errors
    /// Why it could not be sent.
    pub fn ask(self, mut stream: &TcpStream) -> io::Result<()> {
        stream.write_all(match self {
            Self::Nats => b"CONNECT {\"verbose\":false}\r\nPING\r\n",
            Self::Redis => b"PING\r\n",
            Self::Postgres => b"\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0",
        })
    }

    /// Reads until the answer to [`ask`](Self::ask) has come.
    ///
    /// # Errors
    /// `WouldBlock` or `TimedOut` without an answer, `InvalidData` with another one.
    pub fn answered(self, mut stream: &TcpStream) -> io::Result<()> {
        let (start, end): (&[u8], &[u8]) = match self {
            Self::Nats => (b"INFO {", b"PONG\r\n"),
            Self::Redis => (b"+PONG", b"\r\n"),
            Self::Postgres => (b"R\0\0\0\x08\0\0\0\0", b"Z\0\0\0\x05I"), // authenticated … ready for a query
        };
        let mut answer = Vec::new();
        while !answer.ends_with(end) {
            let mut some = [0; 4096];
            let length = stream.read(&mut some)?;
            answer.extend_from_slice(&some[..length]);
            let common = start.len().min(answer.len());
            if length == 0 || answer[..common] != start[..common] {
                let text = String::from_utf8_lossy(&answer).into_owned();
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{self:?} answered {text:?}"),
                ));
            }
        }
        Ok(())
    }

    /// Makes what the server needs in its folder before its first start.
    fn prepare(self, folder: &Path) {
        if self != Self::Postgres {
            return;
        }
        if let Some(account) = Account::needed() {
            chown(folder, Some(account.uid), Some(account.gid)).expect("root may give its folder away");
        }
        let mut command = self.command("initdb", folder);
        command
            .args(["-A", "trust", "-U", "postgres", "-N", "--locale=C", "-D"])
            .arg(folder.join("data"));
        let made = command.output().expect("`initdb` runs");
        assert!(
            made.status.success(),
            "initdb: {}",
            String::from_utf8_lossy(&made.stderr)
        );
    }

    /// Starts the server; the error is what it said instead of that it is ready.
    fn launch(self, port: u16, folder: &Path) -> Result<Process, String> {
        let port = port.to_string();
        let (program, ready) = match self {
            Self::Nats => ("nats-server", "Server is ready"),
            Self::Redis => ("redis-server", "Ready to accept connections"),
            Self::Postgres => ("postgres", "database system is ready to accept connections"),
        };
        let mut command = self.command(program, folder);
        match self {
            Self::Nats => command.args(["-a", "127.0.0.1", "-p", &port, "-js", "-sd"]).arg(folder),
            Self::Redis => command
                .args([
                    "--bind",
                    "127.0.0.1",
                    "--port",
                    &port,
                    "--save",
                    "",
                    "--appendonly",
                    "no",
                    "--dir",
                ])
                .arg(folder),
            Self::Postgres => {
                command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
                command.args(["-c", "listen_addresses=127.0.0.1", "-p", &port])
            }
        };
        let mut process = Process::start(command);
        process.line(ready).map(|_| process)
    }

    fn command(self, program: &str, folder: &Path) -> Command {
        let path = find(program).unwrap_or_else(|| {
            let package = match self {
                Self::Nats => "nats-server",
                Self::Redis => "redis-server",
                Self::Postgres => "postgresql",
            };
            panic!("`{program}` is not installed: run `.ci/services` or install the package `{package}`")
        });
        let mut command = Command::new(path);
        command.current_dir(folder).env("LC_ALL", "C");
        if let Some(account) = Account::needed().filter(|_| self == Self::Postgres) {
            command.uid(account.uid).gid(account.gid);
        }
        command
    }
}

impl Account {
    fn needed() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let accounts = fs::read_to_string("/etc/passwd").expect("root reads the accounts");
        let fields = accounts.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let postgres = fields.filter(|it| it.first() == Some(&"postgres")).find_map(|it| {
            Some(Self {
                uid: it.get(2)?.parse().ok()?,
                gid: it.get(3)?.parse().ok()?,
            })
        });
        Some(postgres.expect("an account `postgres`: the server refuses to run as root"))
    }
}

/// A program in the path or where a distribution keeps it out of the path.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let asked = Command::new("pg_config").arg("--bindir").output().ok();
    let asked = asked.map(|out| PathBuf::from(String::from_utf8_lossy(&out.stdout).trim()));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .chain(asked);
    let mut places = folders
        .chain(versions.map(|version| version.path().join("bin")))
        .map(|it| it.join(program));
    places.find(|place| place.is_file())
}
