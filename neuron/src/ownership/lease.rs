use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary::Message;

/// What stood in the way of a claim, and so what it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Takeover {
    /// Nobody owned the name.
    Free,
    /// The holder was dead: the kernel had freed its slot.
    Dead,
    /// The holder was hung: three polls saw its heartbeat stand still.
    Hung,
    /// This process owned it already.
    Own,
    /// The holder gave it to this very incarnation: nobody else could claim it in between.
    HandedOver,
}

/// A claim that stands: write under this epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The owned name.
    pub name: String,
    /// The epoch that every append of the owner carries.
    pub epoch: u64,
    /// What the claim did.
    pub from: Takeover,
}

/// Payload of `lease.claimed`; the `key` of the envelope is the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseClaimed {
    /// What is owned: `run:ID`, `package:TOKEN`, `scope:SCOPE`.
    pub name: String,
    /// The slot of whoever owns the name from now on: the claiming process, or the one it was handed over to.
    pub incarnation: String,
    /// The last epoch of the name, plus one.
    pub epoch: u64,
    /// What stood in the way.
    pub from: Takeover,
}

impl Message for LeaseClaimed {
    const TYPE: &'static str = "lease.claimed";
}

/// Payload of `lease.released`; the `key` of the envelope is the name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseReleased {
    /// What was owned.
    pub name: String,
    /// Who gave it back.
    pub incarnation: String,
    /// The epoch that ends.
    pub epoch: u64,
}

impl Message for LeaseReleased {
    const TYPE: &'static str = "lease.released";
}
