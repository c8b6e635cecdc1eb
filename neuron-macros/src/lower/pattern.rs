//! Topic patterns, held to the rules by which the runtime reads them.

use syn::LitStr;

use crate::errors::Errors;

/// Longest pattern in bytes.
const BYTES_MAX: usize = 256;

/// Says what is wrong with a pattern, at the pattern.
pub(super) fn check(pattern: &LitStr, errors: &mut Errors) {
    let text = pattern.value();
    if let Some(why) = fault(&text) {
        errors.on(pattern, format!("`{}` is no topic pattern: {why}", text.escape_debug()));
    }
}

/// The rule that a text breaks. The pattern of all topics is written as no other is.
fn fault(pattern: &str) -> Option<String> {
    if pattern == "/**|**" {
        return None;
    }
    if pattern.is_empty() {
        return Some("it is empty; every topic with dots in its name is `**`".into());
    }
    if pattern.len() > BYTES_MAX {
        return Some(format!("it is longer than {BYTES_MAX} bytes"));
    }
    if pattern.chars().any(char::is_control) {
        return Some("it holds a control character".into());
    }
    let segments: Vec<&str> = match pattern.strip_prefix('/') {
        Some(rest) => rest.split('/').collect(),
        None => pattern.split('.').collect(),
    };
    if segments.iter().any(|segment| segment.is_empty()) {
        return Some("it holds an empty segment; between two dots, or slashes, stands a name or a wildcard".into());
    }
    let last = segments.len() - 1;
    let misplaced = segments.iter().enumerate().find(|(at, segment)| {
        let wild = segment.contains(['*', '>']);
        wild && **segment != "*" && !(matches!(**segment, "**" | ">") && *at == last)
    });
    misplaced.map(|(_, segment)| {
        format!("`{segment}` is not allowed there; `*` stands for one whole segment, `**` and `>` only at the end")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_runtime_takes_is_taken() {
        for pattern in [
            "a",
            "orders.*",
            "*.placed",
            "**",
            ">",
            "orders.**",
            "orders.>",
            "/input/**",
            "/a/b",
            "$leases",
            "/**|**",
        ] {
            assert_eq!(fault(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn what_the_runtime_refuses_is_refused() {
        let long = "a".repeat(BYTES_MAX + 1);
        for pattern in [
            "", &long, "a\n", "a..b", ".a", "a.", "/a//b", "**.a", "a.>.b", "ord*", "a.b>", "***",
        ] {
            assert!(fault(pattern).is_some(), "{pattern}");
        }
    }
}
