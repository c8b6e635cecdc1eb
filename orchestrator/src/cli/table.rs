//! Tables for a person: as wide as they need on a pipe, as wide as there is room on a terminal.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, presets};

use super::{
    console::{Console, Paint},
    outcome::Outcome,
    text::{clean, width},
};

/// Columns between two columns.
const GAP: u16 = 2;

/// One value in a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    pub(super) fn painted(text: impl Into<String>, paint: Paint) -> Self {
        let text = text.into();
        Self { text, paint }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::painted(text, Paint::Plain)
    }
}

/// How a column behaves where room is short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// It keeps its width: what is cut in it could not be copied.
    Whole(&'static str),
    /// It keeps its width, with its values at the right.
    Number(&'static str),
    /// It gives way, its values go on in the next line.
    Text(&'static str),
    /// It is left out where there is no room for all columns; else it keeps its width.
    Spare(&'static str),
}

impl Column {
    fn title(self) -> &'static str {
        match self {
            Self::Whole(title) | Self::Number(title) | Self::Text(title) | Self::Spare(title) => title,
        }
    }
}

/// A table, row by row.
#[derive(Debug)]
pub(super) struct Table<const N: usize> {
    columns: [Column; N],
    rows: Vec<[Cell; N]>,
}

impl<const N: usize> Table<N> {
    pub(super) fn new(columns: [Column; N]) -> Self {
        Self {
            columns,
            rows: Vec::new(),
        }
    }

    pub(super) fn row(&mut self, cells: [Cell; N]) {
        self.rows.push(cells);
    }

    /// Writes it; a column that holds nothing is left out.
    pub(super) fn print(self, console: &mut Console<'_>) -> Outcome {
        let used = self.used(console.columns());
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING).force_no_tty();
        if console.is_coloured() {
            table.enforce_styling();
        }
        if let Some(columns) = console.columns() {
            let columns = u16::try_from(columns).unwrap_or(u16::MAX);
            table
                .set_width(columns)
                .set_content_arrangement(ContentArrangement::Dynamic);
        }
        table.set_header(used.iter().map(|at| painted(self.columns[*at].title(), Paint::Faint)));
        for row in &self.rows {
            table.add_row(used.iter().map(|at| painted(&row[*at].text, row[*at].paint)));
        }
        for (place, at) in used.iter().enumerate() {
            let Some(column) = table.column_mut(place) else {
                continue;
            };
            column.set_padding((0, if place + 1 == used.len() { 0 } else { GAP }));
            match self.columns[*at] {
                Column::Text(_) => {}
                Column::Whole(_) | Column::Spare(_) => {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
                Column::Number(_) => {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                    column.set_cell_alignment(CellAlignment::Right);
                }
            }
        }
        table.lines().try_for_each(|line| console.line(&line))
    }

    /// The columns that are shown: those that hold something, and have room.
    fn used(&self, room: Option<usize>) -> Vec<usize> {
        let widest = |at: usize| {
            let values = self.rows.iter().map(|row| width(&clean(&row[at].text))).max();
            values.unwrap_or(0)
        };
        let mut used: Vec<(usize, usize)> = (0..N)
            .map(|at| (at, widest(at)))
            .filter(|(_, width)| *width > 0)
            .collect();
        for (at, width) in &mut used {
            *width = (*width).max(self.columns[*at].title().len()) + usize::from(GAP);
        }
        while used.iter().map(|(_, width)| width).sum::<usize>()
            > room.map_or(usize::MAX, |room| room + usize::from(GAP))
        {
            let spare = used
                .iter()
                .rposition(|(at, _)| matches!(self.columns[*at], Column::Spare(_)));
            let Some(spare) = spare else { break };
            used.remove(spare);
        }
        used.into_iter().map(|(at, _)| at).collect()
    }
}

fn painted(text: &str, paint: Paint) -> comfy_table::Cell {
    use comfy_table::{Attribute, Color};
    let cell = comfy_table::Cell::new(clean(text));
    match paint {
        Paint::Plain => cell,
        Paint::Strong => cell.add_attribute(Attribute::Bold),
        Paint::Faint => cell.add_attribute(Attribute::Dim),
        Paint::Kind => cell.fg(Color::DarkCyan),
        Paint::Good => cell.fg(Color::DarkGreen),
        Paint::Open => cell.fg(Color::DarkYellow),
        Paint::Bad => cell.fg(Color::DarkRed),
    }
}
