use crate::Digest;

/// The state of a fold, put aside so that the next one need not begin at the first envelope.
///
/// It is derived: nobody needs it, and it may be lost at any moment. Whoever takes it up asks first whether the envelope
/// that it names stands at its place in this store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Everything that the fold selects up to this `pos` is in the state.
    pub pos: u64,
    /// The id of the envelope at `pos`.
    pub id: Digest,
    /// The state, as the fold writes it.
    pub state: Vec<u8>,
}
