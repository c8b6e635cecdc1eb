//! What goes over a socket of the bridge: frames, from bytes and back. Pure.

use serde::{Deserialize, Serialize};

use super::Lost;
use crate::{Envelope, Error, ErrorKind, Json, Result, Topic, limits};

/// The version of these frames; the first byte of each after its length.
pub(super) const VERSION: u8 = 1;
/// Bytes of the length that stands before each frame.
pub(super) const LENGTH_BYTES: usize = 4;
/// Version and kind.
const HEAD_BYTES: usize = 2;
/// Bytes of the longest frame, without its length.
const FRAME_BYTES_MAX: usize = HEAD_BYTES + limits::RECORD_BYTES_MAX;

/// One message between two processes.
#[derive(Debug, PartialEq)]
pub(super) enum Frame {
    /// The first of a connection: who speaks, and of which store.
    Hello(Hello),
    /// Published just now.
    Envelope(Envelope),
    /// Published and retained before the other came.
    Retained(Envelope),
    /// Published and not sent.
    Lost(Lost),
}

/// Who speaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Hello {
    /// Which file the store is.
    pub(super) store: String,
    /// The name of the speaker's own socket.
    pub(super) socket: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LostForm {
    topics: Vec<(Topic, u64)>,
    others: u64,
}

fn malformed(why: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Malformed, format!("a frame of the bridge {why}"))
}

/// The length of the frame that follows these bytes.
///
/// # Errors
/// [`ErrorKind::Malformed`] for one that no frame has: nothing is read or allocated for it.
pub(super) fn length(bytes: [u8; LENGTH_BYTES]) -> Result<usize, Error> {
    let length = usize::try_from(u32::from_be_bytes(bytes)).unwrap_or(usize::MAX);
    if (HEAD_BYTES..=FRAME_BYTES_MAX).contains(&length) {
        return Ok(length);
    }
    Err(malformed(format!(
        "has {length} bytes: use {HEAD_BYTES} to {FRAME_BYTES_MAX}"
    )))
}

impl Frame {
    /// The frame with its length.
    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        let (kind, text) = match self {
            Self::Hello(hello) => (b'h', Json::of(hello)?),
            Self::Envelope(envelope) => (b'e', envelope.record()?),
            Self::Retained(envelope) => (b'r', envelope.record()?),
            Self::Lost(lost) => (b'l', lost_text(lost)?),
        };
        Ok(framed(kind, &text))
    }

    /// Reads a frame without its length.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`] for anything that [`Frame::encode`] does not give.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let [version, kind, text @ ..] = bytes else {
            return Err(malformed("is cut off"));
        };
        if *version != VERSION {
            return Err(malformed(format!(
                "has version {version}; this program speaks {VERSION}"
            )));
        }
        let text = std::str::from_utf8(text).map_err(|error| malformed(format!("is no text: {error}")))?;
        match kind {
            b'h' => Ok(Self::Hello(Json::parse(text)?.decode()?)),
            b'e' => Envelope::passed(text).map(Self::Envelope),
            b'r' => Envelope::passed(text).map(Self::Retained),
            b'l' => {
                let LostForm { topics, others } = Json::parse(text)?.decode()?;
                let mut lost = Lost::default();
                for (topic, count) in &topics {
                    lost.add(topic, *count);
                }
                lost.add_others(others);
                Ok(Self::Lost(lost))
            }
            kind => Err(malformed(format!("is of an unknown kind {kind}"))),
        }
    }
}

/// The frame of an envelope that is shared.
pub(super) fn of_envelope(envelope: &Envelope, is_retained: bool) -> Result<Vec<u8>, Error> {
    let kind = if is_retained { b'r' } else { b'e' };
    Ok(framed(kind, &envelope.record()?))
}

fn lost_text(lost: &Lost) -> Result<Json, Error> {
    Json::of(&LostForm {
        topics: lost.topics().map(|(topic, count)| (topic.clone(), count)).collect(),
        others: lost.others(),
    })
}

fn framed(kind: u8, text: &Json) -> Vec<u8> {
    let length = HEAD_BYTES + text.len();
    let mut bytes = Vec::with_capacity(LENGTH_BYTES + length);
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend([VERSION, kind]);
    bytes.extend(text.as_str().as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::{Frame, Hello, LENGTH_BYTES, length};
    use crate::{Author, Draft, Envelope, Json, Millis, Topic, envelope::Passing, transport::Lost};

    fn envelope() -> impl Strategy<Value = Envelope> {
        (
            "[a-z€\"\\\\]{1,8}",
            any::<(i64, f64, String)>(),
            1_u64..,
            any::<Option<String>>(),
        )
            .prop_map(|(name, (at, number, text), seq, header)| {
                let number = if number.is_finite() { number } else { 0.5 };
                let topic = Topic::new(name.replace('\\', "b")).unwrap();
                let mut draft = Draft::new(topic, Author::new(name).unwrap(), "said").unwrap();
                draft = draft.json(Json::of(&(number, text)).unwrap(), None);
                if let Some(header) = header {
                    draft = draft.header("mood", &header).unwrap();
                }
                Passing::new(draft, Millis(at)).unwrap().at(seq)
            })
    }

    fn frame() -> impl Strategy<Value = Frame> {
        let lost = vec(("[a-z]{1,3}", any::<u32>()), 0..5).prop_map(|topics| {
            let mut lost = Lost::default();
            for (topic, count) in topics {
                lost.add(&Topic::new(topic).unwrap(), count.into());
                lost.add_others(1);
            }
            lost
        });
        let hello = any::<(String, String)>().prop_map(|(store, socket)| Hello { store, socket });
        prop_oneof![
            hello.prop_map(Frame::Hello),
            envelope().prop_map(Frame::Envelope),
            envelope().prop_map(Frame::Retained),
            lost.prop_map(Frame::Lost),
        ]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_it_was(frame in frame()) {
            let bytes = frame.encode().unwrap();
            let (head, rest) = bytes.split_first_chunk::<LENGTH_BYTES>().unwrap();
            prop_assert_eq!(length(*head).unwrap(), rest.len());
            let read = Frame::decode(rest).unwrap();
            if let (Frame::Envelope(read), Frame::Envelope(sent)) = (&read, &frame) {
                prop_assert_eq!(read.id(), sent.id());
            }
            prop_assert_eq!(read, frame);
        }

        #[test]
        fn whatever_comes_is_read_or_refused(bytes in vec(any::<u8>(), 0..300), frame in frame(), at in any::<usize>(), flip in 1_u8..) {
            let _ = Frame::decode(&bytes);
            let mut changed = frame.encode().unwrap().split_off(LENGTH_BYTES);
            let place = at % changed.len();
            changed[place] ^= flip;
            if let Ok(Frame::Envelope(envelope)) = Frame::decode(&changed) {
                let record = envelope.record().unwrap();
                prop_assert_eq!(record.as_str().as_bytes(), &changed[2..]);
            }
        }
    }
}
