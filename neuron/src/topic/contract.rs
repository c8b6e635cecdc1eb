use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Millis;

/// What becomes of the envelopes of a topic; fixed when the topic is declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "persistence")]
pub enum Contract {
    /// Every envelope is appended, can be replayed, and survives.
    Durable,
    /// Envelopes are delivered and never stored.
    Ephemeral {
        /// Whether the last envelope is kept for subscribers that come later.
        retain_last: bool,
        /// How long a kept envelope stays while nobody subscribes, in milliseconds; absent = for as long as the process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<Millis>,
    },
}

impl Contract {
    /// Delivery only, nothing kept.
    pub const EPHEMERAL: Self = Self::Ephemeral {
        retain_last: false,
        ttl_ms: None,
    };
    /// Delivery only, the last value kept for those who come later.
    pub const RETAINED: Self = Self::Ephemeral {
        retain_last: true,
        ttl_ms: None,
    };

    /// Whether envelopes are appended.
    pub fn is_durable(&self) -> bool {
        matches!(self, Self::Durable)
    }
}
