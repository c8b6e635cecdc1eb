//! Beat 5: a package has ended, and so has, at last, the run.

use neuron::{Error, ErrorKind, Result, vocabulary::orchestration::EdgeReason};

use super::{
    beat::Beat,
    command::Command,
    state::{Stage, illegal},
};
use crate::{
    fact::{Conclusion, Fact},
    package::{Key, Outcome},
};

impl Beat<'_> {
    pub(super) fn ended(&mut self, key: &Key, outcome: Outcome) -> Result<(), Error> {
        let place = self.state.find(key)?;
        if self.state.stage(place) != Stage::Running || self.state.live(place).body.is_some() {
            return Err(illegal(format!("package `{key}` ended and did not run")));
        }
        let live = self.state.live(place);
        if live.children.is_empty() {
            self.end(place, outcome)?;
        } else {
            // What its body assigned and did not await still runs before it has ended.
            live.body = Some(outcome);
        }
        self.settle()
    }

    pub(super) fn body_ended(&mut self, outcome: Outcome) -> Result<(), Error> {
        if self.state.body.is_some() {
            return Err(illegal("the run's body ended twice"));
        }
        self.state.body = Some(outcome);
        self.settle()
    }

    /// Gives a package its answer.
    pub(super) fn end(&mut self, place: usize, outcome: Outcome) -> Result<(), Error> {
        let package = self.state.live(place).key.clone();
        self.state.board.record(&Fact::Ended {
            package: package.to_string(),
            outcome: outcome.clone(),
        })?;
        self.close(place, &outcome);
        self.commands.push(Command::Answer { package, outcome });
        Ok(())
    }

    /// Takes a package that has its answer off what is open.
    pub(super) fn close(&mut self, place: usize, outcome: &Outcome) {
        self.let_go(place);
        let live = self.state.live(place);
        live.stage = Stage::Ended;
        let (within, waiting) = (live.within, live.needed_by.clone());
        self.state.open.remove(&place);
        self.state.declared.remove(&place);
        for next in waiting {
            let needs = &mut self.state.live(next).needs;
            if let Some(why) = needs.get_mut(&place) {
                // A failure stays on record until the dependant is failed with it.
                let fails = outcome.is_err() && why.iter().any(|why| *why != EdgeReason::Clearance);
                if !fails {
                    needs.remove(&place);
                    self.state.woken.insert(next);
                }
            }
        }
        if let Some(within) = within {
            self.state.live(within).children.remove(&place);
            self.state.touched.insert(within);
        }
        self.state.touched.insert(place);
    }

    /// Fails what depends on a failure, and ends what waited for the last of its own.
    pub(super) fn fail_dependants(&mut self) -> Result<(), Error> {
        while let Some(place) = self.state.touched.pop_first() {
            let live = self.state.live(place);
            if live.stage == Stage::Running && live.children.is_empty() {
                if let Some(outcome) = live.body.take() {
                    self.end(place, outcome)?;
                }
                continue;
            }
            if live.stage != Stage::Ended {
                continue;
            }
            let waiting = live.needed_by.clone();
            let package = self.state.package(place);
            let Some(Err(error)) = &package.outcome else {
                continue;
            };
            let upstream = upstream(&package.assigned.name, error);
            for next in waiting {
                if self.state.open.contains(&next) && self.state.live(next).needs.contains_key(&place) {
                    self.end(next, Err(upstream.clone()))?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn conclude(&mut self) -> Result<(), Error> {
        if self.state.conclusion.is_some() || !self.state.open.is_empty() {
            return Ok(());
        }
        let conclusion = match (&self.state.cancelled, &self.state.body) {
            (Some(order), _) => Conclusion::Cancelled {
                because: order.0.clone(),
            },
            (None, Some(Ok(()))) => Conclusion::Completed,
            (None, Some(Err(error))) => Conclusion::Failed(error.clone()),
            (None, None) => return Ok(()),
        };
        self.state.board.record(&Fact::Concluded(conclusion.clone()))?;
        self.state.conclusion = Some(conclusion.clone());
        self.commands.push(Command::Conclude(conclusion));
        Ok(())
    }
}

/// The answer of a package whose input will never come. However long the chain, it names where it broke.
fn upstream(name: &str, error: &Error) -> Error {
    if error.kind() == ErrorKind::Upstream {
        return error.clone();
    }
    Error::new(
        ErrorKind::Upstream,
        format!("`{name}`, which this depends on, failed: {error}"),
    )
}
