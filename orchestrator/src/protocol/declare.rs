//! Beat 2: a package says what it will do, and waits.

use neuron::{Error, ErrorKind, Result, vocabulary::clearance::PlanDeclared};

use super::{
    beat::Beat,
    command::Command,
    event::Planned,
    state::{Stage, illegal},
};
use crate::{fact::Fact, package::Key, ruling::Verdict};

impl Beat<'_> {
    /// Asks a package for its plan.
    pub(super) fn request(&mut self, place: usize) {
        let live = self.state.live(place);
        live.stage = Stage::Asked;
        live.complete = !live.waits_for_value();
        let package = live.key.clone();
        self.state.asked.insert(place);
        self.commands.push(Command::Plan { package });
    }

    pub(super) fn planned(&mut self, key: &Key, plan: Planned) -> Result<(), Error> {
        let place = self.state.find(key)?;
        if !self.state.asked.remove(&place) {
            return Err(illegal(format!("package `{key}` gave a plan that nobody asked for")));
        }
        // It may have ended meanwhile, for what it depends on failed, or it was cancelled.
        if self.state.stage(place) != Stage::Ended {
            match plan {
                Planned::Written(plan) => self.declare(place, plan)?,
                Planned::Failed(error) => self.end(place, Err(error.settled()))?,
                Planned::Waiting => self.postpone(place)?,
            }
        }
        self.settle()
    }

    /// The same plan as before is neither declared nor cleared again; another one is both.
    fn declare(&mut self, place: usize, plan: PlanDeclared) -> Result<(), Error> {
        let before = self.state.package(place);
        let ruled = match &before.plan {
            Some(known) if *known == plan => before.ruling.clone(),
            Some(_) => {
                self.record(Fact::Redeclared(plan))?;
                None
            }
            None => {
                self.record(Fact::Declared(plan))?;
                None
            }
        };
        let claims = self.state.package(place).claims();
        let live = self.state.live(place);
        live.claims = claims;
        match ruled {
            None => {
                live.stage = Stage::Declared;
                self.state.declared.insert(place);
            }
            Some(Verdict::Go { .. }) => self.cleared(place),
            Some(Verdict::Denied { because, .. }) => self.end(place, Err(Error::new(ErrorKind::Denied, because)))?,
        }
        Ok(())
    }

    pub(super) fn cleared(&mut self, place: usize) {
        self.state.live(place).stage = Stage::Cleared;
        self.state.woken.insert(place);
    }

    fn postpone(&mut self, place: usize) -> Result<(), Error> {
        let live = self.state.live(place);
        if live.waits_for_value() || !live.complete {
            live.stage = Stage::Waiting;
            // A value may have come while it was asked.
            self.state.woken.insert(place);
            return Ok(());
        }
        let why = "its plan waits for a value, and all values are there";
        self.end(place, Err(Error::new(ErrorKind::Misuse, why)))
    }
}
