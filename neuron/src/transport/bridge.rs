//! The bridge: ephemeral topics of one store, carried between the processes that have it open.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, BufReader},
    net::{UnixListener, UnixStream},
    runtime::Handle,
    sync::Notify,
    time::timeout,
};

use super::{
    Inbox, Link, Transport,
    frame::{self, Frame, Hello},
    meeting::{Meeting, is_name},
    peer::{End, Outgoing, Peer},
};
use crate::{Envelope, Error, ErrorKind, Result, limits};

/// Carries ephemeral topics to the other processes that have the store open, over Unix sockets beside it.
///
/// Each process has one socket in the folder `<store>.bus` and sends to that of each other over a connection of its own:
/// a mesh without a centre, so that a process that dies or is stopped takes nothing along but itself. What it is too slow
/// for is dropped, and its listeners are told how much. A thread does the work, so it does not matter what the tasks of
/// the program do. Until the first ephemeral envelope is published or listened for, there is neither socket nor thread.
#[derive(Clone, Debug)]
pub struct Bridge {
    store: PathBuf,
}

impl Bridge {
    /// The bridge of the store at `path`.
    pub fn beside(path: impl AsRef<Path>) -> Self {
        Self {
            store: path.as_ref().to_owned(),
        }
    }
}

impl Transport for Bridge {
    fn join(&self, inbox: Weak<dyn Inbox>) -> Result<Box<dyn Link>, Error> {
        let (meeting, listener) = Meeting::open(&self.store)?;
        let meeting = Arc::new(meeting);
        let (tell, told) = mpsc::channel();
        let ours = meeting.clone();
        let thread = thread::Builder::new().name("neuron-bus".into()).spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(tell.send(Err(error))),
            };
            runtime.block_on(async {
                let listener = match UnixListener::from_std(listener) {
                    Ok(listener) => listener,
                    Err(error) => return drop(tell.send(Err(error))),
                };
                let mesh = Arc::new(Mesh {
                    meeting: ours,
                    inbox,
                    peers: Mutex::default(),
                    connections: AtomicUsize::new(0),
                    handle: Handle::current(),
                    stop: Notify::new(),
                });
                let _ = tell.send(Ok(mesh.clone()));
                drop(tell);
                tokio::select! {
                    () = mesh.stop.notified() => mesh.linger().await,
                    () = mesh.serve(listener) => {}
                }
            });
        });
        let begun = thread.and_then(|thread| {
            let told = told.recv().unwrap_or_else(|error| Err(io::Error::other(error)));
            told.map(|mesh| (thread, mesh))
        });
        let (thread, mesh) = begun.inspect_err(|_| meeting.leave())?;
        // Those that are here are known before the first word; those that come later make themselves known.
        match mesh.meeting.others() {
            Ok(others) => others.iter().for_each(|other| mesh.meet(other)),
            Err(error) => tracing::warn!(%error, "other processes of the store are met only as they publish"),
        }
        Ok(Box::new(Joined {
            mesh,
            thread: Some(thread),
        }))
    }
}

/// A process among the others.
struct Mesh {
    meeting: Arc<Meeting>,
    inbox: Weak<dyn Inbox>,
    peers: Mutex<Vec<Arc<Peer>>>,
    /// How many others send to this process now.
    connections: AtomicUsize,
    handle: Handle,
    stop: Notify,
}

impl Mesh {
    fn peers(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a process in, unless it is known: from now on it is sent what is published here.
    fn meet(self: &Arc<Self>, name: &str) {
        let Some(inbox) = self.inbox.upgrade() else { return };
        inbox.welcome(&mut |retained| {
            let mut peers = self.peers();
            if peers.iter().any(|known| known.name == name) {
                return;
            }
            if peers.len() >= limits::BRIDGE_PEERS_MAX {
                let max = limits::BRIDGE_PEERS_MAX;
                tracing::warn!(
                    socket = name,
                    "more than {max} processes have the store open: one is not sent to"
                );
                return;
            }
            let peer = Arc::new(Peer::new(name.to_owned()));
            for envelope in retained {
                peer.push(Outgoing::new(envelope, true), 0);
            }
            peers.push(peer.clone());
            self.handle.spawn(self.clone().send_to(peer));
        });
    }

    fn hello(&self) -> Hello {
        Hello {
            store: self.meeting.store.clone(),
            socket: self.meeting.name.clone(),
        }
    }

    async fn send_to(self: Arc<Self>, peer: Arc<Peer>) {
        let mut failed = 0;
        loop {
            let began = Instant::now();
            let end = match self.connect(&peer).await {
                Ok(stream) => peer.converse(stream, &self.hello()).await,
                Err(end) => end,
            };
            match end {
                End::Gone => break,
                End::Broken(error) => {
                    tracing::debug!(%error, socket = peer.name, "the connection to another process has ended");
                }
            }
            if began.elapsed() > limits::BRIDGE_RETRY_MAX {
                failed = 0;
            }
            // Mostly it has ended, which the next attempt shows.
            if failed > 0 {
                Peer::rest(failed).await;
            }
            failed += 1;
        }
        self.peers().retain(|known| known.name != peer.name);
    }

    async fn connect(&self, peer: &Peer) -> Result<UnixStream, End> {
        let path = self.meeting.reach(&peer.name).map_err(End::Broken)?;
        match UnixStream::connect(path).await {
            Ok(stream) => Ok(stream),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(End::Gone),
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.meeting.bury(&peer.name);
                Err(End::Gone)
            }
            Err(error) => Err(End::Broken(error)),
        }
    }

    /// Takes connections from others.
    async fn serve(self: &Arc<Self>, listener: UnixListener) {
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    if self.connections.fetch_add(1, Ordering::Relaxed) >= limits::BRIDGE_PEERS_MAX {
                        self.connections.fetch_sub(1, Ordering::Relaxed);
                        let max = limits::BRIDGE_PEERS_MAX;
                        tracing::warn!("more than {max} processes send ephemeral topics: one is not listened to");
                        continue;
                    }
                    let this = self.clone();
                    self.handle.spawn(async move {
                        if let Err(error) = this.listen_to(stream).await {
                            tracing::warn!(%error, "a connection of another process was closed");
                        }
                        this.connections.fetch_sub(1, Ordering::Relaxed);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "no connection can be taken from other processes; trying again");
                    Peer::rest(u32::MAX).await;
                }
            }
        }
    }

    /// Takes in what one other sends, until it ends.
    async fn listen_to(self: &Arc<Self>, stream: UnixStream) -> Result<(), Error> {
        let mut stream = BufReader::new(stream);
        let first = timeout(limits::BRIDGE_HELLO_WAIT, read(&mut stream)).await;
        let first = first.map_err(|_| Error::new(ErrorKind::Malformed, "it did not say who it is"))??;
        let hello = match first {
            None => return Ok(()),
            Some(Frame::Hello(hello)) => hello,
            Some(_) => return Err(Error::new(ErrorKind::Malformed, "it did not say first who it is")),
        };
        if hello.store != self.meeting.store {
            let (theirs, ours) = (&hello.store, &self.meeting.store);
            let why = format!("it has another store open: file {theirs}, not {ours}");
            return Err(Error::new(ErrorKind::Malformed, why));
        }
        if !is_name(&hello.socket) || hello.socket == self.meeting.name {
            let why = format!("`{}` is no name of another socket", hello.socket.escape_debug());
            return Err(Error::new(ErrorKind::Malformed, why));
        }
        self.meet(&hello.socket);
        while let Some(frame) = read(&mut stream).await? {
            let Some(inbox) = self.inbox.upgrade() else {
                return Ok(());
            };
            match frame {
                Frame::Envelope(envelope) => inbox.receive(Arc::new(envelope))?,
                Frame::Retained(envelope) => inbox.receive_retained(Arc::new(envelope))?,
                Frame::Lost(lost) => inbox.lost(&lost),
                Frame::Hello(_) => return Err(Error::new(ErrorKind::Malformed, "it said twice who it is")),
            }
        }
        Ok(())
    }

    /// Gives those that read a moment to take what was published last.
    async fn linger(&self) {
        let until = Instant::now() + limits::BRIDGE_LINGER_MAX;
        while Instant::now() < until && !self.peers().iter().all(|peer| peer.is_idle()) {
            tokio::time::sleep(limits::BRIDGE_LINGER_MAX / 100).await;
        }
    }
}

/// The next frame; `None` at a clean end.
async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Result<Option<Frame>, Error> {
    let mut length = [0; frame::LENGTH_BYTES];
    match stream.read_exact(&mut length).await {
        Ok(_) => {}
        // Where it was killed, the last frame may be cut off.
        Err(error) if is_end(&error) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let mut bytes = vec![0; frame::length(length)?];
    match stream.read_exact(&mut bytes).await {
        Ok(_) => Frame::decode(&bytes).map(Some),
        Err(error) if is_end(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn is_end(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset
    )
}

struct Joined {
    mesh: Arc<Mesh>,
    thread: Option<JoinHandle<()>>,
}

impl Link for Joined {
    fn send(&self, envelope: &Arc<Envelope>, bytes: usize) {
        let peers = self.mesh.peers();
        if peers.is_empty() {
            return;
        }
        let outgoing = Outgoing::new(envelope.clone(), false);
        peers.iter().for_each(|peer| peer.push(outgoing.clone(), bytes));
    }
}

impl Drop for Joined {
    fn drop(&mut self) {
        // From now on nobody new finds it.
        self.mesh.meeting.leave();
        self.mesh.stop.notify_one();
        // A reader that lets the last handle go runs on that thread itself, which cannot wait for its own end.
        if let Some(thread) = self
            .thread
            .take()
            .filter(|thread| thread.thread().id() != thread::current().id())
        {
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for Joined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Joined")
            .field("meeting", &self.mesh.meeting)
            .field("peers", &self.mesh.peers().len())
            .finish_non_exhaustive()
    }
}
