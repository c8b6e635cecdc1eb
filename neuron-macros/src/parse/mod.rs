//! Tokens to syntax: what the user wrote, each piece with its place, nothing judged yet.

mod attr;
mod item;

pub(crate) use attr::{Argument, Item, Target, Value, arguments, target};
pub(crate) use item::Function;
