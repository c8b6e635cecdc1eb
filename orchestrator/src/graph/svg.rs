use std::fmt::Write as _;

use super::{
    RunGraph, Work,
    draw::{colours, inner, label, title},
};

// All in pixels.
const LINE: usize = 20;
const LETTER: usize = 7;
const MARGIN: usize = 24;
const GAP_ACROSS: usize = 90;
const GAP_DOWN: usize = 18;
const WIDTH_MAX: usize = 360;

/// A package with its place on the sheet.
struct Spot {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

impl RunGraph {
    /// As a picture of its own: an SVG 1.1 document. Packages stand to the right of what they wait for.
    ///
    /// ```
    /// # use orchestrator::{graph::{RunGraph, State}, prelude::*};
    /// # let run = RunId::new("digest-1")?;
    /// let graph = RunGraph { run, name: "digest".into(), state: State::Running, packages: Vec::new() };
    /// assert!(graph.svg().ends_with("</svg>\n"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn svg(&self) -> String {
        let (boxes, width, height) = self.lay_out();
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
        );
        text.push_str(
            "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" \
             orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#52606d\"/></marker></defs>\n",
        );
        let headline = format!("{} ({}): {}", self.run, self.name, self.state);
        words(
            &mut text,
            (MARGIN, MARGIN),
            "font-size=\"15\" font-weight=\"bold\"",
            &headline,
        );
        // How many arrows leave each package so far, so that each leaves at a place of its own.
        let mut leaving = vec![0; boxes.len()];
        for (nth, work) in self.packages.iter().enumerate() {
            let plain = work.after.iter().map(|edge| (edge.from, &*edge.why, ""));
            let within = work.within.map(|within| (within, "", " stroke-dasharray=\"4 3\""));
            for (from, why, style) in plain.chain(within) {
                arrow(&mut text, (&boxes[from], leaving[from]), &boxes[nth], why, style);
                leaving[from] += 1;
            }
        }
        for (nth, (work, place)) in self.packages.iter().zip(&boxes).enumerate() {
            package(&mut text, nth, work, place);
        }
        text.push_str("</svg>\n");
        text
    }

    /// Where each package stands, and the size of the sheet.
    fn lay_out(&self) -> (Vec<Spot>, usize, usize) {
        let columns = self.columns();
        let count = columns.iter().max().map_or(0, |last| last + 1);
        let mut widths = vec![0; count];
        for (work, column) in self.packages.iter().zip(&columns) {
            widths[*column] = widths[*column].max(width(work));
        }
        let starts = widths.iter().scan(MARGIN, |next, width| {
            let start = *next;
            *next += width + GAP_ACROSS;
            Some(start)
        });
        let starts: Vec<usize> = starts.collect();
        let mut ends = vec![2 * MARGIN; count];
        let boxes = self.packages.iter().zip(&columns).map(|(work, column)| {
            let lines = work.parts.len() + usize::from(work.more > 0);
            let placed = Spot {
                x: starts[*column],
                y: ends[*column],
                width: widths[*column],
                height: LINE + 10 + lines * LINE,
            };
            ends[*column] += placed.height + GAP_DOWN;
            placed
        });
        let boxes: Vec<Spot> = boxes.collect();
        let right = boxes.iter().map(|place| place.x + place.width).max().unwrap_or(0);
        let headline = LETTER * 10 / 7 * (self.run.as_str().len() + self.name.len() + 16);
        let width = right.max(headline) + MARGIN;
        (boxes, width, ends.into_iter().max().unwrap_or(2 * MARGIN) + MARGIN)
    }

    /// The column of each package: one more than what it waits for, and than what assigned it. Both are older.
    fn columns(&self) -> Vec<usize> {
        let mut columns: Vec<usize> = vec![0; self.packages.len()];
        // An edge may lead to an older package, so that one pass is not always enough; in a cycle none ever is.
        for _ in 0..self.packages.len() {
            let before = columns.clone();
            for (nth, work) in self.packages.iter().enumerate() {
                let earlier = work.after.iter().map(|edge| edge.from).chain(work.within);
                let next = earlier.map(|from| columns[from] + 1).max().unwrap_or(0);
                columns[nth] = columns[nth].max(next).min(self.packages.len() - 1);
            }
            if columns == before {
                break;
            }
        }
        columns
    }
}

fn width(work: &Work) -> usize {
    let parts = work
        .parts
        .iter()
        .map(|part| label(part).chars().count() + 8 + 2 * part.after.len());
    let widest = parts.chain([title(0, work).chars().count() + 4]).max().unwrap_or(0);
    (widest * LETTER + 20).min(WIDTH_MAX)
}

fn package(text: &mut String, nth: usize, work: &Work, place: &Spot) {
    let Spot { x, y, width, height } = place;
    let (_, stroke) = colours(work.phase.into());
    let _ = writeln!(
        text,
        "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"6\" fill=\"#fbfcfd\" stroke=\"{stroke}\" \
         stroke-width=\"1.5\"/>"
    );
    words(
        text,
        (x + 10, y + 18),
        "font-weight=\"bold\"",
        &clipped(&title(nth, work), *width),
    );
    let mut down = y + LINE + 6;
    for (at, part) in work.parts.iter().enumerate() {
        let from: Vec<_> = inner(work)
            .filter(|(_, to)| *to == at && !part.after.is_empty())
            .map(|(from, _)| from)
            .collect();
        let (ground, stroke) = colours(part.state);
        let (left, wide, high) = (x + 8, width - 16, LINE - 3);
        let _ = writeln!(
            text,
            "<rect x=\"{left}\" y=\"{down}\" width=\"{wide}\" height=\"{high}\" rx=\"4\" fill=\"{ground}\" stroke=\"{stroke}\"/>"
        );
        let letters: Vec<_> = from.into_iter().map(RunGraph::letter).collect();
        let flows = if letters.is_empty() {
            String::new()
        } else {
            format!("  \u{2190} {}", letters.join(" "))
        };
        let named = if work.is_declared() {
            format!("{} ", RunGraph::letter(at))
        } else {
            String::new()
        };
        let label = clipped(&format!("{named}{}{flows}", label(part)), *width);
        words(text, (x + 14, down + 13), "", &label);
        down += LINE;
    }
    if work.more > 0 {
        words(
            text,
            (x + 14, down + 13),
            "fill=\"#7b8794\"",
            &format!("{} more", work.more),
        );
    }
}

fn arrow(text: &mut String, (from, leaving): (&Spot, usize), to: &Spot, why: &str, style: &str) {
    let (x1, y1) = (from.x + from.width, from.y + (16 + 15 * leaving).min(from.height));
    let (x2, y2) = (to.x, to.y + to.height / 2);
    let bend = x1.midpoint(x2);
    let _ = writeln!(
        text,
        "<path d=\"M{x1} {y1} C{bend} {y1} {bend} {y2} {x2} {y2}\" fill=\"none\" stroke=\"#52606d\"{style} \
         marker-end=\"url(#tip)\"/>"
    );
    if !why.is_empty() {
        let attributes = "fill=\"#52606d\" font-size=\"11\"";
        words(
            text,
            (x1 + 6, y1.saturating_sub(3)),
            attributes,
            &clipped(why, GAP_ACROSS),
        );
    }
}

/// Text that does not fit is cut, with an ellipsis.
fn clipped(text: &str, width: usize) -> String {
    let room = (width / LETTER).max(8);
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 1).chain(['\u{2026}']).collect()
}

fn words(text: &mut String, (x, y): (usize, usize), attributes: &str, words: &str) {
    let _ = writeln!(text, "<text x=\"{x}\" y=\"{y}\" {attributes}>{}</text>", escaped(words));
}

/// Text of XML 1.0, in which most control characters cannot stand at all.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            letter => safe.push(letter),
        }
    }
    safe
}
