use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Input;
use crate::vocabulary::orchestration::{Claims, Expected};

/// A plan as it is declared: what will run, in which order, on what. Equal plans are equal values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Outline {
    /// The steps. A row names others by their place in this list, from 0.
    pub rows: Vec<Row>,
    /// Where the plan's own output comes from.
    pub result: Input,
}

/// One declared step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The step's name.
    pub step: String,
    /// Where its arguments come from, in the order of its parameters.
    pub inputs: Vec<Input>,
    /// It runs only if this turns out true; otherwise it gives nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Input>,
    /// Rows that must have ended before it, though nothing flows from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<usize>,
    /// It runs for each element of its only input.
    #[serde(default, skip_serializing_if = "is_false")]
    pub each: bool,
    /// Of these, at most so many at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_once: Option<NonZeroU32>,
    /// Resources that are shared or counted, with how many of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, u32>,
    /// Resources that are held alone.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub owns: BTreeSet<String>,
    /// It must never happen twice.
    #[serde(default, skip_serializing_if = "is_false")]
    pub once: bool,
    /// Equal work of several packages may be done for all of them at once.
    #[serde(default, skip_serializing_if = "is_false")]
    pub share: bool,
    /// What it is expected to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Expected>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde's skip_serializing_if passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

impl Outline {
    /// What all rows ask for together.
    pub fn claims(&self) -> Claims {
        let mut claims = Claims::default();
        self.rows.iter().for_each(|row| claims.extend(&row.claims()));
        claims
    }

    /// Whether a step of this name is declared.
    pub fn declares(&self, step: &str) -> bool {
        self.rows.iter().any(|row| row.step == step)
    }
}

impl Row {
    /// What it asks for while it runs.
    pub fn claims(&self) -> Claims {
        Claims {
            uses: self.uses.clone(),
            owns: self.owns.clone(),
            once: self.once.then(|| self.step.clone()).into_iter().collect(),
        }
    }

    /// The rows that must have ended before this one, each once.
    pub fn edges(&self) -> Vec<usize> {
        let inputs = self.inputs.iter().chain(&self.when).flat_map(Input::wires);
        let mut edges: Vec<_> = inputs.chain(self.after.iter().copied()).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}
