//! One line per piece of work, printed as it comes and once more as a table.

use std::fmt::Write as _;

pub(crate) struct Row {
    pub(crate) work: String,
    /// Ours and the baseline's, in units per second.
    pub(crate) ours: f64,
    pub(crate) baseline: f64,
    pub(crate) goal: &'static str,
    pub(crate) envelopes: f64,
    pub(crate) commits: f64,
    pub(crate) unit: &'static str,
}

pub(crate) struct Table(String);

impl Table {
    pub(crate) fn new() -> Self {
        let head = "| work | ours /s | baseline /s | ratio | goal | envelopes per unit | commits per unit |";
        Self(format!("{head}\n|---|---|---|---|---|---|---|\n"))
    }

    pub(crate) fn row(&mut self, row: Row) {
        let Row {
            work,
            ours,
            baseline,
            goal,
            envelopes,
            commits,
            unit,
        } = row;
        let ratio = ours / baseline;
        // Not every row counts them.
        let commits = if commits.is_nan() {
            "–".to_owned()
        } else {
            format!("{commits:.4}")
        };
        println!("{work}: {ours:.0} {unit}/s, baseline {baseline:.0}, ratio {ratio:.2} (goal {goal})");
        let _ = writeln!(
            self.0,
            "| {work} | {ours:.0} | {baseline:.0} | {ratio:.2} | {goal} | {envelopes:.2} | {commits} |"
        );
    }

    pub(crate) fn print(&self) {
        println!("\n{}", self.0);
    }
}
