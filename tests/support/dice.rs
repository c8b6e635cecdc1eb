//! Chance that can be repeated: one seed, told whenever a test fails.

use std::{
    env,
    time::{SystemTime, UNIX_EPOCH},
};

/// The variable that sets the seed.
pub const SEED: &str = "NEURON_SEED";
/// The variable that asks for the long versions of tests.
pub const LONG: &str = "NEURON_LONG";

/// Whether the long versions of tests were asked for.
pub fn is_long() -> bool {
    env::var_os(LONG).is_some_and(|value| value != "0")
}

/// The seed that was asked for.
pub fn seed_given() -> Option<u64> {
    let text = env::var(SEED).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{SEED}={text} is no number")))
}

/// A seed that no earlier run of the test had.
pub fn fresh_seed() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap_or_default()
}

/// Numbers that follow from a seed (SplitMix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Those of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `count`, which is not 0.
    pub fn below(&mut self, count: usize) -> usize {
        let rolled = self.roll() % u64::try_from(count).expect("a count fits");
        usize::try_from(rolled).expect("it is below a count")
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of them.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
