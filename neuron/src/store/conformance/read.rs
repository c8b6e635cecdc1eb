use std::sync::Arc;

use super::fixture::{Case, Fixture, draft, refused, same, topic, wrong};
use crate::{
    Append, Cause, Draft, Error, ErrorKind, Kind, Pattern, Result, Topic, limits,
    store::{Range, Row, Select, TopicSummary},
};

pub(super) const CASES: &[Case] = &[
    (
        "a page holds what was asked for, in both directions, from any place, with any limit",
        pages,
    ),
    ("a pattern of many topics reads as one of few", patterns),
    ("heads, keys and topics are looked up", look_ups),
    ("ids are found by their first digits", ids),
    ("an empty store is read as such", empty),
];

/// A log of a few topics, types, keys and causes.
fn fill(f: &Fixture, topics: usize, count: usize) -> Result<Vec<Row>, Error> {
    let mut drafts = Vec::new();
    for n in 0..count {
        let name = match n % topics {
            0 => "$engine.log".to_owned(),
            1 => "/slash/log".to_owned(),
            other => format!("log.{other}.{}", if other % 2 == 0 { "even" } else { "odd" }),
        };
        let mut next: Draft = draft(&name, ["x", "y", "z"][n % 3], &n.to_string())?;
        if n % 4 == 1 {
            next = next.key(format!("k{}", n % 8))?;
        }
        if n % 5 == 2 {
            next = next.cause(Cause::Index(n / 2));
        }
        drafts.push(next);
    }
    f.append(Append::of(drafts))?;
    f.rows()
}

fn selects(rows: &[Row]) -> Result<Vec<Select>, Error> {
    let mut selects = vec![Select::All];
    for name in ["log.2.even", "$engine.log", "never.written"] {
        selects.push(Select::Topic(topic(name)?));
    }
    for pattern in ["log.*.even", "log.>", "**", "/**", "$engine.*", "log.2.even", "no.*"] {
        selects.push(Select::Pattern(Pattern::new(pattern)?));
    }
    selects.push(Select::Pattern(Pattern::all()));
    for kind in ["x", "z", "never"] {
        selects.push(Select::Kind(Kind::new(kind)?));
    }
    for row in rows.iter().filter(|row| row.pos % 7 == 1) {
        selects.push(Select::CausedBy(row.pos));
        selects.push(Select::Key(
            row.topic.clone(),
            row.key.clone().unwrap_or_else(|| Arc::from("k1")),
        ));
    }
    Ok(selects)
}

fn matches(select: &Select, row: &Row) -> bool {
    match select {
        Select::All => true,
        Select::Topic(topic) => row.topic == *topic,
        Select::Pattern(pattern) => pattern.matches(&row.topic),
        Select::Kind(kind) => row.kind == *kind,
        Select::CausedBy(pos) => row.cause == Some(*pos),
        Select::Key(topic, key) => row.topic == *topic && row.key.as_deref() == Some(key),
    }
}

/// Reads a range page by page, and compares it with what a plain filter gives.
fn compare(f: &Fixture, rows: &[Row], select: &Select, range: Range) -> Result<(), Error> {
    let inside = |row: &&Row| (range.from..=range.to).contains(&row.pos) && matches(select, row);
    let mut wanted: Vec<Row> = rows.iter().filter(inside).cloned().collect();
    if range.reverse {
        wanted.reverse();
    }
    let (mut found, mut rest) = (Vec::new(), range);
    for _ in 0..=2 * rows.len() + 2 {
        let page = f.store.page(select, rest)?;
        if page.rows.len() > range.limit {
            return Err(wrong(format!(
                "{select:?} in {rest:?}: {} rows are too many",
                page.rows.len()
            )));
        }
        found.extend(page.rows);
        match page.next {
            Some(next) if range.reverse => rest.to = next,
            Some(next) => rest.from = next,
            None => return same(&format!("{select:?} in {range:?}"), &found, &wanted),
        }
    }
    Err(wrong(format!("{select:?} in {range:?} does not come to an end")))
}

fn pages(f: &Fixture) -> Result<(), Error> {
    let rows = fill(f, 6, 60)?;
    for select in selects(&rows)? {
        for limit in [1, 7, usize::MAX] {
            for (from, to) in [(1, u64::MAX), (0, 60), (17, 43), (44, 44), (43, 17), (61, u64::MAX)] {
                for reverse in [false, true] {
                    let range = Range {
                        from,
                        to,
                        reverse,
                        limit,
                    };
                    compare(f, &rows, &select, range)?;
                }
            }
        }
    }
    Ok(())
}

fn patterns(f: &Fixture) -> Result<(), Error> {
    // So much between them that a range over all is no short one.
    let others = (0..=limits::WALKED_MAX).map(|n| draft("filler.log", "x", &n.to_string()));
    fill(f, 7, 40)?;
    f.append(Append::of(others.collect::<Result<Vec<_>, _>>()?))?;
    let between = limits::WALKED_MAX as u64 + 41;
    let rows = fill(f, 90, 400)?;
    for pattern in ["log.>", "log.*.odd", "log.*.even", "log.2.*", "*.*.odd", "none.*"] {
        let short = (between + 33, between + 390);
        for ((from, to), limit) in [
            (short, 10),
            (short, 512),
            ((5, between + 350), 512),
            ((1, u64::MAX), 100),
        ] {
            for reverse in [false, true] {
                let range = Range {
                    from,
                    to,
                    reverse,
                    limit,
                };
                compare(f, &rows, &Select::Pattern(Pattern::new(pattern)?), range)?;
            }
        }
    }
    // A topic that is new after a pattern was asked for is found by it.
    f.one(draft("log.late.even", "x", "!")?)?;
    let pattern = Select::Pattern(Pattern::new("log.*.even")?);
    let page = f.store.page(
        &pattern,
        Range {
            from: between + 401,
            ..Range::ALL
        },
    )?;
    same("late", &page.rows.len(), &1)
}

fn look_ups(f: &Fixture) -> Result<(), Error> {
    let rows = fill(f, 6, 60)?;
    let of = |topic: &Topic| rows.iter().filter(|row| row.topic == *topic).collect::<Vec<_>>();
    for summary in f.store.topics()? {
        let all = of(&summary.topic);
        let last = all.last().ok_or_else(|| wrong("a topic without envelopes"))?;
        let wanted = TopicSummary {
            topic: last.topic.clone(),
            head: all.len() as u64,
            last_pos: last.pos,
        };
        same("summary", &summary, &wanted)?;
        same("head", &f.store.head(&summary.topic)?, &wanted.head)?;
        same("row", &f.store.row(&summary.topic, last.seq)?.as_ref(), &Some(*last))?;
        same("no row", &f.store.row(&summary.topic, last.seq + 1)?, &None)?;
        for key in ["k1", "k5", "k3"] {
            let wanted = all
                .iter()
                .rfind(|row| row.key.as_deref() == Some(key))
                .map(|row| row.seq);
            same("key", &f.store.keyed(&summary.topic, key)?, &wanted)?;
        }
    }
    let names: Vec<String> = f
        .store
        .topics()?
        .iter()
        .map(|summary| summary.topic.to_string())
        .collect();
    let mut sorted = names.clone();
    sorted.sort();
    same("topics by name", &names, &sorted)?;
    same("how many", &names.len(), &6)
}

fn ids(f: &Fixture) -> Result<(), Error> {
    let rows = fill(f, 6, 300)?;
    let look_up = |digits: &str| -> Result<(), Error> {
        let wanted: Vec<u64> = rows
            .iter()
            .filter(|row| row.id.to_string().starts_with(digits))
            .map(|row| row.pos)
            .take(16)
            .collect();
        let found = f.store.with_id(digits)?;
        same("how many", &found.len(), &wanted.len())?;
        let others = found.iter().filter(|pos| {
            let row = rows.iter().find(|row| row.pos == **pos);
            !row.is_some_and(|row| row.id.to_string().starts_with(digits))
        });
        same("others", &others.count(), &0)
    };
    for row in rows.iter().step_by(37) {
        let id = row.id.to_string();
        same("whole id", &f.store.with_id(&id)?, &vec![row.pos])?;
        [1, 2, 3, 8, 16, 17, 63]
            .iter()
            .try_for_each(|digits| look_up(&id[..*digits]))?;
    }
    for wrong in ["", "xyz", "ABCD", &"0".repeat(65)] {
        refused(f.store.with_id(wrong), ErrorKind::Malformed)?;
    }
    let late = f.one(draft("a", "x", "late")?)?;
    same(
        "one written after the first look",
        &f.store.with_id(&late.id.to_string())?,
        &vec![late.pos],
    )
}

fn empty(f: &Fixture) -> Result<(), Error> {
    compare(f, &[], &Select::All, Range::ALL)?;
    same("last", &f.store.last()?.0, &0)?;
    same("tail", &*f.store.tail().borrow(), &0)?;
    same("topics", &f.store.topics()?.len(), &0)?;
    same("ids", &f.store.with_id("00")?, &Vec::new())?;
    f.store.sound()
}
