//! State is a fold over a sequence that only grows. Nothing here reads a clock or a file.

mod snapshot;

pub use snapshot::Codec;

use crate::{Envelope, Error, ErrorKind, Result, store::Select};

/// How envelopes become state. Pure: the same envelopes give the same state, always.
///
/// ```
/// use neuron::{Envelope, Error, Fold};
/// struct Words;
/// impl Fold for Words {
///     type State = usize;
///     fn init(&self) -> usize {
///         0
///     }
///     fn apply(&self, words: &mut usize, envelope: &Envelope) -> Result<(), Error> {
///         let text: String = envelope.decode()?;
///         *words += text.split_whitespace().count();
///         Ok(())
///     }
/// }
/// ```
pub trait Fold {
    /// What the envelopes add up to.
    type State;

    /// The state before the first envelope.
    fn init(&self) -> Self::State;

    /// Takes in the next envelope.
    ///
    /// # Errors
    /// Whatever makes the envelope unreadable to this fold; folding stops there.
    fn apply(&self, state: &mut Self::State, envelope: &Envelope) -> Result<(), Error>;

    /// Which envelopes it is given; all of them unless said otherwise.
    fn select(&self) -> Select {
        Select::All
    }

    /// How its states are put aside, so that folding a long log does not begin at its first envelope each time. They
    /// are not, unless said otherwise.
    ///
    /// Snapshots change no answer. They are worth it for a fold over many envelopes whose state is small.
    fn snapshot(&self) -> Option<Codec<Self::State>> {
        None
    }
}

/// A state and how far it goes, so that folding can be resumed from there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded<S> {
    /// The state.
    pub state: S,
    /// Everything that the fold selects up to this `pos` is in the state; 0 = nothing.
    pub upto: u64,
}

impl<S> Folded<S> {
    /// The state before the first envelope.
    pub fn start(fold: &impl Fold<State = S>) -> Self {
        Self {
            state: fold.init(),
            upto: 0,
        }
    }

    /// Folds in more, in order. Envelopes it has seen already are passed over, so that overlap does no harm.
    ///
    /// # Errors
    /// The first error of the sequence or of the fold; the state then stands before that envelope.
    pub fn resume<F: Fold<State = S>>(
        &mut self,
        fold: &F,
        envelopes: impl IntoIterator<Item = Result<Envelope, Error>>,
    ) -> Result<(), Error> {
        for envelope in envelopes {
            let envelope = envelope?;
            if envelope.pos > self.upto {
                fold.apply(&mut self.state, &envelope)
                    .map_err(|error| error.context(format!("{} seq {}", envelope.topic, envelope.seq)))?;
                self.upto = envelope.pos;
            }
        }
        Ok(())
    }
}

/// Two folds in one pass. Each sees what it selects, as it would alone; together they keep no snapshots.
impl<A: Fold, B: Fold> Fold for (A, B) {
    type State = (A::State, B::State);

    fn init(&self) -> Self::State {
        (self.0.init(), self.1.init())
    }

    fn apply(&self, state: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        let (first, second) = (self.0.select(), self.1.select());
        let alike = first == second;
        if alike || takes(&first, envelope)? {
            self.0.apply(&mut state.0, envelope)?;
        }
        if alike || takes(&second, envelope)? {
            self.1.apply(&mut state.1, envelope)?;
        }
        Ok(())
    }

    fn select(&self) -> Select {
        let (first, second) = (self.0.select(), self.1.select());
        if first == second { first } else { Select::All }
    }
}

/// Whether a fold selects an envelope that was read for another one too.
fn takes(select: &Select, envelope: &Envelope) -> Result<bool, Error> {
    Ok(match select {
        Select::All => true,
        Select::Topic(topic) => envelope.topic == *topic,
        Select::Pattern(pattern) => pattern.matches(&envelope.topic),
        Select::Kind(kind) => envelope.body.kind == *kind,
        Select::Key(topic, key) => envelope.topic == *topic && envelope.key().as_deref() == Some(&**key),
        Select::CausedBy(_) => {
            let why = "a fold over what one envelope caused cannot share a pass with one that selects otherwise";
            return Err(Error::new(ErrorKind::Misuse, why));
        }
    })
}

/// The last envelope of every `key`: what a keyed topic says now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latest;

impl Fold for Latest {
    type State = std::collections::BTreeMap<(crate::Topic, String), Envelope>;

    fn init(&self) -> Self::State {
        Self::State::new()
    }

    fn apply(&self, state: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        if let Some(key) = envelope.key() {
            state.insert((envelope.topic.clone(), key), envelope.clone());
        }
        Ok(())
    }
}

/// How many envelopes there are of each type.
#[derive(Clone, Copy, Debug, Default)]
pub struct Count;

impl Fold for Count {
    type State = std::collections::BTreeMap<crate::Kind, u64>;

    fn init(&self) -> Self::State {
        Self::State::new()
    }

    fn apply(&self, state: &mut Self::State, envelope: &Envelope) -> Result<(), Error> {
        *state.entry(envelope.body.kind.clone()).or_default() += 1;
        Ok(())
    }

    fn snapshot(&self) -> Option<Codec<Self::State>> {
        Some(Codec::new("count", 1))
    }
}
