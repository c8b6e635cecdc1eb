//! One page of a range: which index serves which question.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use rusqlite::{OptionalExtension as _, params};

use super::{
    fault::At as _,
    number::{signed, unsigned},
    read::{COLUMNS, Reader, follows, missing, select, topic_named},
};
use crate::{
    Error, ErrorKind, Pattern, Result, limits,
    store::{Page, Range, Row, Select, gapless::gone},
};

/// A range as SQLite numbers it.
#[derive(Clone, Copy)]
struct Bounds {
    from: i64,
    to: i64,
    reverse: bool,
    limit: usize,
}

impl Bounds {
    fn of(range: Range) -> Self {
        Self {
            from: signed(range.from.max(1)),
            to: signed(range.to),
            reverse: range.reverse,
            limit: range.limit.min(limits::PAGE_MAX),
        }
    }

    fn order(self) -> &'static str {
        if self.reverse { "DESC" } else { "ASC" }
    }

    /// The page of the rows that were read, at most one more than the limit.
    fn page(self, mut rows: Vec<Row>, more: bool) -> Page {
        let next = if rows.len() > self.limit {
            rows.truncate(self.limit + 1);
            rows.pop().map(|row| row.pos)
        } else {
            rows.last()
                .filter(|_| more)
                .and_then(|row| self.after(signed(row.pos)))
                .map(unsigned)
        };
        Page { rows, next }
    }

    /// The next `pos` of the range, if it has one.
    fn after(self, pos: i64) -> Option<i64> {
        let next = if self.reverse { pos - 1 } else { pos + 1 };
        (self.from..=self.to).contains(&next).then_some(next)
    }
}

pub(super) fn page(reader: &mut Reader, wanted: &Select, range: Range) -> Result<Page, Error> {
    let bounds = Bounds::of(range);
    let (between, order) = ("pos BETWEEN ?1 AND ?2", bounds.order());
    let by_pos = |condition: &str| select(COLUMNS, &format!("{condition} ORDER BY pos {order}"));
    let (from, to) = (bounds.from, bounds.to);
    match wanted {
        Select::All => read(reader, &by_pos(between), &[from, to], None, bounds),
        Select::Kind(kind) => match reader.kind_number(kind)? {
            Some(number) => {
                let query = by_pos(&format!("{between} AND type = ?3"));
                read(reader, &query, &[from, to, number], None, bounds)
            }
            None => Ok(Page::default()),
        },
        Select::CausedBy(cause) => {
            let query = by_pos(&format!("{between} AND cause = ?3"));
            read(reader, &query, &[from, to, signed(*cause)], None, bounds)
        }
        Select::Key(topic, key) => match reader.number(topic)? {
            Some(number) => {
                let query = by_pos(&format!("{between} AND topic = ?3 AND key = ?4"));
                read(reader, &query, &[from, to, number], Some(key), bounds)
            }
            None => Ok(Page::default()),
        },
        Select::Topic(topic) => match reader.number(topic)? {
            Some(number) => of_topic(reader, number, bounds),
            None => Ok(Page::default()),
        },
        Select::Pattern(pattern) => match pattern.literal() {
            Some(topic) => page(reader, &Select::Topic(topic), range),
            None => of_pattern(reader, pattern, bounds),
        },
    }
}

fn read(reader: &mut Reader, query: &str, values: &[i64], key: Option<&str>, bounds: Bounds) -> Result<Page, Error> {
    let mut rows = Vec::new();
    let more = reader.rows(query, values, key, bounds.limit + 1, &mut rows)?;
    Ok(bounds.page(rows, more))
}

fn of_topic(reader: &mut Reader, number: i64, bounds: Bounds) -> Result<Page, Error> {
    let (first, last) = seqs(reader, number, bounds)?;
    let query = select(
        COLUMNS,
        &format!("topic = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq {}", bounds.order()),
    );
    let page = read(reader, &query, &[number, first, last], None, bounds)?;
    for pair in page.rows.windows(2) {
        if pair[0].seq.abs_diff(pair[1].seq) != 1 {
            let (topic, seq) = (&pair[0].topic, pair[0].seq.min(pair[1].seq) + 1);
            let why = format!("{topic} seq {seq} is missing: `neuron verify` looks through the store");
            return Err(Error::new(ErrorKind::Corrupt, why));
        }
    }
    Ok(page)
}

/// The seqs of a topic whose `pos` lies in the range. Both grow together, so a binary search finds them.
fn seqs(reader: &Reader, number: i64, bounds: Bounds) -> Result<(i64, i64), Error> {
    let first = first_seq(reader, number, bounds.from)?;
    let beyond = match bounds.to.checked_add(1) {
        Some(beyond) => first_seq(reader, number, beyond)?,
        None => i64::MAX,
    };
    Ok((first, beyond - 1))
}

/// The first seq of a topic that stands at `pos` or after it; one past its head if there is none.
fn first_seq(reader: &Reader, number: i64, pos: i64) -> Result<i64, Error> {
    if pos <= 1 {
        return Ok(1);
    }
    let here: Option<i64> = reader
        .prepare("SELECT seq FROM envelope WHERE pos = ?1 AND topic = ?2")?
        .query_row([pos, number], |row| row.get(0))
        .optional()
        .at(&reader.path)?;
    if let Some(seq) = here {
        return Ok(seq);
    }
    let last: Option<(i64, i64)> = reader
        .prepare("SELECT seq, pos FROM envelope WHERE topic = ?1 ORDER BY seq DESC LIMIT 1")?
        .query_row([number], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .at(&reader.path)?;
    let head = match last {
        Some((head, at)) if at >= pos => head,
        // It ends before, as most topics do if this is the end of the store.
        beyond => return Ok(beyond.map_or(1, |(head, _)| head + 1)),
    };
    let mut statement =
        reader.prepare("SELECT pos FROM envelope WHERE topic = ?1 AND seq >= ?2 ORDER BY seq LIMIT 1")?;
    let mut stands = |seq: i64| -> Result<bool, Error> {
        let at: Option<i64> = statement
            .query_row([number, seq], |row| row.get(0))
            .optional()
            .at(&reader.path)?;
        // Of a topic in an archive, the first envelopes may be missing: the next that is there stands for them.
        Ok(at.is_some_and(|at| at >= pos))
    };
    let (mut low, mut high) = (1, head + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if stands(middle)? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}

fn of_pattern(reader: &mut Reader, pattern: &Pattern, bounds: Bounds) -> Result<Page, Error> {
    // The end comes first: a topic that is new after it has no row before it.
    let (last, _) = reader.last()?;
    let bounds = Bounds {
        to: bounds.to.min(signed(last)),
        ..bounds
    };
    if (bounds.to - bounds.from) < signed(limits::WALKED_MAX as u64) {
        return walked(reader, pattern, bounds);
    }
    let numbers = matched(reader, pattern)?;
    if numbers.len() <= limits::MERGED_TOPICS_MAX {
        merged(reader, &numbers, bounds)
    } else {
        picked(reader, &numbers, bounds)
    }
}

fn matched(reader: &mut Reader, pattern: &Pattern) -> Result<Arc<HashSet<i64>>, Error> {
    let mut known = reader.matched.remove(pattern).unwrap_or_default();
    let greatest = reader.last_number()?;
    {
        let mut statement = reader.prepare("SELECT id, name FROM topic WHERE id > ?1 ORDER BY id")?;
        let mut rows = statement.query([known.upto]).at(&reader.path)?;
        while let Some(row) = rows.next().at(&reader.path)? {
            let (number, name): (i64, String) = (row.get(0).at(&reader.path)?, row.get(1).at(&reader.path)?);
            follows(known.upto, number)?;
            known.upto = number;
            // As for a short range: nobody knows whether the rows of a damaged name are meant.
            if pattern.matches(&topic_named(number, name)?) {
                Arc::make_mut(&mut known.numbers).insert(number);
            }
        }
    }
    if known.upto < greatest {
        return Err(missing(known.upto + 1));
    }
    if reader.matched.len() >= limits::CACHED_PATTERNS_MAX {
        reader.matched.clear();
    }
    let numbers = known.numbers.clone();
    reader.matched.insert(pattern.clone(), known);
    Ok(numbers)
}

/// Few topics: the next places of each come from its index, and only the rows of the page are read.
fn merged(reader: &mut Reader, numbers: &HashSet<i64>, bounds: Bounds) -> Result<Page, Error> {
    let wanted = bounds.limit + 1;
    let mut places: Vec<i64> = Vec::new();
    for number in numbers {
        let (first, last) = seqs(reader, *number, bounds)?;
        let query = select(
            "pos",
            &format!(
                "topic = ?1 AND seq BETWEEN ?2 AND ?3 ORDER BY seq {} LIMIT ?4",
                bounds.order()
            ),
        );
        let mut statement = reader.prepare(&query)?;
        let found = statement
            .query_map(params![number, first, last, signed(wanted as u64)], |row| row.get(0))
            .at(&reader.path)?;
        for place in found {
            places.push(place.at(&reader.path)?);
        }
    }
    places.sort_unstable();
    if bounds.reverse {
        places.reverse();
    }
    places.truncate(wanted);
    fetched(reader, &places, bounds)
}

/// A short range: it is walked, and of all the topics of the store only those are looked at that stand in it.
fn walked(reader: &mut Reader, pattern: &Pattern, bounds: Bounds) -> Result<Page, Error> {
    let mut known = HashMap::new();
    picked_by(reader, bounds, |reader, number| {
        if let Some(matches) = known.get(&number) {
            return Ok(*matches);
        }
        // A name that is none is damage: whether its rows are meant is not known, and they are not passed over in silence.
        let matches = pattern.matches(&reader.topic(number)?);
        known.insert(number, matches);
        Ok(matches)
    })
}

/// Many topics: the log is walked.
fn picked(reader: &mut Reader, numbers: &HashSet<i64>, bounds: Bounds) -> Result<Page, Error> {
    picked_by(reader, bounds, |_, number| Ok(numbers.contains(&number)))
}

/// Walks the log; the rows of topics that are not taken are passed over without reading their records.
fn picked_by(
    reader: &mut Reader,
    bounds: Bounds,
    mut takes: impl FnMut(&Reader, i64) -> Result<bool, Error>,
) -> Result<Page, Error> {
    let query = select(
        "pos, topic",
        &format!("pos BETWEEN ?1 AND ?2 ORDER BY pos {} LIMIT ?3", bounds.order()),
    );
    let (mut places, mut end) = (Vec::new(), None);
    let mut walk = Walk::begin(reader, bounds)?;
    {
        let mut statement = reader.prepare(&query)?;
        let passed = signed(limits::PASSED_OVER_MAX as u64);
        let mut rows = statement.query([bounds.from, bounds.to, passed]).at(&reader.path)?;
        let mut passed_over = 0;
        loop {
            let Some(row) = rows.next().at(&reader.path)? else {
                if passed_over < limits::PASSED_OVER_MAX {
                    walk.end()?;
                }
                break;
            };
            let pos: i64 = row.get(0).at(&reader.path)?;
            walk.step(pos)?;
            passed_over += 1;
            if takes(reader, row.get(1).at(&reader.path)?)? {
                places.push(pos);
            }
            if places.len() > bounds.limit {
                break;
            }
            end = bounds.after(pos).filter(|_| passed_over == limits::PASSED_OVER_MAX);
        }
    }
    let mut page = fetched(reader, &places, bounds)?;
    page.next = page.next.or(end.map(unsigned));
    Ok(page)
}

/// The rows at these places. An index names each, so that one without a row is damage.
fn fetched(reader: &mut Reader, places: &[i64], bounds: Bounds) -> Result<Page, Error> {
    let (query, mut rows) = (select(COLUMNS, "pos = ?1"), Vec::new());
    for place in places {
        let before = rows.len();
        if reader.rows(&query, &[*place], None, bounds.limit + 1, &mut rows)? {
            break;
        }
        if rows.len() == before {
            return Err(gone(unsigned(*place)));
        }
    }
    let more = rows.len() < places.len();
    Ok(bounds.page(rows, more))
}

/// The places of a range as they come, one after the other: what is passed over in silence might be what was asked for.
struct Walk {
    next: i64,
    bounds: Bounds,
    /// The last `pos` that stood before the walk began.
    last: i64,
    /// An archive may leave topics out.
    has_holes: bool,
    began: bool,
}

impl Walk {
    fn begin(reader: &mut Reader, bounds: Bounds) -> Result<Self, Error> {
        let last = signed(reader.last()?.0);
        let next = if bounds.reverse {
            bounds.to.min(last)
        } else {
            bounds.from
        };
        let has_holes = reader.has_holes()?;
        Ok(Self {
            next,
            bounds,
            last,
            has_holes,
            began: false,
        })
    }

    fn step(&mut self, pos: i64) -> Result<(), Error> {
        // What came after the beginning of the walk may stand before its first place.
        let newer = self.bounds.reverse && !self.began && pos >= self.next;
        if !self.has_holes && !newer && pos != self.next {
            return Err(gone(unsigned(self.next)));
        }
        self.began = true;
        self.next = if self.bounds.reverse { pos - 1 } else { pos + 1 };
        Ok(())
    }

    /// The walk has found no more.
    fn end(&self) -> Result<(), Error> {
        let left = if self.bounds.reverse {
            self.next >= self.bounds.from
        } else {
            self.next <= self.bounds.to.min(self.last)
        };
        if left && !self.has_holes {
            Err(gone(unsigned(self.next)))
        } else {
            Ok(())
        }
    }
}
