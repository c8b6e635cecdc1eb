use std::{collections::HashMap, sync::Arc};

use neuron::{
    Error, ErrorKind, Json, Result,
    plan::{Input, Written},
    scope::Runtime,
};
use tokio::sync::oneshot;

use super::{body::Body, laid::Laid};
use crate::ruling::Verdict;

/// A package as the driver of its run knows it.
pub(crate) struct Job {
    pub(crate) laid: Laid,
    pub(crate) body: Arc<Body>,
    /// The plan it declared, with the calls behind the rows.
    pub(crate) written: Option<Written>,
    /// While it runs.
    pub(crate) runtime: Option<Arc<Runtime>>,
    /// What it gave, between its end and its answer.
    pub(crate) output: Option<Json>,
    /// Steps that wait for a ruling.
    pub(crate) asking: HashMap<String, oneshot::Sender<Verdict>>,
}

impl Job {
    pub(crate) fn new(laid: Laid, body: Arc<Body>) -> Self {
        Self {
            laid,
            body,
            written: None,
            runtime: None,
            output: None,
            asking: HashMap::new(),
        }
    }

    /// Its inputs, with the values that are there by now.
    pub(crate) fn inputs(&self) -> Vec<Input> {
        let value = |input: &Input| match self.resolve(input) {
            Ok(json) => Input::Value(json.into()),
            Err(_) => input.clone(),
        };
        let inputs = self.laid.inputs.iter();
        inputs
            .map(|input| {
                if let Input::Value(_) = input {
                    input.clone()
                } else {
                    value(input)
                }
            })
            .collect()
    }

    /// Its arguments, all of which are there.
    pub(crate) fn args(&self) -> Result<Vec<Json>, Error> {
        self.laid.inputs.iter().map(|input| self.resolve(input)).collect()
    }

    fn resolve(&self, input: &Input) -> Result<Json, Error> {
        let missing = || Error::new(ErrorKind::Misuse, "an argument of the package is still to come");
        let wire = |place: usize| self.body.output(place).ok_or_else(missing);
        input.resolve(&wire, &|_| Err(missing()))
    }
}
