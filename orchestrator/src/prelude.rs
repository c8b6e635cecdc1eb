//! Everything that a program with agents needs: `use orchestrator::prelude::*;`.

pub use neuron::{
    ArtifactRef, Burn, Cx, Envelope, EnvelopeRef, Error, ErrorKind, Event, Filter, Millis, Node, Plan, Result, RunId,
    Secret, Terminal, TokenId, Transaction, agent, on, plan, step, store::Durability,
};

/// ```
/// use orchestrator::prelude::*;
///
/// #[step]
/// async fn count(_cx: &Cx, word: String) -> Result<usize> {
///     Ok(word.len())
/// }
///
/// #[agent]
/// async fn reader(cx: &Cx, word: String) -> Result<usize> {
///     Ok(count(cx, word).await?)
/// }
///
/// /// Its readers work at the same time; nothing runs before the whole board is cleared.
/// #[orchestrator]
/// async fn longest(board: &Board, words: Vec<String>) -> Result<usize> {
///     let readers: Vec<_> = words.into_iter().map(|word| board.assign(reader, word)).collect();
///     let mut longest = 0;
///     for reader in readers {
///         longest = longest.max(reader.await?);
///     }
///     Ok(longest)
/// }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<()> {
/// let neuron = Neuron::builder().memory().await?;
/// assert_eq!(neuron.run(longest, vec!["a".into(), "word".into()]).await?, 4);
/// # Ok(())
/// # }
/// ```
#[doc(inline)]
pub use neuron::orchestrator;

pub use crate::{Board, Neuron, Package, Run, Running, Target};
