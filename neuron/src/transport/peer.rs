//! One other process, as this one sends to it.

use std::{
    io,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    sync::Notify,
    time::sleep,
};

use super::{
    Loss as _, Lost, Queue,
    frame::{self, Frame, Hello},
};
use crate::{Envelope, limits};

/// An envelope for several peers: written out once, by the first that sends it.
#[derive(Debug)]
pub(super) struct Outgoing {
    envelope: Arc<Envelope>,
    is_retained: bool,
    frame: OnceLock<Option<Vec<u8>>>,
}

impl Outgoing {
    pub(super) fn new(envelope: Arc<Envelope>, is_retained: bool) -> Arc<Self> {
        Arc::new(Self {
            envelope,
            is_retained,
            frame: OnceLock::new(),
        })
    }

    fn frame(&self) -> Option<&[u8]> {
        let encode = || frame::of_envelope(&self.envelope, self.is_retained).ok();
        self.frame.get_or_init(encode).as_deref()
    }
}

/// What is queued for a peer.
#[derive(Debug)]
struct Parcel(Arc<Outgoing>);

impl AsRef<Envelope> for Parcel {
    fn as_ref(&self) -> &Envelope {
        &self.0.envelope
    }
}

/// What waits for one other process. It is bounded, so that one that does not read costs no more than that.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) name: String,
    outbox: Mutex<Outbox>,
    filled: Notify,
}

#[derive(Debug, Default)]
struct Outbox {
    queue: Queue<Parcel, Lost>,
    /// Something was taken out and is being written.
    is_writing: bool,
}

/// Why a conversation has ended.
pub(super) enum End {
    /// The other has ended, or its socket is that of a dead process.
    Gone,
    /// It may be there later.
    Broken(io::Error),
}

impl Peer {
    pub(super) fn new(name: String) -> Self {
        Self {
            name,
            outbox: Mutex::default(),
            filled: Notify::new(),
        }
    }

    fn outbox(&self) -> MutexGuard<'_, Outbox> {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues an envelope, or counts it as lost.
    pub(super) fn push(&self, outgoing: Arc<Outgoing>, bytes: usize) {
        self.outbox().queue.push(Parcel(outgoing), bytes);
        self.filled.notify_one();
    }

    /// Whether everything was handed to the socket.
    pub(super) fn is_idle(&self) -> bool {
        let outbox = self.outbox();
        outbox.queue.is_empty() && !outbox.is_writing
    }

    /// What to write next, and what of it may be lost if it does not arrive.
    fn take(&self) -> Option<(Vec<u8>, Lost)> {
        let (mut bytes, mut risked) = (Vec::new(), Lost::default());
        let mut outbox = self.outbox();
        while bytes.len() < limits::BRIDGE_WRITE_BYTES {
            match outbox.queue.pop() {
                None => break,
                Some(Ok(parcel)) => {
                    if let Some(frame) = parcel.0.frame() {
                        bytes.extend_from_slice(frame);
                    } else {
                        // Only an envelope that was changed by hand has no text.
                        tracing::warn!(topic = %parcel.0.envelope.topic, "an envelope cannot be written out");
                    }
                    risked.count(&parcel);
                }
                Some(Err(lost)) => {
                    bytes.extend(Frame::Lost(lost.clone()).encode().unwrap_or_default());
                    super::Loss::<Parcel>::add(&mut risked, lost);
                }
            }
        }
        outbox.is_writing = !bytes.is_empty();
        outbox.is_writing.then_some((bytes, risked))
    }

    fn wrote(&self, lost: Option<Lost>) {
        let mut outbox = self.outbox();
        outbox.is_writing = false;
        if let Some(lost) = lost {
            outbox.queue.lose_first(lost);
        }
    }

    /// Sends what is queued until the connection ends.
    pub(super) async fn converse(&self, mut stream: UnixStream, hello: &Hello) -> End {
        let hello = Frame::Hello(hello.clone()).encode().unwrap_or_default();
        if let Err(error) = stream.write_all(&hello).await {
            return End::Broken(error);
        }
        let mut nothing = [0];
        loop {
            let Some((bytes, risked)) = self.take() else {
                tokio::select! {
                    () = self.filled.notified() => continue,
                    // It says nothing on this connection: whatever comes is its end.
                    read = stream.read(&mut nothing) => {
                        let why = io::Error::new(io::ErrorKind::InvalidData, "it speaks where it should listen");
                        return End::Broken(read.map_or_else(|error| error, |read| match read {
                            0 => io::ErrorKind::UnexpectedEof.into(),
                            _ => why,
                        }));
                    }
                }
            };
            let wrote = stream.write_all(&bytes).await;
            self.wrote(wrote.is_err().then_some(risked));
            if let Err(error) = wrote {
                return End::Broken(error);
            }
        }
    }

    /// Waits before the next attempt, the longer the more have failed.
    pub(super) async fn rest(failed: u32) {
        let factor = 2_u32.saturating_pow(failed.min(16));
        let pause: Duration = limits::BRIDGE_RETRY_MIN.saturating_mul(factor);
        sleep(pause.min(limits::BRIDGE_RETRY_MAX)).await;
    }
}
