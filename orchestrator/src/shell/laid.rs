use std::collections::BTreeMap;

use neuron::{
    Error, Json, Result,
    plan::Input,
    vocabulary::orchestration::{EdgeDeclared, EdgeReason},
};

use super::assign::Work;
use crate::package::Key;

/// A package as its body laid it on the board.
pub(crate) struct Laid {
    pub(crate) key: Key,
    pub(crate) work: Work,
    /// Where its arguments come from; a wire names a package by its place among those of the body.
    pub(crate) inputs: Vec<Input>,
    /// Packages that go first, though nothing flows from them.
    pub(crate) after: Vec<usize>,
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
    pub(crate) fn edges(&self, key: impl Fn(usize) -> Option<Key>) -> Vec<EdgeDeclared> {
        let mut edges = Vec::new();
        let mut add = |place: usize, why, parameter: Option<&str>, index: Option<usize>| {
            let Some(from) = key(place) else { return };
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
