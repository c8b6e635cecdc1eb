//! One suite for every store: what each must do, whatever it is made of.
//!
//! ```
//! use neuron::store::{Memory, conformance};
//! conformance::check(|setup| Memory::with(setup.clock, Some(setup.fault)))?;
//! # Ok::<(), neuron::Error>(())
//! ```

mod blob;
mod defer;
mod fixture;
mod read;
mod repeat;
mod snapshot;
mod write;

pub use fixture::{Breaker, Setup, batch, observe};
use fixture::{Case, Fixture};

use crate::{Error, Result, store::Store};

/// Makes a store with `make` for each sentence of the suite, and holds it to that.
///
/// # Errors
/// The first sentence that does not hold, with what was found instead.
pub fn check<S: Store>(make: impl Fn(Setup) -> Result<S, Error>) -> Result<(), Error> {
    let parts: [&[Case]; 6] = [
        write::CASES,
        repeat::CASES,
        defer::CASES,
        read::CASES,
        blob::CASES,
        snapshot::CASES,
    ];
    for (sentence, case) in parts.into_iter().flatten() {
        let fixture = Fixture::new(&make).map_err(|error| error.context(*sentence))?;
        case(&fixture).map_err(|error| error.context(*sentence))?;
    }
    Ok(())
}
