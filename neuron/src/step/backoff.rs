use std::time::Duration;

use crate::{Digest, limits};

/// How long a call waits after this many attempts: the wait that its attribute names, doubled each time, bounded.
///
/// Where the attribute names none, it begins with [`limits::BACKOFF_MIN`], and the second half of each wait is spread by
/// the key: calls that failed together do not come back together, and a call waits the same in a replay.
pub(super) fn backoff(first_ms: u64, attempts: u32, key: &str) -> Duration {
    let doubled = |first: Duration| {
        let factor = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        first.saturating_mul(factor).min(limits::BACKOFF_MAX)
    };
    if first_ms > 0 {
        return doubled(Duration::from_millis(first_ms));
    }
    let half = doubled(limits::BACKOFF_MIN) / 2;
    half + half.mul_f64(share(key, attempts))
}

/// A number from 0 to 1 that is the call's and the attempt's own.
fn share(key: &str, attempts: u32) -> f64 {
    let hash = Digest::content(format!("{attempts} {key}").as_bytes());
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&hash.as_bytes()[..4]);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wait_that_is_named_doubles_up_to_the_bound() {
        let waits = [1, 2, 3, 99].map(|attempts| backoff(200, attempts, "k"));
        let ms = Duration::from_millis;
        assert_eq!(waits, [ms(200), ms(400), ms(800), limits::BACKOFF_MAX]);
        assert_eq!(backoff(u64::MAX, 9, "k"), limits::BACKOFF_MAX);
    }

    proptest! {
        #[test]
        fn a_wait_that_nobody_names_grows_and_is_spread_by_the_key(key in "[0-9a-f]{8}#[1-9]", attempts in 1..40_u32) {
            let whole = limits::BACKOFF_MIN.saturating_mul(1 << (attempts - 1).min(31)).min(limits::BACKOFF_MAX);
            let wait = backoff(0, attempts, &key);
            prop_assert!(whole / 2 <= wait && wait <= whole, "{wait:?} of {whole:?}");
            prop_assert_eq!(wait, backoff(0, attempts, &key));
            prop_assert_ne!(wait, backoff(0, attempts, &format!("{key}0")));
        }
    }
}
