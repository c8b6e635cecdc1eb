use serde::{Deserialize, Serialize};

use crate::{Digest, Error, ErrorKind, Topic};

/// The first bad envelope; the detail of the error of [`verify`](super::verify()).
///
/// ```
/// # use neuron::{Error, ErrorKind, store::verify::Bad};
/// # fn show(error: &Error) {
/// if let Some(bad) = error.detail::<Bad>() {
///     println!("pos {} is bad: {}", bad.pos, bad.why);
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Bad {
    /// Its place in the store.
    pub pos: u64,
    /// Its topic, if that can still be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<Topic>,
    /// Its place in the topic, if that can still be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// The id it is stored under, if it is there at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Digest>,
    /// What is wrong with it.
    pub why: String,
}

/// The error that names it.
pub(super) fn told(bad: &Bad) -> Error {
    let topic = bad
        .topic
        .as_ref()
        .map_or_else(|| "topic unknown".to_owned(), ToString::to_string);
    let seq = bad.seq.map_or_else(String::new, |seq| format!(" seq {seq}"));
    let id = bad.id.map_or_else(String::new, |id| format!(", id {id}"));
    let told = format!("the envelope at pos {} ({topic}{seq}{id}) is bad: {}", bad.pos, bad.why);
    Error::new(ErrorKind::Corrupt, told).with(bad)
}
