use std::{fmt, sync::Arc};

use crate::{Draft, Error, Pattern, Result};

/// One concern that every envelope of some topics passes before it is sealed: it may add birth headers or refuse.
pub trait Stage: Send + Sync {
    /// The name under which it authors headers and refusals.
    fn name(&self) -> &str;

    /// Lets a draft pass, perhaps with headers added.
    ///
    /// # Errors
    /// Why it is refused; the whole batch is then refused, and nothing of it is written.
    fn pass(&self, draft: Draft) -> Result<Draft, Error>;
}

/// Stages in the order in which they were declared.
///
/// ```
/// use neuron::{Draft, Error, Pattern, pipeline::{Pipeline, Stage}};
/// struct Stamp;
/// impl Stage for Stamp {
///     fn name(&self) -> &str {
///         "stamp"
///     }
///     fn pass(&self, draft: Draft) -> Result<Draft, Error> {
///         draft.header("stamped", &true)
///     }
/// }
/// let pipeline = Pipeline::default().stage(Pattern::all(), Stamp);
/// ```
#[derive(Clone, Default)]
pub struct Pipeline(Vec<(Pattern, Arc<dyn Stage>)>);

impl Pipeline {
    /// Adds a stage after those that are there.
    #[must_use]
    pub fn stage(mut self, pattern: Pattern, stage: impl Stage + 'static) -> Self {
        self.0.push((pattern, Arc::new(stage)));
        self
    }

    /// Runs a draft through the stages of its topic.
    ///
    /// # Errors
    /// The first refusal, naming its stage and the topic.
    pub(crate) fn run(&self, mut draft: Draft) -> Result<Draft, Error> {
        let topic = draft.topic.clone();
        for (_, stage) in self.0.iter().filter(|(pattern, _)| pattern.matches(&topic)) {
            let refused =
                |error: Error| error.context(format!("stage `{}` refused a draft for topic {topic}", stage.name()));
            draft = stage.pass(draft).map_err(refused)?;
        }
        Ok(draft)
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(pattern, stage)| (pattern, stage.name())))
            .finish()
    }
}
