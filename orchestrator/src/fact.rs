//! What the log of a run says, one envelope at a time, as the folds and the protocol read it.

use neuron::{
    Author, Draft, Envelope, Error, Result, RunId,
    topic::catalog,
    vocabulary::{
        Message,
        clearance::{
            ClearanceDenied, ClearanceGo, ClearanceObjected, PlanAmended, PlanDeclared, PlanDeviated, PlanRedeclared,
        },
        orchestration::{
            EdgeDeclared, OrchestrationCancelled, OrchestrationCompleted, OrchestrationCreated,
            OrchestrationDecomposed, OrchestrationFailed, PackageAssigned,
        },
    },
};
use serde::Deserialize;

use crate::package::Outcome;

/// One thing the log says about a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// The run began.
    Created(OrchestrationCreated),
    /// A round was laid on the board.
    Decomposed(OrchestrationDecomposed),
    /// A package was assigned.
    Assigned(PackageAssigned),
    /// One package waits for another.
    Edge(EdgeDeclared),
    /// A package declared its plan.
    Declared(PlanDeclared),
    /// A package declared another plan than before.
    Redeclared(PlanDeclared),
    /// An undeclared step waits for a ruling.
    Amended(PlanAmended),
    /// An undeclared step ran.
    Deviated(PlanDeviated),
    /// A package or one more step of it may run.
    Go(ClearanceGo),
    /// A plan is to be written again.
    Objected(ClearanceObjected),
    /// A package or one more step of it may not run.
    Denied(ClearanceDenied),
    /// A package ended; this is its answer.
    Ended {
        /// The package.
        package: String,
        /// How it ended.
        outcome: Outcome,
    },
    /// The run ended.
    Concluded(Conclusion),
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Conclusion {
    /// With an output.
    Completed,
    /// With a failure.
    Failed(Error),
    /// By an order.
    Cancelled {
        /// The reason given with the order.
        because: Option<String>,
    },
}

/// The part of a package's answer that the board needs.
#[derive(Deserialize)]
struct Answer {
    key: String,
    error: Option<Error>,
}

impl Fact {
    /// What an envelope of a run says; `None` if it is of no type that the board is made of.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`](neuron::ErrorKind::Schema) if its payload has another shape than its type says.
    pub fn of(envelope: &Envelope) -> Result<Option<Self>, Error> {
        Ok(Some(match envelope.body.kind.as_str() {
            OrchestrationCreated::TYPE => Self::Created(envelope.decode()?),
            OrchestrationDecomposed::TYPE => Self::Decomposed(envelope.decode()?),
            OrchestrationCompleted::TYPE => Self::Concluded(Conclusion::Completed),
            OrchestrationFailed::TYPE => {
                Self::Concluded(Conclusion::Failed(envelope.decode::<OrchestrationFailed>()?.error))
            }
            OrchestrationCancelled::TYPE => {
                let because = envelope.decode::<OrchestrationCancelled>()?.because;
                Self::Concluded(Conclusion::Cancelled { because })
            }
            PackageAssigned::TYPE => Self::Assigned(envelope.decode()?),
            EdgeDeclared::TYPE => Self::Edge(envelope.decode()?),
            PlanDeclared::TYPE => Self::Declared(envelope.decode()?),
            PlanRedeclared::TYPE => Self::Redeclared(envelope.decode::<PlanRedeclared>()?.0),
            PlanAmended::TYPE => Self::Amended(envelope.decode()?),
            PlanDeviated::TYPE => Self::Deviated(envelope.decode()?),
            ClearanceGo::TYPE => Self::Go(envelope.decode()?),
            ClearanceObjected::TYPE => Self::Objected(envelope.decode()?),
            ClearanceDenied::TYPE => Self::Denied(envelope.decode()?),
            "package.completed" | "package.failed" => {
                let answer: Answer = envelope.decode()?;
                Self::Ended {
                    package: answer.key,
                    outcome: answer.error.map_or(Ok(()), Err),
                }
            }
            _ => return Ok(None),
        }))
    }

    /// The package that it is about; none for a whole run, or for an edge.
    pub fn package(&self) -> Option<&str> {
        Some(match self {
            Self::Assigned(assigned) => &assigned.key,
            Self::Declared(plan) | Self::Redeclared(plan) => &plan.package,
            Self::Amended(amended) => &amended.package,
            Self::Deviated(deviated) => &deviated.package,
            Self::Go(go) => &go.package,
            Self::Objected(objected) => &objected.package,
            Self::Denied(denied) => &denied.package,
            Self::Ended { package, .. } => package,
            Self::Created(_) | Self::Decomposed(_) | Self::Edge(_) | Self::Concluded(_) => return None,
        })
    }

    /// The envelope that says it, for what the orchestrator writes itself; `None` for what is written together with a
    /// value that only its holder has: the birth and the end of a run, and the answer of a package.
    ///
    /// # Errors
    /// [`ErrorKind::Malformed`](neuron::ErrorKind::Malformed) if a value has no canonical form.
    pub fn draft(&self, run: &RunId) -> Result<Option<Draft>, Error> {
        let own = || Author::from(run);
        let draft = match self {
            Self::Decomposed(fact) => fact.draft(catalog::lifecycle(run), own())?,
            Self::Assigned(fact) => fact.draft(catalog::packages(run), own())?.key(&fact.key)?,
            Self::Edge(fact) => fact.draft(catalog::packages(run), own())?,
            Self::Declared(fact) => fact.draft(catalog::plan(&fact.token), Author::from(&fact.token))?,
            Self::Redeclared(fact) => {
                PlanRedeclared(fact.clone()).draft(catalog::plan(&fact.token), Author::from(&fact.token))?
            }
            Self::Amended(fact) => fact.draft(catalog::plan(&fact.token), Author::from(&fact.token))?,
            Self::Deviated(fact) => fact.draft(catalog::plan(&fact.token), Author::from(&fact.token))?,
            Self::Go(fact) => fact.draft(catalog::clearance(run), own())?.key(&fact.package)?,
            Self::Objected(fact) => fact.draft(catalog::clearance(run), own())?.key(&fact.package)?,
            Self::Denied(fact) => fact.draft(catalog::clearance(run), own())?.key(&fact.package)?,
            Self::Created(_) | Self::Ended { .. } | Self::Concluded(_) => {
                return Ok(None);
            }
        };
        Ok(Some(draft))
    }
}
