use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use crate::{
    Error, ErrorKind, Json, Ledger, Result, Topic,
    agent::large,
    store::Select,
    vocabulary::{
        Message as _,
        step::{StepCompleted, StepFailed, StepStarted},
    },
};

/// What the steps of a real run were called with and gave, to be given again in a test without their bodies: see
/// [`Faults::play`](super::Faults::play).
///
/// A call is answered by its name and its arguments as they are recorded, whatever its run and its place; calls that are
/// equal in both are answered in the order in which they were recorded.
#[derive(Clone, Debug, Default)]
pub struct Cassette {
    answers: HashMap<Call, VecDeque<Result<Json, Error>>>,
}

/// Name and canonical arguments.
type Call = (String, Arc<str>);

impl Cassette {
    /// The answers of steps that stand on these topics, attempts that were no answer left out. Blocks.
    ///
    /// ```
    /// use neuron::{Ledger, testing::Cassette, topic::catalog, TokenId};
    /// # let ledger = Ledger::over(
    /// #     std::sync::Arc::new(neuron::store::Memory::new()?),
    /// #     std::sync::Arc::new(neuron::SystemClock),
    /// #     neuron::pipeline::Pipeline::default(),
    /// # )?;
    /// let token = TokenId::new("reader-as7m4aqxea2jsph2")?;
    /// let cassette = Cassette::of(&ledger, [catalog::steps(&token)])?;
    /// assert!(cassette.is_empty());
    /// # Ok::<(), neuron::Error>(())
    /// ```
    ///
    /// # Errors
    /// A kind of the disk; [`ErrorKind::Corrupt`] for a record that is not the one that was written.
    pub fn of(ledger: &Ledger, topics: impl IntoIterator<Item = Topic>) -> Result<Self, Error> {
        let mut cassette = Self::default();
        for topic in topics {
            cassette.record(ledger, topic)?;
        }
        Ok(cassette)
    }

    /// Whether nothing, or nothing more, is on it.
    pub fn is_empty(&self) -> bool {
        self.answers.values().all(VecDeque::is_empty)
    }

    /// Reads one topic. Calls count by when they began.
    fn record(&mut self, ledger: &Ledger, topic: Topic) -> Result<(), Error> {
        let mut begun: Vec<(String, Call)> = Vec::new();
        let mut given = HashMap::new();
        for envelope in ledger.read(Select::Topic(topic)).checked().envelopes() {
            let envelope = envelope?;
            let beside = || large(ledger, &envelope).transpose();
            match envelope.body.kind.as_str() {
                StepStarted::TYPE => {
                    let StepStarted { key, name, args, .. } = envelope.decode()?;
                    // Later attempts do not repeat what the first one was called with.
                    if let Some(args) = args.map_or_else(beside, |args| Ok(Some(args)))? {
                        begun.push((key, (name, args.as_str().into())));
                    }
                }
                StepCompleted::TYPE => {
                    let StepCompleted { key, output, .. } = envelope.decode()?;
                    let output = output.map_or_else(beside, |output| Ok(Some(output)))?;
                    given.insert(key, Ok(output.unwrap_or_else(Json::null)));
                }
                StepFailed::TYPE => {
                    let StepFailed { key, error, .. } = envelope.decode()?;
                    given.insert(key, Err(error));
                }
                _ => {}
            }
        }
        for (key, call) in begun {
            if let Some(answer) = given.remove(&key) {
                self.answers.entry(call).or_default().push_back(answer);
            }
        }
        Ok(())
    }

    /// What is left on it, by name.
    pub(super) fn left(&self) -> impl Iterator<Item = &str> {
        let left = self.answers.iter().filter(|(_, answers)| !answers.is_empty());
        left.map(|((name, _), _)| name.as_str())
    }

    /// The next answer of such a call.
    ///
    /// # Errors
    /// What the step failed with; [`ErrorKind::NotFound`] if no answer is left.
    pub(super) fn next(&mut self, name: &str, args: &Json) -> Result<Json, Error> {
        let call = (name.to_owned(), args.as_str().into());
        let answer = self.answers.get_mut(&call).and_then(VecDeque::pop_front);
        answer.unwrap_or_else(|| {
            let why = format!(
                "the cassette has no answer, or none any more, of `{name}` with {}: record the run again with this code",
                args.as_str()
            );
            Err(Error::new(ErrorKind::NotFound, why))
        })
    }
}
