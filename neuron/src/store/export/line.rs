//! The lines of an export: one JSON object each, with one key that says what it is.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    Digest, Json, SchemaRef,
    store::{Part, verify::Head},
};

/// The version of these lines.
pub(super) const VERSION: u32 = 1;

/// The first line: what the export holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Opening {
    pub(super) version: u32,
    /// Which form the envelopes have.
    pub(super) root: SchemaRef,
    /// The head of the store at the last `pos` of the part.
    pub(super) head: Head,
    pub(super) part: Part,
}

/// The last line: what must have been read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Trailer {
    /// Schemas.
    pub schemas: u64,
    /// Envelopes.
    pub envelopes: u64,
    /// Artifacts.
    pub artifacts: u64,
    /// Bytes of these artifacts.
    pub artifact_bytes: u64,
    /// Plain BLAKE3 of all lines before this one.
    pub hash: Digest,
}

/// A line as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Written<'a> {
    Export(&'a Opening),
    Schema { hash: SchemaRef, definition: &'a Json },
    Envelope { pos: u64, id: Digest, record: Json },
    Artifact { hash: Digest, bytes: u64 },
    Chunk { hash: Digest, base64: String },
    End(&'a Trailer),
}

/// A line as it is read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) enum Read<'a> {
    Export(Opening),
    #[serde(borrow)]
    Schema(SchemaLine<'a>),
    #[serde(borrow)]
    Envelope(EnvelopeLine<'a>),
    Artifact(ArtifactLine),
    #[serde(borrow)]
    Chunk(ChunkLine<'a>),
    End(Trailer),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SchemaLine<'a> {
    pub(super) hash: SchemaRef,
    #[serde(borrow)]
    pub(super) definition: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EnvelopeLine<'a> {
    pub(super) pos: u64,
    pub(super) id: Digest,
    #[serde(borrow)]
    pub(super) record: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ArtifactLine {
    pub(super) hash: Digest,
    pub(super) bytes: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChunkLine<'a> {
    pub(super) hash: Digest,
    pub(super) base64: &'a str,
}

/// What only the version is read of, so that another one can be told.
#[derive(Deserialize)]
pub(super) struct Versioned {
    pub(super) export: VersionOnly,
}

#[derive(Deserialize)]
pub(super) struct VersionOnly {
    pub(super) version: u32,
}
