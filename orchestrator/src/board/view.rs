use std::collections::{BTreeMap, HashMap};

use neuron::{
    Error, ErrorKind, Result,
    vocabulary::{
        clearance::PlanDeclared,
        orchestration::{Claims, EdgeDeclared, OrchestrationCreated, PackageAssigned},
    },
};

use crate::{
    fact::{Conclusion, Fact},
    package::{Key, Outcome, Phase},
    ruling::Verdict,
};

/// Everything the log says about the packages of one run, in the order of their assignment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BoardView {
    created: Option<OrchestrationCreated>,
    conclusion: Option<Conclusion>,
    rounds: u64,
    packages: Vec<Package>,
    index: HashMap<Key, usize>,
    edges: Vec<EdgeDeclared>,
}

/// One package as the log shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Package {
    /// How it was assigned.
    pub assigned: PackageAssigned,
    /// The plan it declared last.
    pub plan: Option<PlanDeclared>,
    /// Whether that plan was declared in place of another.
    pub redeclared: bool,
    /// The ruling on that plan.
    pub ruling: Option<Verdict>,
    /// What was objected to so far, oldest first.
    pub objections: Vec<String>,
    /// Undeclared steps that needed a ruling, by their key.
    pub amendments: BTreeMap<String, Amendment>,
    /// Undeclared steps that ran without one.
    pub deviations: u64,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Places in [`BoardView::edges`] of what it waits for.
    before: Vec<usize>,
}

/// A step that its package did not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amendment {
    /// The step's name.
    pub name: String,
    /// What it asks for.
    pub claims: Claims,
    /// The ruling, once there is one.
    pub verdict: Option<Verdict>,
}

impl Package {
    /// What it may hold: the claims of its plan, or else of its attribute, with those of amendments that were granted.
    pub fn claims(&self) -> Claims {
        let plan = self.plan.as_ref().map(|plan| &plan.claims);
        let mut claims = plan.unwrap_or(&self.assigned.claims).clone();
        let granted = |amendment: &&Amendment| matches!(amendment.verdict, Some(Verdict::Go { .. }));
        let amended = self.amendments.values().filter(granted);
        amended.for_each(|amendment| claims.extend(&amendment.claims));
        claims
    }
}

impl BoardView {
    /// How the run began.
    pub fn created(&self) -> Option<&OrchestrationCreated> {
        self.created.as_ref()
    }

    /// How the run ended.
    pub fn conclusion(&self) -> Option<&Conclusion> {
        self.conclusion.as_ref()
    }

    /// Rounds so far.
    pub fn rounds(&self) -> u64 {
        self.rounds
    }

    /// All packages, in the order of their assignment.
    pub fn packages(&self) -> &[Package] {
        &self.packages
    }

    /// All edges, in the order of their declaration.
    pub fn edges(&self) -> &[EdgeDeclared] {
        &self.edges
    }

    /// The place of a package in [`BoardView::packages`].
    pub fn place(&self, key: &str) -> Option<usize> {
        self.index.get(key).copied()
    }

    /// A package.
    pub fn package(&self, key: &str) -> Option<&Package> {
        self.place(key).map(|at| &self.packages[at])
    }

    /// What a package waits for, in the order of declaration.
    pub fn before(&self, package: &Package) -> impl Iterator<Item = &EdgeDeclared> {
        package.before.iter().map(|edge| &self.edges[*edge])
    }

    /// Whether an edge with these ends and this reason was declared, for this parameter and place.
    pub fn has_edge(&self, edge: &EdgeDeclared) -> bool {
        let same = |known: &EdgeDeclared| {
            known.from == edge.from
                && known.why == edge.why
                && known.parameter == edge.parameter
                && known.index == edge.index
        };
        self.package(&edge.to)
            .is_some_and(|package| self.before(package).any(same))
    }

    /// How far a package has come.
    pub fn phase(&self, package: &Package) -> Phase {
        if let Some(outcome) = &package.outcome {
            return Phase::of(outcome);
        }
        let open = |edge: &EdgeDeclared| self.package(&edge.from).is_some_and(|first| first.outcome.is_none());
        match (&package.plan, &package.ruling) {
            (None, _) => Phase::Waiting,
            (Some(_), Some(Verdict::Go { .. })) if self.before(package).any(open) => Phase::Cleared,
            (Some(_), Some(Verdict::Go { .. })) => Phase::Running,
            (Some(_), Some(Verdict::Denied { .. })) => Phase::Denied,
            (Some(_), None) => Phase::Declared,
        }
    }

    /// Takes in the next thing that the log says.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] if it speaks of a package that was never assigned.
    pub fn record(&mut self, fact: &Fact) -> Result<(), Error> {
        match fact {
            Fact::Created(created) => self.created = Some(created.clone()),
            Fact::Decomposed(round) => self.rounds = self.rounds.max(round.round),
            Fact::Assigned(assigned) => self.assign(assigned),
            Fact::Edge(edge) => self.edge(edge)?,
            Fact::Declared(plan) | Fact::Redeclared(plan) => {
                let package = self.named(&plan.package)?;
                package.plan = Some(plan.clone());
                package.redeclared = matches!(fact, Fact::Redeclared(_));
                package.ruling = None;
            }
            Fact::Amended(amended) => {
                let amendment = Amendment {
                    name: amended.name.clone(),
                    claims: amended.claims.clone(),
                    verdict: None,
                };
                let known = &mut self.named(&amended.package)?.amendments;
                known.entry(amended.step.clone()).or_insert(amendment);
            }
            Fact::Deviated(deviated) => self.named(&deviated.package)?.deviations += 1,
            Fact::Objected(objected) => self.named(&objected.package)?.objections.push(objected.because.clone()),
            Fact::Go(go) => {
                let because = go.because.clone();
                self.rule(&go.package, go.amendment.as_deref(), Verdict::Go { because })?;
            }
            Fact::Denied(denied) => {
                let (because, with) = (denied.because.clone(), denied.with.as_deref().map(Key::from));
                self.rule(
                    &denied.package,
                    denied.amendment.as_deref(),
                    Verdict::Denied { because, with },
                )?;
            }
            Fact::Ended { package, outcome } => self.named(package)?.outcome = Some(outcome.clone()),
            Fact::Concluded(conclusion) => self.conclusion = Some(conclusion.clone()),
        }
        Ok(())
    }

    fn assign(&mut self, assigned: &PackageAssigned) {
        if let Some(at) = self.place(&assigned.key) {
            // Another attempt of the same package, with another token.
            self.packages[at].assigned = assigned.clone();
            return;
        }
        self.index.insert(assigned.key.as_str().into(), self.packages.len());
        self.packages.push(Package {
            assigned: assigned.clone(),
            plan: None,
            redeclared: false,
            ruling: None,
            objections: Vec::new(),
            amendments: BTreeMap::new(),
            deviations: 0,
            outcome: None,
            before: Vec::new(),
        });
    }

    fn edge(&mut self, edge: &EdgeDeclared) -> Result<(), Error> {
        let next = self.edges.len();
        self.named(&edge.from)?;
        self.named(&edge.to)?.before.push(next);
        self.edges.push(edge.clone());
        Ok(())
    }

    fn rule(&mut self, package: &str, amendment: Option<&str>, verdict: Verdict) -> Result<(), Error> {
        let package = self.named(package)?;
        match amendment {
            None => package.ruling = Some(verdict),
            Some(step) => {
                if let Some(amendment) = package.amendments.get_mut(step) {
                    amendment.verdict = Some(verdict);
                }
            }
        }
        Ok(())
    }

    fn named(&mut self, key: &str) -> Result<&mut Package, Error> {
        let at = self.place(key).ok_or_else(|| {
            let why = format!("the log speaks of package `{key}`, which was never assigned in this run");
            Error::new(ErrorKind::Corrupt, why)
        })?;
        Ok(&mut self.packages[at])
    }
}
