//! Topics: opaque names with a persistence contract, the patterns that select them, and the catalogue of built-in ones.
//!
//! A name is parsed once. What happens to an envelope is decided by the topic's [`Contract`], given at creation: if
//! losing one envelope would corrupt state it is durable, if its value ends with its delivery it is ephemeral.

pub mod catalog;
mod contract;
mod index;
mod name;
mod pattern;

pub use contract::Contract;
pub(crate) use index::Index;
pub use name::Topic;
pub use pattern::Pattern;
