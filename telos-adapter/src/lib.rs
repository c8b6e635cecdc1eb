//! telos scopes on the neuron log: where an event belongs, and which names only the engine may use.
//!
//! telos is a game world whose zones signal *up* to a director and whose directors broadcast *down* to zones. A
//! [`Scope`] says where an event belongs, its two [`Address`]es which way it goes, and [`reserved`] which event names
//! and state keys content may not use.
//!
//! ```
//! use telos_adapter::{Scope, reserved};
//!
//! let scope: Scope = "region:heartlands".parse()?;
//! assert_eq!(scope.up().to_string(), "telos.scope.region.heartlands");
//! assert_eq!(scope.down().to_string(), "telos.down.region.heartlands");
//! assert!(reserved::check_signal("scope.state.set").is_err());
//! # Ok::<(), telos_adapter::Error>(())
//! ```
//!
//! This version holds the names alone. What stands on them comes later, in this order: the two lanes with their
//! apply-once watermark and fence, scope state with its replicas, the bridge to a running telos fleet over NATS, Redis
//! and Postgres, and directors with their schedules and scripts.
//!
//! | module | what it is |
//! |---|---|
//! | [`Scope`], [`ScopeId`], [`Address`] | a checked address: the world, a region or a zone, up or down |
//! | [`reserved`] | the names that content may not use, one list for both ends |
//! | [`Error`], [`ErrorKind`] | what was refused, and what to do |

#![cfg_attr(
    test,
    allow(
        clippy::expect_used,
        clippy::panic,
        clippy::unwrap_used,
        reason = "a test that fails is meant to panic"
    )
)]

mod error;
pub mod reserved;
mod scope;

pub use error::{Error, ErrorKind, Result};
pub use scope::{Address, Direction, Scope, ScopeId};
