//! Orders from outside: never missed, only late.

use std::collections::BTreeSet;

use neuron::{Error, Result, TokenId};

use super::{
    beat::Beat,
    command::Command,
    event::Order,
    state::{Cancellation, Stage},
};

impl Beat<'_> {
    /// Orders are read from the log from its beginning, also by a run that is recovered, so each may come again.
    pub(super) fn ordered(&mut self, token: Option<&TokenId>, order: Order) -> Result<(), Error> {
        let held: BTreeSet<usize> = self.running().filter(|place| self.state.is_held(*place)).collect();
        match (token, order) {
            (None, Order::Pause) => self.state.paused = true,
            (None, Order::Resume) => self.state.paused = false,
            (None, Order::Cancel { because }) => self.cancel_run(because)?,
            (Some(token), Order::Pause) => drop(self.state.paused_tokens.insert(token.clone())),
            (Some(token), Order::Resume) => drop(self.state.paused_tokens.remove(token)),
            (Some(token), Order::Cancel { because }) => self.cancel_token(token, because)?,
        }
        // What was held may start now.
        self.state.woken.extend(&self.state.open);
        let running: Vec<usize> = self.running().collect();
        for place in running {
            let package = self.state.live[&place].key.clone();
            match (held.contains(&place), self.state.is_held(place)) {
                (false, true) => self.commands.push(Command::Hold { package }),
                (true, false) => self.commands.push(Command::Release { package }),
                _ => {}
            }
        }
        self.settle()
    }

    /// Why a package is to be cancelled, if it is.
    pub(super) fn cancelled(&self, place: usize) -> Option<Cancellation> {
        let around = std::iter::successors(Some(place), |place| {
            self.state.live.get(place).and_then(|live| live.within)
        });
        let mut tokens = around.map(|place| &self.state.package(place).assigned.token);
        let own = tokens.find_map(|token| self.state.cancelled_tokens.get(token));
        own.or(self.state.cancelled.as_ref()).cloned()
    }

    fn cancel_run(&mut self, because: Option<String>) -> Result<(), Error> {
        if self.state.cancelled.is_some() || self.state.conclusion.is_some() {
            return Ok(());
        }
        self.state.cancelled = Some(Cancellation(because));
        self.commands.push(Command::Abandon);
        self.stop_cancelled()
    }

    fn cancel_token(&mut self, token: &TokenId, because: Option<String>) -> Result<(), Error> {
        if self.state.cancelled_tokens.contains_key(token) {
            return Ok(());
        }
        self.state.cancelled_tokens.insert(token.clone(), Cancellation(because));
        self.stop_cancelled()
    }

    /// Stops what runs and answers what does not, the innermost first.
    fn stop_cancelled(&mut self) -> Result<(), Error> {
        let open: Vec<usize> = self.state.open.iter().rev().copied().collect();
        for place in open {
            let Some(cancellation) = self.cancelled(place) else {
                continue;
            };
            let stage = self.state.stage(place);
            if stage == Stage::Running && self.state.live(place).body.is_none() {
                if self.state.stopped.insert(place) {
                    let package = self.state.live(place).key.clone();
                    self.commands.push(Command::Stop { package });
                }
            } else if !matches!(stage, Stage::Running | Stage::Ended) {
                self.end(place, Err(cancellation.answer()))?;
            }
        }
        Ok(())
    }

    /// The packages whose body or plan goes on.
    fn running(&self) -> impl Iterator<Item = usize> {
        let live = self.state.live.iter();
        let running = live.filter(|(_, live)| live.stage == Stage::Running && live.body.is_none());
        running.map(|(place, _)| *place)
    }
}
