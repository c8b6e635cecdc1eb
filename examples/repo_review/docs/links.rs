//! The links of a Markdown file.
//!
//! Not a Markdown parser: inline links and images, reference definitions, and the `href` and `src` of embedded HTML,
//! outside of code. A link whose text or target goes over a line break is not seen.

/// Calls `each` with the line, from 1, and the target of every link, as written.
pub(super) fn links(markdown: &[u8], mut each: impl FnMut(u64, &[u8])) {
    let mut fence: Option<Fence> = None;
    for (count, line) in (1..).zip(markdown.split(|byte| *byte == b'\n')) {
        let found = Fence::of(line);
        match (&fence, found) {
            (Some(open), Some(close)) if open.closed_by(&close) => fence = None,
            (Some(_), _) => {}
            (None, Some(open)) => fence = Some(open),
            (None, None) => line_links(&without_code(line), &mut |target| each(count, target)),
        }
    }
}

/// The line that begins or ends a block of code.
struct Fence {
    sign: u8,
    length: usize,
    bare: bool,
}

impl Fence {
    fn of(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii();
        let sign = *line.first().filter(|sign| matches!(sign, b'`' | b'~'))?;
        let length = line.iter().take_while(|byte| **byte == sign).count();
        let rest = &line[length..];
        // A line of inline code that begins with three backticks has another one further on.
        (length >= 3 && (sign == b'~' || !rest.contains(&b'`'))).then_some(Self {
            sign,
            length,
            bare: rest.is_empty(),
        })
    }

    fn closed_by(&self, other: &Self) -> bool {
        other.bare && other.sign == self.sign && other.length >= self.length
    }
}

/// The line with blanks where code stands between backticks.
fn without_code(line: &[u8]) -> Vec<u8> {
    let mut kept = line.to_vec();
    let mut at = 0;
    while let Some(start) = line[at..].iter().position(|byte| *byte == b'`').map(|found| at + found) {
        let ticks = line[start..].iter().take_while(|byte| **byte == b'`').count();
        let mut close = start + ticks;
        at = close;
        while close < line.len() {
            let run = line[close..].iter().take_while(|byte| **byte == b'`').count();
            if run == ticks {
                kept[start..close + run].fill(b' ');
                at = close + run;
                break;
            }
            close += run.max(1);
        }
    }
    kept
}

fn line_links(line: &[u8], each: &mut dyn FnMut(&[u8])) {
    if let Some(target) = definition(line) {
        each(target);
        return;
    }
    let ends = line.windows(2).enumerate().filter(|(_, two)| two == b"](");
    for (at, _) in ends {
        if let Some(target) = inline(&line[at + 2..]) {
            each(target);
        }
    }
    for attribute in [&b"href=\""[..], b"src=\""] {
        let starts = line
            .windows(attribute.len())
            .enumerate()
            .filter(|(_, window)| *window == attribute);
        for (at, _) in starts {
            let rest = &line[at + attribute.len()..];
            if let Some(end) = rest.iter().position(|byte| *byte == b'"') {
                each(&rest[..end]);
            }
        }
    }
}

/// The target of `[name]: target`.
fn definition(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii_start();
    let rest = line.strip_prefix(b"[").filter(|rest| !rest.starts_with(b"^"))?;
    let close = rest.windows(2).position(|two| two == b"]:")?;
    if rest[..close].contains(&b']') {
        return None;
    }
    let target = rest[close + 2..].trim_ascii();
    Some(target.split(u8::is_ascii_whitespace).next().unwrap_or(target))
}

/// The target of `](target)` or `](<target> "title")`, from behind the bracket.
fn inline(rest: &[u8]) -> Option<&[u8]> {
    let rest = rest.trim_ascii_start();
    if let Some(angled) = rest.strip_prefix(b"<") {
        return angled.iter().position(|byte| *byte == b'>').map(|end| &angled[..end]);
    }
    let mut depth = 0_u32;
    for (at, byte) in rest.iter().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return Some(&rest[..at]),
            b')' => depth -= 1,
            _ if byte.is_ascii_whitespace() => return Some(&rest[..at]),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(markdown: &str) -> Vec<(u64, String)> {
        let mut all = Vec::new();
        links(markdown.as_bytes(), |line, target| {
            all.push((line, String::from_utf8_lossy(target).into_owned()));
        });
        all
    }

    #[test]
    fn every_way_to_write_a_link_is_seen() {
        let text = "[a](b.md) ![i](c(1).png \"t\") [x](<d e.md>)\n[ref]: f.md 'title'\n<a href=\"g.md\">\n";
        let targets: Vec<_> = found(text).into_iter().map(|(_, target)| target).collect();
        assert_eq!(targets, ["b.md", "c(1).png", "d e.md", "f.md", "g.md"]);
    }

    #[test]
    fn links_in_code_are_none() {
        assert_eq!(
            found("`[a](b)` ``x ` [c](d)`` [e](f)\n```\n[g](h)\n~~~\n```\n[i](j)"),
            [(1, "f".into()), (6, "j".into())]
        );
    }
}
