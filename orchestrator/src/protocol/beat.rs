use neuron::{Error, Result};

use super::{command::Command, state::State};
use crate::fact::Fact;

/// One event on its way through the state.
pub(super) struct Beat<'a> {
    pub(super) state: &'a mut State,
    pub(super) commands: Vec<Command>,
}

impl Beat<'_> {
    /// Puts a fact on the log, and on the board that is folded from it.
    pub(super) fn record(&mut self, fact: Fact) -> Result<(), Error> {
        self.state.board.record(&fact)?;
        self.commands.push(Command::Record(fact));
        Ok(())
    }
}
