use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use neuron::{
    Error, ErrorKind, Json, Result,
    plan::{Input, Written},
    scope::Runtime,
    vocabulary::orchestration::{EdgeDeclared, EdgeReason},
};
use tokio::sync::oneshot;

use super::{assign::Work, body::Body};
use crate::{package::Key, ruling::Verdict};

/// A package as its body laid it on the board.
pub(crate) struct Laid {
    pub(crate) key: Key,
    pub(crate) work: Work,
    /// Where its arguments come from; a wire names a package by its place among those of the body.
    pub(crate) inputs: Vec<Input>,
    /// Packages that go first, though nothing flows from them.
    pub(crate) after: Vec<usize>,
}

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

impl Laid {
    /// The arguments that were given as values, as they are recorded; what comes from a package stands as `null` in a
    /// list, and not at all alone.
    pub(crate) fn literals(&self) -> Result<BTreeMap<String, Json>, Error> {
        let mut literals = BTreeMap::new();
        for (param, input) in self.work.params.iter().zip(&self.inputs) {
            let literal = match input {
                Input::Value(given) => given.recorded().clone(),
                Input::List(list) => {
                    let elements = list.iter().map(|input| match input {
                        Input::Value(given) => given.recorded().clone(),
                        _ => Json::null(),
                    });
                    Json::of(&elements.collect::<Vec<_>>())?
                }
                _ => continue,
            };
            literals.insert(param.name().into(), literal);
        }
        Ok(literals)
    }

    /// What it waits for, one edge each.
    pub(crate) fn edges(&self, body: &Body) -> Vec<EdgeDeclared> {
        let mut edges = Vec::new();
        let mut add = |place: usize, why, parameter: Option<&str>, index: Option<usize>| {
            let Some(from) = body.key(place) else { return };
            let edge = EdgeDeclared {
                from: from.to_string(),
                to: self.key.to_string(),
                why,
                parameter: parameter.map(Into::into),
                index: index.map(|index| index as u64),
                resource: None,
                because: None,
            };
            if !edges.contains(&edge) {
                edges.push(edge);
            }
        };
        for (param, input) in self.work.params.iter().zip(&self.inputs) {
            let name = Some(param.name());
            match input {
                Input::Value(_) | Input::Param(_) => {}
                Input::Wire(place) => add(*place, EdgeReason::Value, name, None),
                Input::Wires(places) => {
                    let places = places.iter().enumerate();
                    places.for_each(|(at, place)| add(*place, EdgeReason::Value, name, Some(at)));
                }
                Input::List(list) => {
                    for (at, input) in list.iter().enumerate() {
                        let wires = input.wires().into_iter();
                        wires.for_each(|place| add(place, EdgeReason::Value, name, Some(at)));
                    }
                }
            }
        }
        self.after
            .iter()
            .for_each(|place| add(*place, EdgeReason::After, None, None));
        edges
    }
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
