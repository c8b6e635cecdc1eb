//! The orchestrator: who is given what.

use orchestrator::prelude::*;

use crate::agents;
use crate::git::Subject;

/// Has the five look at one commit beside one another, and the sixth say what it means together.
///
/// The five are not awaited here: their packages are passed on, so everything is on the board before anything runs.
#[orchestrator]
pub(crate) async fn review(
    board: &Board,
    /// What is reviewed.
    subject: Subject,
) -> Result<ArtifactRef> {
    let history = board.assign(agents::history, subject.clone());
    let structure = board.assign(agents::structure, subject.clone());
    let risk = board.assign(agents::risk, subject.clone());
    let dependencies = board.assign(agents::dependencies, subject.clone());
    let docs = board.assign(agents::docs, subject.clone());
    let findings = (subject, history, structure, risk, dependencies, docs);
    Ok(board.assign(agents::synthesis, findings).await?)
}
