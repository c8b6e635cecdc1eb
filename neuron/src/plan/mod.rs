//! A plan is data: rows of a step and where its arguments come from. The rows that are declared are the rows that run.

mod function;
mod input;
mod outline;
mod writing;
mod written;

pub use function::{Later, Now, PlanEntry, PlanFn, Slot, outline, write};
pub use input::{Given, Input, Inputs, IntoInput};
pub use outline::{Outline, Row};
pub use writing::{Node, Plan};
pub use written::{MakeCall, Written};
