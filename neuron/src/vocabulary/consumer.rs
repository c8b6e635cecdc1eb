//! What a named durable consumer says on `$consumer.{name}`: how it is set up, how far it came, and every word about a
//! single message that its position alone does not tell.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::messages;
use crate::{Envelope, Json, Kind, Millis, Pattern};

messages! {
    ConsumerConfigured "consumer.configured";
    ConsumerAdvanced "consumer.advanced";
    ConsumerDelivered "consumer.delivered";
    ConsumerAcknowledged "consumer.acknowledged";
    ConsumerRetried "consumer.retried";
    ConsumerParked "consumer.parked";
    ConsumerRedriven "consumer.redriven";
    ConsumerReset "consumer.reset";
    ConsumerDeleted "consumer.deleted";
}

/// Which messages wait for which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Order {
    /// They are handed out in the order of the log, several at a time; one that is tried again holds up no other.
    #[default]
    Free,
    /// Of one topic one at a time; one that is tried again holds up those of its topic.
    Topic,
    /// One at a time; one that is tried again holds up all others.
    Whole,
}

/// How the consumer is set up. The first one, or the first after a deletion, makes the consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerConfigured {
    /// The `pos` after which it begins; counts only when the consumer is made.
    pub after: u64,
    /// Which topics it is given.
    pub pattern: Pattern,
    /// Which types; empty = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<Kind>,
    /// Birth headers that a message must carry with exactly this value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Json>,
    /// Which messages wait for which.
    pub order: Order,
    /// How often a message is handed out before it is parked.
    pub max_deliveries: u32,
    /// How long the second and further deliveries wait, in milliseconds; the last one repeats.
    pub schedule_ms: Vec<u64>,
    /// Messages that are handed out or wait to be tried again, together.
    pub in_flight: u32,
    /// How long a delivery may take before the message is handed out again, in milliseconds.
    pub ack_wait_ms: u64,
}

impl ConsumerConfigured {
    /// Whether a message is for the consumer, whose topic matches already: by its type and its birth headers.
    pub(crate) fn selects(&self, message: &Envelope) -> bool {
        let is_of_type = self.types.is_empty() || self.types.contains(&message.body.kind);
        let carries = |(key, value): (&String, &Json)| message.headers.current(key) == Some(value);
        is_of_type && self.headers.iter().all(carries)
    }
}

/// Every message up to and with `upto` is settled, but those of which an envelope here says that they are tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerAdvanced {
    /// A `pos`.
    pub upto: u64,
}

/// A message is handed out; recorded beforehand where it may be the one that kills the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerDelivered {
    /// The message.
    pub pos: u64,
    /// From 1.
    pub attempt: u32,
}

/// A message is settled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerAcknowledged {
    /// The message.
    pub pos: u64,
    /// The delivery that did it.
    pub attempt: u32,
}

/// A delivery ended without success; the message is handed out again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerRetried {
    /// The message.
    pub pos: u64,
    /// The last delivery that counts: the one that ended, or the one before it if it was handed back; 0 = none.
    pub attempt: u32,
    /// How long it waits, in milliseconds.
    pub after_ms: u64,
    /// When that has passed by the clock of the wall: what a later process waits for, though never longer than `afterMs`.
    pub due: Millis,
    /// Why.
    pub because: String,
}

/// A message is laid aside until somebody redrives it. The `key` of the envelope is its `pos`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerParked {
    /// The message.
    pub pos: u64,
    /// Deliveries made.
    pub attempts: u32,
    /// Why.
    pub because: String,
}

/// A parked message is handed out again, its deliveries counted from 1. The `key` of the envelope is its `pos`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerRedriven {
    /// The message.
    pub pos: u64,
    /// The reason, for whoever reads the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// The consumer goes on after another `pos`; what is tried again is forgotten, and so is what is parked beyond it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerReset {
    /// The `pos` after which it goes on.
    pub after: u64,
}

/// The consumer is no more; its name may be used anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerDeleted {}
