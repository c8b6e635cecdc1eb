//! Numbers, dates and names as Markdown shows them.

use jiff::Timestamp;

/// A number with its thousands parted.
pub(crate) fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut parted = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            parted.push(',');
        }
        parted.push(digit);
    }
    parted
}

/// A number and its noun.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{} {}", number(count), if count == 1 { one } else { many })
}

/// Thousandths as per cent with one place.
pub(crate) fn per_cent(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

/// The day, in UTC, of a number of seconds since 1970.
pub(crate) fn date(seconds: i64) -> String {
    match Timestamp::from_second(seconds) {
        Ok(time) => time.strftime("%Y-%m-%d").to_string(),
        Err(_) => "a day out of range".to_owned(),
    }
}

/// A name as code. Works in a table and with any characters in the name.
pub(crate) fn code(name: &str) -> String {
    let longest = name.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let ticks = "`".repeat(longest + 1);
    let edge = if name.starts_with('`') || name.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{ticks}{edge}{}{edge}{ticks}", name.replace('|', "\\|"))
}

/// Text that is to be read as it is.
pub(crate) fn text(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A table of Markdown. A heading that begins with `#` is of a column of numbers.
pub(super) struct Table {
    head: String,
    rows: String,
}

impl Table {
    pub(super) fn new(headings: &[&str]) -> Self {
        let names: Vec<_> = headings.iter().map(|heading| heading.trim_start_matches('#')).collect();
        let rules = headings
            .iter()
            .map(|heading| if heading.starts_with('#') { "---:" } else { "---" });
        let rules: Vec<_> = rules.collect();
        Self {
            head: row(&names) + &row(&rules),
            rows: String::new(),
        }
    }

    pub(super) fn row(&mut self, cells: &[String]) {
        let cells: Vec<_> = cells.iter().map(String::as_str).collect();
        self.rows.push_str(&row(&cells));
    }

    /// Writes it, unless it is empty.
    pub(super) fn show(self, out: &mut String) {
        if !self.rows.is_empty() {
            out.push_str(&self.head);
            out.push_str(&self.rows);
            out.push('\n');
        }
    }
}

fn row(cells: &[&str]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_parted_by_thousands() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(number),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(per_cent(5), "0.5 %");
        assert_eq!(counted(1, "line", "lines"), "1 line");
    }

    #[test]
    fn no_name_breaks_out_of_its_place() {
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(text("<b>*x*"), "\\<b\\>\\*x\\*");
    }

    #[test]
    fn a_date_is_the_day_in_utc_and_a_wild_one_does_no_harm() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(i64::MAX), "a day out of range");
    }
}
