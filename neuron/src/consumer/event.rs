//! What one envelope of a consumer's topic says.

use crate::{
    Author, Draft, Envelope, Error, Result, Topic,
    vocabulary::{
        Message,
        consumer::{
            ConsumerAcknowledged, ConsumerAdvanced, ConsumerConfigured, ConsumerDeleted, ConsumerDelivered,
            ConsumerParked, ConsumerRedriven, ConsumerReset, ConsumerRetried,
        },
    },
};

/// One word of a consumer's topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Configured(ConsumerConfigured),
    Advanced(ConsumerAdvanced),
    Delivered(ConsumerDelivered),
    Acknowledged(ConsumerAcknowledged),
    Retried(ConsumerRetried),
    Parked(ConsumerParked),
    Redriven(ConsumerRedriven),
    Reset(ConsumerReset),
    Deleted(ConsumerDeleted),
}

impl Event {
    /// `None` for a type that is no word of a consumer.
    pub(super) fn read(envelope: &Envelope) -> Result<Option<Self>, Error> {
        Ok(Some(match envelope.body.kind.as_str() {
            ConsumerConfigured::TYPE => Self::Configured(envelope.decode()?),
            ConsumerAdvanced::TYPE => Self::Advanced(envelope.decode()?),
            ConsumerDelivered::TYPE => Self::Delivered(envelope.decode()?),
            ConsumerAcknowledged::TYPE => Self::Acknowledged(envelope.decode()?),
            ConsumerRetried::TYPE => Self::Retried(envelope.decode()?),
            ConsumerParked::TYPE => Self::Parked(envelope.decode()?),
            ConsumerRedriven::TYPE => Self::Redriven(envelope.decode()?),
            ConsumerReset::TYPE => Self::Reset(envelope.decode()?),
            ConsumerDeleted::TYPE => Self::Deleted(envelope.decode()?),
            _ => return Ok(None),
        }))
    }

    pub(super) fn draft(&self, topic: &Topic) -> Result<Draft, Error> {
        let draft = |message: &dyn Fn(Topic, Author) -> Result<Draft, Error>| message(topic.clone(), Author::engine());
        match self {
            Self::Configured(it) => draft(&|topic, author| it.draft(topic, author)),
            Self::Advanced(it) => draft(&|topic, author| it.draft(topic, author)),
            Self::Delivered(it) => draft(&|topic, author| it.draft(topic, author)),
            Self::Acknowledged(it) => draft(&|topic, author| it.draft(topic, author)),
            Self::Retried(it) => draft(&|topic, author| it.draft(topic, author)),
            // What stands last under its `pos` says whether a message is parked.
            Self::Parked(it) => draft(&|topic, author| it.draft(topic, author))?.key(it.pos.to_string()),
            Self::Redriven(it) => draft(&|topic, author| it.draft(topic, author))?.key(it.pos.to_string()),
            Self::Reset(it) => draft(&|topic, author| it.draft(topic, author)),
            Self::Deleted(it) => draft(&|topic, author| it.draft(topic, author)),
        }
    }
}
