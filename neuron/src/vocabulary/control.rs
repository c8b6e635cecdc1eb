//! Orders and rulings from outside, for a run or one token. An order is durable, so that it is never missed, only late.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{messages, present};
use crate::Json;

messages! {
    ControlPaused "control.paused";
    ControlResumed "control.resumed";
    ControlCancelled "control.cancelled";
    ControlResolved "control.resolved";
    ControlAnswered "control.answered";
    ControlRequested "control.requested";
}

/// Start nothing more. An order, on `agent.{token}.control` or `orchestration.{id}.control`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPaused {
    /// The reason, for whoever reads the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The key of the thread that alone is meant, with what is below it; only on a token's topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// Go on. An order, on the same topics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlResumed {
    /// The reason, for whoever reads the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The key of the thread that alone is meant, with what is below it; only on a token's topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// Stop for good. An order, on the same topics.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlCancelled {
    /// The reason, for whoever reads the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The key of the thread that alone is meant, with what is below it; only on a token's topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// What is to become of a step that waits for a ruling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StepRuling {
    /// It has happened; its output is given.
    Done,
    /// It has not happened; it runs again.
    Redo,
    /// It counts as failed.
    Fail,
}

/// A ruling on a step that waits. A request, on `agent.{token}.control` or `orchestration.{id}.control`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlResolved {
    /// Key of the step.
    pub key: String,
    /// What is to become of it.
    pub ruling: StepRuling,
    /// Its output, with `done`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "present")]
    pub output: Option<Json>,
    /// The reason, for whoever reads the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// A person's answer to a question. A request, on the control topic of whoever asked: the token's own, or the run's for
/// its orchestrator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlAnswered {
    /// Key of the question.
    pub key: String,
    /// The answer.
    pub answer: Json,
    /// The reason, for whoever reads the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
}

/// An update for a body that runs. A request, on the control topic of whoever takes updates of this name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlRequested {
    /// The name of the update.
    pub update: String,
    /// What it asks.
    pub request: Json,
}
