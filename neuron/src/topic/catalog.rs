//! The topics that are built in: one constructor each. Their contracts are part of the format; no envelope declares them.

use super::{Contract, Pattern, Topic};
use crate::{ConsumerId, ConversationId, ProjectId, RequestId, RunId, TokenId};

/// How a reader is told that a built-in name always parses.
const PARSES: &str = "an id is one checked segment, so the name parses";

#[allow(clippy::expect_used, reason = "the names are built from constants and checked ids")]
fn topic(name: &str) -> Topic {
    Topic::new(name).expect(PARSES)
}

/// Declarations of user topics; key = name or pattern.
pub fn topics() -> Topic {
    topic("$topics")
}

/// Claims, hand-overs and releases of owned names; key = name.
pub fn leases() -> Topic {
    topic("$leases")
}

/// Supersession and settlement of artifacts.
pub fn artifacts() -> Topic {
    topic("$artifacts")
}

/// Claims on resources; key = resource.
pub fn claims() -> Topic {
    topic("$claims")
}

/// Orders about builds of a program; key = build.
pub fn builds() -> Topic {
    topic("$builds")
}

/// The setup of a named durable consumer, its position, and what it says of single messages.
pub fn consumer(name: &ConsumerId) -> Topic {
    topic(&format!("$consumer.{name}"))
}

/// Envelopes a stage refused or a consumer could not handle; key = source topic and id.
pub fn dead_letters() -> Topic {
    topic("deadletters")
}

/// Created, decomposed, completed, cancelled; and the answers to the orchestrator's body.
pub fn lifecycle(run: &RunId) -> Topic {
    topic(&format!("orchestration.{run}.lifecycle"))
}

/// Decomposition, edges and resources.
pub fn packages(run: &RunId) -> Topic {
    topic(&format!("orchestration.{run}.packages"))
}

/// Rulings and renegotiations.
pub fn clearance(run: &RunId) -> Topic {
    topic(&format!("orchestration.{run}.clearance"))
}

/// Pause, resume and cancel of a whole run.
pub fn run_control(run: &RunId) -> Topic {
    topic(&format!("orchestration.{run}.control"))
}

/// Declared step plans.
pub fn plan(token: &TokenId) -> Topic {
    topic(&format!("agent.{token}.plan"))
}

/// The checkpoint journal and ledger of costs.
pub fn steps(token: &TokenId) -> Topic {
    topic(&format!("agent.{token}.steps"))
}

/// Pause, resume, cancel, and rulings on steps in doubt. Durable on purpose: a cancel never evaporates.
pub fn control(token: &TokenId) -> Topic {
    topic(&format!("agent.{token}.control"))
}

/// Prompts admitted while a run is active.
pub fn steer(run: &RunId) -> Topic {
    topic(&format!("session.{run}.steer"))
}

/// A conversation.
pub fn conversation(id: &ConversationId) -> Topic {
    topic(&format!("conversation.{id}"))
}

/// Items of a project.
pub fn backlog(project: &ProjectId) -> Topic {
    topic(&format!("project.{project}.backlog"))
}

/// Tokens of a model's reply as they come.
pub fn stream(request: &RequestId) -> Topic {
    topic(&format!("stream.{request}"))
}

/// Heartbeats; their absence is the crash signal.
pub fn presence(token: &TokenId) -> Topic {
    topic(&format!("presence.{token}"))
}

/// Smoothed gauges of a run; the last one is kept.
pub fn progress(run: &RunId) -> Topic {
    topic(&format!("progress.{run}"))
}

/// Hand-over between two sibling threads.
pub fn scratch(pair: &RequestId) -> Topic {
    topic(&format!("scratch.{pair}"))
}

/// The built-in patterns with their contracts.
const CATALOG: [(&str, Contract); 21] = [
    ("$topics", Contract::Durable),
    ("$leases", Contract::Durable),
    ("$artifacts", Contract::Durable),
    ("$claims", Contract::Durable),
    ("$builds", Contract::Durable),
    ("$consumer.*", Contract::Durable),
    ("deadletters", Contract::Durable),
    ("orchestration.*.lifecycle", Contract::Durable),
    ("orchestration.*.packages", Contract::Durable),
    ("orchestration.*.clearance", Contract::Durable),
    ("orchestration.*.control", Contract::Durable),
    ("agent.*.plan", Contract::Durable),
    ("agent.*.steps", Contract::Durable),
    ("agent.*.control", Contract::Durable),
    ("session.*.steer", Contract::Durable),
    ("conversation.*", Contract::Durable),
    ("project.*.backlog", Contract::Durable),
    ("stream.*", Contract::EPHEMERAL),
    ("presence.*", Contract::EPHEMERAL),
    ("progress.*", Contract::RETAINED),
    ("scratch.*", Contract::EPHEMERAL),
];

/// Every built-in pattern with its contract.
#[allow(clippy::missing_panics_doc, reason = "the patterns are constants that parse")]
pub fn all() -> impl Iterator<Item = (Pattern, Contract)> {
    #[allow(clippy::expect_used, reason = "the patterns are constants that parse")]
    CATALOG
        .into_iter()
        .map(|(pattern, contract)| (Pattern::new(pattern).expect(PARSES), contract))
}

/// The contract of a built-in topic; `None` if the name is not in the catalogue.
pub fn contract(topic: &Topic) -> Option<Contract> {
    use std::sync::LazyLock;
    static ALL: LazyLock<Vec<(Pattern, Contract)>> = LazyLock::new(|| all().collect());
    ALL.iter()
        .find(|(pattern, _)| pattern.matches(topic))
        .map(|(_, contract)| *contract)
}
