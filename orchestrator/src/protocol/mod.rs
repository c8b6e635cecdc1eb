//! The six beats as one pure machine: assign, declare, clearance, execute, report, recover.
//!
//! [`advance`] takes an [`Event`] into the [`State`] and says which [`Command`]s follow. It has no clock, no log and no
//! thread; who drives it carries the commands out in their order. What it records it takes in itself at once, by the
//! same fold that reads the log, so a state made from a log ([`State::resume`]) goes on where the log ends: nothing that
//! stands there is said twice.

mod assign;
mod beat;
mod clear;
mod command;
mod control;
mod declare;
mod event;
mod execute;
mod report;
mod state;

use neuron::{Error, Result};

use beat::Beat;

pub use command::Command;
pub use event::{Assignment, Event, Order, Planned};
pub use state::State;

/// Takes an event in, and gives what follows from it.
///
/// # Errors
/// [`Misuse`](neuron::ErrorKind::Misuse) for an event that cannot happen in this state: the state is then not to be used any further.
pub fn advance(state: &mut State, event: Event) -> Result<Vec<Command>, Error> {
    let mut beat = Beat {
        state,
        commands: Vec::new(),
    };
    match event {
        Event::Assigned { within, packages } => beat.assigned(within.as_ref(), &packages)?,
        Event::Planned { package, plan } => beat.planned(&package, plan)?,
        Event::Ended { package, outcome } => beat.ended(&package, outcome)?,
        Event::Amended {
            package,
            step,
            name,
            claims,
        } => beat.amended(&package, step, name, &claims)?,
        Event::Ordered { token, order } => beat.ordered(token.as_ref(), order)?,
        Event::BodyEnded { outcome } => beat.body_ended(outcome)?,
    }
    Ok(beat.commands)
}
