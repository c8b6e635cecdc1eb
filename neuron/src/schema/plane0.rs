//! Plane 0: the form of an envelope, pinned as the root of every store.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::{ENVELOPE_CONTEXT, Json};

use super::definition::Schema;

impl Schema {
    /// The meta-schema of the envelope (plane 0): the root that a store pins as its registry's first entry.
    ///
    /// It says what an envelope is and how its id comes about.
    pub fn plane0() -> Self {
        static ROOT: LazyLock<Schema> = LazyLock::new(|| {
            let definition = definition();
            // Holds only strings and small integers, which always have a canonical form.
            Schema::known(Json::of(&definition).unwrap_or_else(|_| Json::null()), definition)
        });
        ROOT.clone()
    }
}

fn definition() -> Value {
    json!({
        "title": "Envelope",
        "description": "One record of a topic. It is stored in canonical form without `id`.",
        // A change of context, hash or form changes every id, so it must change this root as well.
        "x-neuron-id": { "canonical": "rfc8785+int64", "context": ENVELOPE_CONTEXT, "hash": "blake3-derive-key", "without": "id" },
        "type": "object",
        "properties": {
            "topic": { "type": "string" },
            "seq": { "type": "integer", "minimum": 1 },
            "parentSeq": { "type": "integer", "minimum": 1 },
            "id": { "$ref": "#/$defs/hash" },
            "author": { "type": "string" },
            "at": { "type": "integer", "description": "Milliseconds since the Unix epoch." },
            "headers": { "type": "array", "items": { "$ref": "#/$defs/header" } },
            "body": { "$ref": "#/$defs/body" }
        },
        "required": ["topic", "seq", "author", "at", "headers", "body"],
        "additionalProperties": false,
        "$defs": {
            "hash": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
            "header": {
                "type": "object",
                "properties": {
                    "key": { "type": "string" },
                    "value": true,
                    "author": { "type": "string" },
                    "at": { "type": "integer" },
                    "schema": { "$ref": "#/$defs/hash" }
                },
                "required": ["key", "value", "author", "at"],
                "additionalProperties": false
            },
            "body": {
                "type": "object",
                "properties": {
                    "type": { "type": "string" },
                    "payloadJSON": true,
                    "payloadSchema": { "$ref": "#/$defs/hash" },
                    "schema": { "$ref": "#/$defs/hash" },
                    "artifacts": { "type": "array", "items": { "$ref": "#/$defs/artifact" } }
                },
                "required": ["type", "artifacts"],
                "additionalProperties": false
            },
            "artifact": {
                "type": "object",
                "properties": {
                    "ref": { "type": "string" },
                    "hash": { "$ref": "#/$defs/hash" },
                    "kind": { "type": "string" }
                },
                "required": ["ref"],
                "additionalProperties": false
            }
        }
    })
}
