//! Everything that a program with agents needs: `use orchestrator::prelude::*;`.

pub use neuron::{
    ArtifactRef, Burn, Cx, Error, ErrorKind, Millis, Node, Plan, Result, RunId, Secret, Terminal, TokenId, agent,
    orchestrator, plan, step, store::Durability,
};

pub use crate::{Board, Neuron, Package, Run, Running, Target};
