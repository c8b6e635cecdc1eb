//! Text for a person: nothing that moves their cursor, nothing longer than they can read.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Hex digits of a hash shown where it need only be told from its neighbours.
pub(super) const SHORT: usize = 10;

/// A hash cut to what tells it from its neighbours; what follows a `#` stays.
pub(super) fn short(hash: &str) -> String {
    let (digits, rest) = hash
        .split_once('#')
        .map_or((hash, ""), |(digits, _)| (digits, &hash[digits.len()..]));
    if digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        format!("{}{rest}", &digits[..SHORT])
    } else {
        clean(hash).into_owned()
    }
}

/// Whether a key begins so; `1234#2` means the second call of those whose hash begins with `1234`.
pub(super) fn means(step: &str, key: &str) -> bool {
    let step = step.to_ascii_lowercase();
    match (step.split_once('#'), key.split_once('#')) {
        (Some((digits, nth)), Some((hash, occurrence))) => {
            !digits.is_empty() && hash.starts_with(digits) && nth == occurrence
        }
        _ => !step.is_empty() && key.starts_with(&step),
    }
}

/// Every hash in a text cut short.
pub(super) fn shortened(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut digits = 0;
    for (at, character) in text.char_indices().chain([(text.len(), '\0')]) {
        if character.is_ascii_hexdigit() {
            digits += 1;
            continue;
        }
        let run = &text[at - digits..at];
        out.push_str(if digits == 64 { &run[..SHORT] } else { run });
        digits = 0;
        if at < text.len() {
            out.push(character);
        }
    }
    out
}

/// A text on one line, in which nothing steers a terminal: control characters and marks of direction are escaped.
pub(super) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(steers) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' | '\t' => out.push(' '),
            character if steers(character) => out.extend(character.escape_unicode()),
            character => out.push(character),
        }
    }
    Cow::Owned(out)
}

/// Whether a character moves the cursor, changes colours, or turns the order of what is read.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Columns that a text takes on a terminal.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// The beginning of a text, at most `columns` wide.
pub(super) fn cut(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let kept = head(text.chars(), columns.saturating_sub(1));
    Cow::Owned(kept + "…")
}

/// Both ends of a text, at most `columns` wide together: for names that differ at their end.
pub(super) fn ends(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns || columns < 5 {
        return cut(text, columns);
    }
    let tail = columns / 2;
    let first = head(text.chars(), columns - tail - 1);
    let last: String = head(text.chars().rev(), tail).chars().rev().collect();
    Cow::Owned(format!("{first}…{last}"))
}

/// As many characters as fit.
fn head(characters: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    let fits = |character: &char| {
        let taken = character.width().unwrap_or(0);
        let fits = taken <= left;
        left = left.saturating_sub(taken);
        fits
    };
    characters.take_while(fits).collect()
}

/// A text in lines of at most `columns`, broken between words where that can be.
pub(super) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let taken = width(word);
        if used > 0 && used + 1 + taken > columns {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 0 {
            line.push(' ');
        }
        line.push_str(word);
        used += taken + usize::from(used > 0);
    }
    lines
}

/// A number of bytes.
pub(super) fn bytes(count: u64) -> String {
    if count < 1 << 10 {
        return format!("{count} B");
    }
    let (unit, shift) = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)]
        .into_iter()
        .rfind(|(_, shift)| count >> shift > 0)
        .unwrap_or(("KiB", 10));
    let tenths = (u128::from(count) * 10) >> shift;
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

/// A number of milliseconds.
pub(super) fn span(milliseconds: u64) -> String {
    let (seconds, rest) = (milliseconds / 1_000, milliseconds % 1_000);
    match seconds {
        0 => format!("{rest} ms"),
        1..60 if rest < 100 => format!("{seconds} s"),
        1..60 => format!("{seconds}.{} s", rest / 100),
        60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
    }
}

/// `1 run`, `2 runs`.
pub(super) fn count(number: u64, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_steers_a_terminal_is_shown_escaped() {
        assert_eq!(clean("red \u{1b}[31m\nnext \u{202e}"), "red \\u{1b}[31m next \\u{202e}");
        assert_eq!(clean("plain – ü"), "plain – ü");
    }

    #[test]
    fn hashes_are_cut_and_nothing_else_is() {
        let hash = "ab".repeat(32);
        assert_eq!(short(&format!("{hash}#2")), "ababababab#2");
        assert_eq!(
            shortened(&format!("{{\"key\":\"{hash}#1\",\"n\":123}}")),
            "{\"key\":\"ababababab#1\",\"n\":123}"
        );
        assert_eq!(shortened(&hash), "ababababab");
        assert_eq!(shortened("ü"), "ü");
    }

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(ends("agent.researcher.steps@12", 12), "agent…eps@12");
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
        assert_eq!(cut("日本語", 4), "日…");
    }

    #[test]
    fn prose_is_broken_between_words() {
        assert_eq!(wrap("one two three four", 9), ["one two", "three", "four"]);
        assert_eq!(wrap("incomprehensible", 5), ["incomprehensible"]);
    }

    #[test]
    fn sizes_and_spans_are_told_in_a_unit_that_fits() {
        assert_eq!(
            [bytes(0), bytes(1_023), bytes(1_536), bytes(5 << 30)].join(", "),
            "0 B, 1023 B, 1.5 KiB, 5.0 GiB"
        );
        assert_eq!(
            [span(7), span(1_234), span(61_000), span(7_260_000)].join(", "),
            "7 ms, 1.2 s, 1m 01s, 2h 01m"
        );
    }
}
