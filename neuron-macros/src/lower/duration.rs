//! Lengths of time as text: a whole number and a unit.

/// The milliseconds of a text such as `"250ms"`, `"30s"`, `"5m"`, `"2h"` or `"1d"`.
///
/// # Errors
///
/// Says what is wrong with the text and shows texts that are right.
pub(crate) fn milliseconds(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = factor(unit).filter(|_| digits > 0).ok_or_else(|| unreadable(text))?;
    let length = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    match length {
        None => Err(format!("`{text}` is longer than can be counted in milliseconds")),
        Some(0) => Err(format!("`{text}` is no time at all; a duration is longer than zero")),
        Some(length) => Ok(length),
    }
}

fn factor(unit: &str) -> Option<u64> {
    match unit {
        "ms" => Some(1),
        "s" => Some(1_000),
        "m" => Some(60_000),
        "h" => Some(3_600_000),
        "d" => Some(86_400_000),
        _ => None,
    }
}

fn unreadable(text: &str) -> String {
    format!("`{text}` is no duration; write a whole number and a unit: \"250ms\", \"30s\", \"5m\", \"2h\" or \"1d\"")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail")]
mod tests {
    use super::*;

    #[test]
    fn every_unit_counts_in_milliseconds() {
        let texts = ["250ms", "30s", "5m", "2h", "1d"];
        let lengths: Vec<_> = texts.iter().map(|text| milliseconds(text).unwrap()).collect();
        assert_eq!(lengths, [250, 30_000, 300_000, 7_200_000, 86_400_000]);
    }

    #[test]
    fn a_text_without_number_or_known_unit_is_refused_with_examples() {
        for text in ["", "s", "30", "30 s", "1w", "-1s", "1.5s", "ten"] {
            let message = milliseconds(text).unwrap_err();
            assert!(
                message.starts_with(&format!("`{text}` is no duration; write")),
                "{message}"
            );
        }
    }

    #[test]
    fn nothing_and_more_than_can_be_counted_are_refused() {
        assert_eq!(
            milliseconds("0s").unwrap_err(),
            "`0s` is no time at all; a duration is longer than zero"
        );
        let long = format!("{}d", u64::MAX);
        assert_eq!(
            milliseconds(&long).unwrap_err(),
            format!("`{long}` is longer than can be counted in milliseconds")
        );
    }
}
