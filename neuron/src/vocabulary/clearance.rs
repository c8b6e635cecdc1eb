//! Declared plans, and what clearance rules on them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    messages,
    orchestration::{Claims, Expected},
};
use crate::{Json, TokenId};

messages! {
    PlanDeclared "plan.declared";
    PlanRedeclared "plan.redeclared";
    PlanAmended "plan.amended";
    PlanDeviated "plan.deviated";
    ClearanceGo "clearance.go";
    ClearanceObjected "clearance.objected";
    ClearanceDenied "clearance.denied";
}

/// A package says what it will do. On `agent.{token}.plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDeclared {
    /// The package.
    pub package: String,
    /// Who executes it.
    pub token: TokenId,
    /// The outline: its rows and where its own output comes from; one row for an agent without a plan.
    pub outline: Json,
    /// Whether it is one step that nobody can look into.
    pub opaque: bool,
    /// What the rows and the attribute ask for together.
    #[serde(default)]
    pub claims: Claims,
    /// What the rows, or else the attribute, expect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Expected>,
}

/// A package that had declared its plan now has another one, and must be cleared again. On `agent.{token}.plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct PlanRedeclared(pub PlanDeclared);

/// A step that its package did not declare waits for a ruling. On `agent.{token}.plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanAmended {
    /// The package.
    pub package: String,
    /// Who executes it.
    pub token: TokenId,
    /// Key of the step.
    pub step: String,
    /// Name of the step.
    pub name: String,
    /// What it asks for beyond what was cleared.
    #[serde(default)]
    pub claims: Claims,
    /// Why it needs a ruling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A step that its package did not declare runs all the same, for it claims nothing. On `agent.{token}.plan`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanDeviated {
    /// The package.
    pub package: String,
    /// Who executes it.
    pub token: TokenId,
    /// Key of the step.
    pub step: String,
    /// Name of the step.
    pub name: String,
}

/// A package, or one more step of it, may run. On `orchestration.{id}.clearance`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearanceGo {
    /// The package.
    pub package: String,
    /// Who executes it.
    pub token: TokenId,
    /// The round in which it was laid beside the others, from 1.
    pub round: u64,
    /// Why.
    pub because: String,
    /// Key of the step, when one more step is ruled on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amendment: Option<String>,
}

/// A plan is to be written again. On `orchestration.{id}.clearance`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearanceObjected {
    /// The package.
    pub package: String,
    /// Who executes it.
    pub token: TokenId,
    /// The round in which it was laid beside the others, from 1.
    pub round: u64,
    /// What is wrong.
    pub because: String,
    /// The package it collides with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

/// A package, or one more step of it, may not run. On `orchestration.{id}.clearance`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClearanceDenied {
    /// The package.
    pub package: String,
    /// Who would have executed it.
    pub token: TokenId,
    /// The round in which it was laid beside the others, from 1.
    pub round: u64,
    /// Why not.
    pub because: String,
    /// The package it collides with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
    /// Key of the step, when one more step is ruled on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub amendment: Option<String>,
}
