//! The pipeline: stages between publish and deliver, in declared order, per topic pattern.

mod stage;

pub use stage::{Pipeline, Stage};
