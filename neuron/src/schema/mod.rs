//! Schemas: content-addressed, written once, resolvable for ever.
//!
//! A definition is JSON Schema draft 2020-12. Its reference is the BLAKE3 `derive_key` hash (context
//! `neuron-schema-v1`) of its canonical form without annotations, so that editing a doc comment changes nothing.
//! One definition names another by `$ref` as `neuron:schema:<hash>`, with `#/$defs/…` behind it where the other is a
//! recursive group.

mod breach;
mod bundle;
mod collection;
mod contract;
mod definition;
mod keyword;
mod name;
mod plane0;
mod reference;
mod split;
mod upcast;
mod usage;
mod validator;

pub use bundle::Bundle;
pub use collection::check_references;
pub use contract::BodyContract;
pub use definition::{Resolve, Schema};
pub use name::SchemaRef;
pub use reference::{ArtifactRef, EnvelopeRef, ItemRef, RunRef};
pub use upcast::Upcasters;
pub use usage::{SchemaUse, of};
pub use validator::Validator;
