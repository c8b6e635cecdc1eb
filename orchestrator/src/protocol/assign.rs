//! Beat 1: a body has assigned packages, and is idle.

use std::collections::{BTreeMap, BTreeSet};

use neuron::{
    Error, Result,
    vocabulary::orchestration::{EdgeDeclared, EdgeReason, OrchestrationDecomposed},
};

use super::{
    beat::Beat,
    event::Assignment,
    state::{Live, Stage, illegal},
};
use crate::{fact::Fact, package::Key};

impl Beat<'_> {
    pub(super) fn assigned(&mut self, within: Option<&Key>, packages: &[Assignment]) -> Result<(), Error> {
        if self.state.conclusion.is_some() {
            return Err(illegal("packages were assigned after the run had ended"));
        }
        let within = within.map(|key| self.state.find(key)).transpose()?;
        let is_new = |one: &&Assignment| self.state.board.place(&one.assigned.key).is_none();
        let fresh = packages.iter().filter(is_new).count();
        if fresh > 0 {
            self.record(Fact::Decomposed(OrchestrationDecomposed {
                round: self.state.board.rounds() + 1,
                packages: fresh as u64,
            }))?;
        }
        let mut places = Vec::with_capacity(packages.len());
        for assignment in packages {
            places.push(self.lay(within, assignment)?);
        }
        for (place, assignment) in places.iter().zip(packages) {
            self.connect(*place, &assignment.edges)?;
        }
        self.reconnect(&places);
        for place in places {
            self.meet(place)?;
        }
        self.settle()
    }

    /// Puts a package on the board, or finds it there.
    fn lay(&mut self, within: Option<usize>, assignment: &Assignment) -> Result<usize, Error> {
        let key = assignment.assigned.key.as_str();
        if self.state.board.place(key).is_none() {
            self.record(Fact::Assigned(assignment.assigned.clone()))?;
        }
        let place = self.state.board.place(key);
        let place = place.ok_or_else(|| illegal(format!("package `{key}` was laid on the board and is not there")))?;
        let live = Live {
            key: key.into(),
            stage: Stage::Asked,
            known: assignment.known,
            within,
            children: BTreeSet::new(),
            needs: BTreeMap::new(),
            complete: false,
            needed_by: BTreeSet::new(),
            body: None,
            claims: self.state.package(place).claims(),
        };
        if self.state.live.insert(place, live).is_some() {
            return Err(illegal(format!("package `{key}` was assigned twice")));
        }
        self.state.open.insert(place);
        if let Some(within) = within {
            self.state.live(within).children.insert(place);
        }
        Ok(place)
    }

    fn connect(&mut self, place: usize, edges: &[EdgeDeclared]) -> Result<(), Error> {
        for edge in edges {
            let first = self.state.find(&edge.from)?;
            if self.state.find(&edge.to)? != place {
                return Err(illegal(format!(
                    "an edge of package `{}` was given with another",
                    edge.to
                )));
            }
            if !self.state.board.has_edge(edge) {
                self.record(Fact::Edge(edge.clone()))?;
            }
            self.wait(place, first, edge.why);
        }
        Ok(())
    }

    /// Takes up the edges that clearance declared before a restart, where both ends are here.
    fn reconnect(&mut self, places: &[usize]) {
        let new: BTreeSet<usize> = places.iter().copied().collect();
        let here = |(first, place): &&(usize, usize)| {
            let live = |end| self.state.live.contains_key(end);
            (new.contains(first) || new.contains(place)) && live(first) && live(place)
        };
        let orders: Vec<_> = self.state.orders.iter().filter(here).copied().collect();
        for (first, place) in orders {
            if self.state.stage(place) != Stage::Running {
                self.wait(place, first, EdgeReason::Clearance);
            }
        }
    }

    pub(super) fn wait(&mut self, place: usize, first: usize, why: EdgeReason) {
        match (&self.state.package(first).outcome, why) {
            (Some(Ok(())), _) | (Some(Err(_)), EdgeReason::Clearance) => return,
            // It has failed already, and what waits for it fails with it.
            (Some(Err(_)), _) => drop(self.state.touched.insert(first)),
            (None, _) => {}
        }
        self.state.live(place).needs.entry(first).or_default().insert(why);
        self.state.live(first).needed_by.insert(place);
    }

    /// What a package finds: its answer on the log, or a request for its plan.
    fn meet(&mut self, place: usize) -> Result<(), Error> {
        let package = self.state.package(place);
        if let Some(outcome) = package.outcome.clone() {
            self.close(place, &outcome);
            return Ok(());
        }
        if let Some(cancellation) = self.cancelled(place) {
            return self.end(place, Err(cancellation.answer()));
        }
        self.request(place);
        Ok(())
    }
}
