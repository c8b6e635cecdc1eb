//! Beat 3: what was declared is laid side by side, and ruled on.

use std::collections::BTreeMap;

use neuron::{
    Error, ErrorKind, Result,
    vocabulary::{
        clearance::{ClearanceDenied, ClearanceGo, PlanAmended},
        orchestration::{Claims, EdgeDeclared, EdgeReason},
    },
};

use super::{
    beat::Beat,
    command::Command,
    state::{Stage, State, illegal},
};
use crate::{
    clearance::{self, Laid, Round, Standing},
    fact::Fact,
    package::Key,
    ruling::{Ruling, Verdict},
};

impl Beat<'_> {
    /// Rules on everything that is declared, once nobody is still writing a plan.
    pub(super) fn clear(&mut self) -> Result<(), Error> {
        if self.state.declared.is_empty() || !self.state.asked.is_empty() {
            return Ok(());
        }
        let rulings = clearance::review(&round(self.state));
        for ruling in rulings {
            self.rule(ruling)?;
        }
        Ok(())
    }

    fn rule(&mut self, ruling: Ruling) -> Result<(), Error> {
        let round = self.state.board.rounds();
        match ruling {
            Ruling::Go { package, because } => {
                let place = self.state.find(&package)?;
                if self.state.stage(place) != Stage::Declared {
                    return Ok(());
                }
                self.record(Fact::Go(ClearanceGo {
                    package: package.to_string(),
                    token: self.state.package(place).assigned.token.clone(),
                    round,
                    because,
                    amendment: None,
                }))?;
                self.state.declared.remove(&place);
                self.cleared(place);
                Ok(())
            }
            Ruling::After {
                package,
                first,
                resource,
                because,
            } => self.order(&package, &first, resource, because),
            Ruling::Denied { package, because, with } => {
                let place = self.state.find(&package)?;
                if self.state.stage(place) == Stage::Ended {
                    return Ok(());
                }
                self.record(Fact::Denied(ClearanceDenied {
                    package: package.to_string(),
                    token: self.state.package(place).assigned.token.clone(),
                    round,
                    because: because.clone(),
                    with: with.as_deref().map(Into::into),
                    amendment: None,
                }))?;
                self.end(place, Err(Error::new(ErrorKind::Denied, because)))
            }
        }
    }

    /// Injects an edge.
    pub(super) fn order(&mut self, package: &Key, first: &Key, resource: String, because: String) -> Result<(), Error> {
        let (place, first_place) = (self.state.find(package)?, self.state.find(first)?);
        let edge = EdgeDeclared {
            from: first.to_string(),
            to: package.to_string(),
            why: EdgeReason::Clearance,
            parameter: None,
            index: None,
            resource: Some(resource),
            because: Some(because),
        };
        if !self.state.board.has_edge(&edge) {
            self.record(Fact::Edge(edge))?;
        }
        self.wait(place, first_place, EdgeReason::Clearance);
        Ok(())
    }

    /// A package that runs wants one more step. A ruling that stands on the log stands.
    pub(super) fn amended(&mut self, key: &Key, step: String, name: String, claims: &Claims) -> Result<(), Error> {
        let place = self.state.find(key)?;
        if self.state.stage(place) != Stage::Running {
            return Err(illegal(format!("package `{key}` wants step `{name}` and does not run")));
        }
        let known = self.state.package(place).amendments.get(&step);
        let ruled = known.and_then(|amendment| amendment.verdict.clone());
        if known.is_none() {
            self.record(Fact::Amended(PlanAmended {
                package: key.to_string(),
                token: self.state.package(place).assigned.token.clone(),
                step: step.clone(),
                name,
                claims: claims.clone(),
                because: Some("its package did not declare it".into()),
            }))?;
        }
        let verdict = match ruled {
            Some(verdict) => verdict,
            None => self.amend(place, &step, claims)?,
        };
        let package = key.clone();
        self.commands.push(Command::Rule { package, step, verdict });
        Ok(())
    }

    fn amend(&mut self, place: usize, step: &str, claims: &Claims) -> Result<Verdict, Error> {
        let state = &*self.state;
        let others = state
            .live
            .iter()
            .filter(|(other, live)| **other != place && live.stage == Stage::Running);
        let others =
            others.map(|(other, live)| (&live.key, state.package(*other).assigned.name.as_str(), &live.claims));
        let verdict = clearance::amend(claims, others);
        let (package, token) = (
            state.live[&place].key.to_string(),
            state.package(place).assigned.token.clone(),
        );
        let (round, amendment) = (state.board.rounds(), Some(step.to_string()));
        match verdict.clone() {
            Verdict::Go { because } => {
                self.record(Fact::Go(ClearanceGo {
                    package,
                    token,
                    round,
                    because,
                    amendment,
                }))?;
                self.state.live(place).claims.extend(claims);
                self.hold(place, claims);
            }
            Verdict::Denied { because, with } => {
                let with = with.as_deref().map(Into::into);
                self.record(Fact::Denied(ClearanceDenied {
                    package,
                    token,
                    round,
                    because,
                    with,
                    amendment,
                }))?;
            }
        }
        Ok(verdict)
    }
}

/// The round as clearance sees it: what is open, by place, and what waits for what in it.
fn round(state: &State) -> Round<'_> {
    let places: BTreeMap<usize, usize> = state.open.iter().copied().zip(0..).collect();
    let laid = state.open.iter().map(|place| {
        let live = &state.live[place];
        Laid {
            key: &live.key,
            name: &state.package(*place).assigned.name,
            claims: &live.claims,
            standing: match live.stage {
                Stage::Declared => Standing::New,
                Stage::Cleared => Standing::Cleared,
                Stage::Running => Standing::Running,
                Stage::Asked | Stage::Waiting | Stage::Ended => Standing::Silent,
            },
            known: live.known,
            within: live.within.and_then(|within| places.get(&within).copied()),
            nests: state.nests(*place),
        }
    });
    let needs = state.open.iter().flat_map(|place| {
        let first = state.live[place]
            .needs
            .keys()
            .filter_map(|first| places.get(first).copied());
        first.map(|first| (first, places[place]))
    });
    Round {
        packages: laid.collect(),
        edges: needs.collect(),
    }
}
