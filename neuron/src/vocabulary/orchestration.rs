//! What a run says: its life, its packages and their edges.
//!
//! Packages are named by their key: the identity of the `assign` that made them, local to their run. Edges are envelopes
//! of their own; nothing here lists another package.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{messages, present};
use crate::{Error, Json, RunId, TokenId};

messages! {
    OrchestrationCreated "orchestration.created";
    OrchestrationDecomposed "orchestration.decomposed";
    OrchestrationCompleted "orchestration.completed";
    OrchestrationFailed "orchestration.failed";
    OrchestrationCancelled "orchestration.cancelled";
    PackageAssigned "package.assigned";
    EdgeDeclared "edge.declared";
}

/// A run begins. On `orchestration.{id}.lifecycle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationCreated {
    /// The orchestrator.
    pub name: String,
    /// Its arguments by parameter; absent when they stand in an artifact of kind `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub args: Option<Json>,
    /// The program that created it: package name and version, with the build's hash where known.
    pub build: String,
    /// Hash over the names, parameters and options of everything that was registered.
    pub registry: String,
    /// The run whose recorded answers it begins with, if it is a fork. The cause is the beginning of that run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<Fork>,
}

/// Where a run that is a fork parts from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Fork {
    /// The other run.
    pub run: RunId,
    /// The `pos` up to which what is on the log of that run holds for this one.
    pub at: u64,
}

/// A round of packages was laid on the board. On `orchestration.{id}.lifecycle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationDecomposed {
    /// The round, from 1.
    pub round: u64,
    /// How many packages are new in it.
    pub packages: u64,
}

/// A run ended well. On `orchestration.{id}.lifecycle`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationCompleted {
    /// What it gave; absent when it stands in an artifact of kind `payload`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Json>,
}

/// A run failed. On `orchestration.{id}.lifecycle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationFailed {
    /// Why.
    #[schemars(with = "Json")]
    pub error: Error,
}

/// A run was cancelled, and nothing of it runs any more. On `orchestration.{id}.lifecycle`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrchestrationCancelled {
    /// The reason given with the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// What executes a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PackageKind {
    /// An agent's body.
    Agent,
    /// The rows of a plan.
    Plan,
    /// Another orchestrator, whose packages stand on the same board.
    Orchestrator,
}

/// What work asks for while it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claims {
    /// Resources it shares with others, with how many of each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub uses: BTreeMap<String, u32>,
    /// Resources it holds alone.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub owns: BTreeSet<String>,
    /// Steps that must never happen twice, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub once: BTreeSet<String>,
}

impl Claims {
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.uses.is_empty() && self.owns.is_empty() && self.once.is_empty()
    }

    /// Adds what another asks for; of a counted resource the larger number is enough, for rows of one package wait for
    /// each other.
    pub fn extend(&mut self, other: &Self) {
        for (resource, count) in &other.uses {
            let held = self.uses.entry(resource.clone()).or_default();
            *held = (*held).max(*count);
        }
        self.owns.extend(other.owns.iter().cloned());
        self.once.extend(other.once.iter().cloned());
    }

    /// The first resource, by name, that the two cannot hold at once: one owns what the other owns or uses.
    pub fn conflict<'a>(&'a self, other: &'a Self) -> Option<&'a str> {
        let ours = self.owns.iter().filter(|own| other.touches(own));
        let theirs = other.owns.iter().filter(|own| self.touches(own));
        ours.chain(theirs).map(String::as_str).min()
    }

    /// Whether everything that another asks for is asked for here.
    pub fn covers(&self, other: &Self) -> bool {
        let used = |(resource, count): (&String, &u32)| {
            self.owns.contains(resource) || self.uses.get(resource).is_some_and(|held| held >= count)
        };
        other.uses.iter().all(used) && other.owns.is_subset(&self.owns) && other.once.is_subset(&self.once)
    }

    /// Whether it owns or uses a resource.
    pub fn touches(&self, resource: &str) -> bool {
        self.owns.contains(resource) || self.uses.contains_key(resource)
    }
}

/// What work is expected to take; what is not known is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Expected {
    /// Model tokens, in and out.
    #[serde(default)]
    pub tokens: u64,
    /// Seconds on the clock.
    #[serde(default)]
    pub seconds: u64,
    /// Tool calls.
    #[serde(default)]
    pub tool_calls: u64,
}

/// A package was laid on the board. On `orchestration.{id}.packages`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PackageAssigned {
    /// The scope whose body assigned it: the run, or the key of the orchestrator's own call.
    pub scope: String,
    /// Its key: the identity of the call that assigned it.
    pub key: String,
    /// The agent, plan or orchestrator.
    pub name: String,
    /// Which of the three.
    pub kind: PackageKind,
    /// Its place among equal ones of its scope, from 1.
    pub occurrence: u32,
    /// Who executes it.
    pub token: TokenId,
    /// Attempts of the package so far, this one included.
    pub attempt: u32,
    /// The arguments that were given as values, by parameter; absent when they stand in an artifact of kind `payload`.
    /// Those that come from packages are edges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<BTreeMap<String, Json>>,
    /// What its attribute asks for.
    #[serde(default)]
    pub claims: Claims,
    /// What its attribute expects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Expected>,
    /// Higher is more urgent; 0 unless given.
    #[serde(default)]
    pub priority: i32,
}

/// Why one package waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum EdgeReason {
    /// The output of the one is an argument of the other.
    Value,
    /// The orchestrator asked for this order.
    After,
    /// Clearance found that they cannot run at once.
    Clearance,
}

/// One package waits for another. On `orchestration.{id}.packages`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EdgeDeclared {
    /// The package that goes first.
    pub from: String,
    /// The package that waits.
    pub to: String,
    /// Why.
    pub why: EdgeReason,
    /// The parameter that takes the output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<String>,
    /// Its place in the list that the parameter takes, from 0; absent when the parameter takes the output itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The resource both want.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The reason as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}
