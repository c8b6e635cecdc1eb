//! Rust source as the rules see it: without comments, without what strings hold, without its unit tests.

use std::collections::BTreeSet;

/// One source file, blanked in place so that line numbers stay true.
#[derive(Debug)]
pub(crate) struct Source {
    /// Code with comments and the contents of strings replaced by spaces.
    pub(crate) code: String,
    /// The same without items under `#[cfg(test)]`.
    pub(crate) live: String,
    /// Every path of the live code that stands in a `use` or has more than one segment.
    pub(crate) paths: Vec<Path>,
    /// Lines of the file that do not belong to its unit tests.
    pub(crate) lines: usize,
}

/// A path found in code, such as `crate::topic::Topic`, with one entry per leaf of a `use` tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Path {
    /// Its segments; the last one is `*` for a glob.
    pub(crate) segments: Vec<String>,
    /// The name it is known by afterwards.
    pub(crate) name: String,
    /// Whether it stands in a `use` item.
    pub(crate) is_use: bool,
    /// Whether that item passes the name on (`pub use`) and the file itself never says it.
    pub(crate) only_passed_on: bool,
    /// The line it starts on.
    pub(crate) line: usize,
}

impl Source {
    pub(crate) fn new(text: &str) -> Self {
        let code = blank(text);
        let (live, test_lines) = without_tests(&code);
        let lines = text.lines().count() - test_lines;
        let paths = paths(&live);
        Self {
            code,
            live,
            paths,
            lines,
        }
    }

    /// Whether an item of this name is written here.
    pub(crate) fn defines(&self, name: &str) -> bool {
        let tokens = tokens(&self.live);
        let items = "struct enum trait fn type const static union mod macro_rules !";
        let mut pairs = tokens.windows(2);
        pairs.any(|pair| pair[1].text == name && items.split(' ').any(|item| item == pair[0].text))
    }

    /// The names of the functions marked as tests, each with its line.
    pub(crate) fn tests(&self) -> Vec<(usize, String)> {
        let tokens = tokens(&self.code);
        let mut found = Vec::new();
        let mut marked = false;
        for (at, token) in tokens.iter().enumerate() {
            let next = |n: usize| tokens.get(at + n).map_or("", |token| token.text);
            marked |= token.text == "test" && matches!(next(1), "]" | "(") && {
                let opens = |n: usize| at.checked_sub(n).is_some_and(|at| tokens[at].text == "[");
                opens(1) || opens(3)
            };
            if marked && token.text == "fn" {
                found.push((token.line, next(1).to_owned()));
                marked = false;
            }
        }
        found
    }
}

fn paths(code: &str) -> Vec<Path> {
    let tokens = tokens(code);
    let mut found: Vec<Path> = Vec::new();
    let mut said = BTreeSet::new();
    let mut at = 0;
    while at < tokens.len() {
        let before = at.checked_sub(1).map_or("", |last| tokens[last].text);
        let is_use = tokens[at].text == "use" && before != "$";
        let leads = tokens.get(at + 1).is_some_and(|next| next.text == "::");
        if is_use || leads && !matches!(before, "::" | "$" | "in") {
            let line = tokens[at].line;
            if !is_use {
                said.insert(tokens[at].text);
            }
            let passed_on = is_use && matches!(before, "pub" | ")");
            let mut tree = Tree {
                tokens: &tokens,
                at: at + usize::from(is_use),
                is_use,
                passed_on,
                line,
                found: Vec::new(),
            };
            tree.read(&[]);
            at = tree.at.max(at + 1);
            found.extend(
                tree.found
                    .into_iter()
                    .filter(|path| path.segments.len() > usize::from(!is_use)),
            );
        } else {
            said.insert(tokens[at].text);
            at += 1;
        }
    }
    for path in &mut found {
        path.only_passed_on &= !said.contains(path.name.as_str());
    }
    found
}

#[derive(Debug)]
struct Token<'a> {
    text: &'a str,
    line: usize,
}

/// Words, `::`, and every other visible character on its own.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let (mut at, mut line) = (0, 1);
    while let Some(first) = code[at..].chars().next() {
        let word = code[at..]
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(code.len() - at);
        let length = match word {
            0 if code[at..].starts_with("::") => 2,
            0 => first.len_utf8(),
            word => word,
        };
        if !first.is_whitespace() {
            found.push(Token {
                text: &code[at..at + length],
                line,
            });
        }
        line += usize::from(first == '\n');
        at += length;
    }
    found
}

/// A reader of one path or `use` tree.
struct Tree<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    is_use: bool,
    passed_on: bool,
    line: usize,
    found: Vec<Path>,
}

impl Tree<'_> {
    fn peek(&self) -> &str {
        self.tokens.get(self.at).map_or("", |token| token.text)
    }

    fn read(&mut self, prefix: &[String]) {
        let mut segments = prefix.to_vec();
        if self.peek() == "::" {
            self.at += 1; // `::name` is another crate; it resolves to nothing here
        }
        loop {
            match self.peek() {
                "{" if self.is_use => return self.group(&segments),
                "*" if self.is_use => segments.push("*".to_owned()),
                word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => segments.push(word.to_owned()),
                _ => break,
            }
            self.at += 1;
            if self.peek() != "::" {
                break;
            }
            self.at += 1;
        }
        if segments.len() > 1 && segments.last().is_some_and(|last| last == "self") {
            segments.pop();
        }
        let mut name = segments.last().cloned().unwrap_or_default();
        if self.is_use && self.peek() == "as" {
            self.at += 1;
            self.peek().clone_into(&mut name);
            self.at += 1;
        }
        self.found.push(Path {
            segments,
            name,
            is_use: self.is_use,
            only_passed_on: self.passed_on,
            line: self.line,
        });
    }

    fn group(&mut self, prefix: &[String]) {
        self.at += 1;
        while !matches!(self.peek(), "}" | "") {
            self.line = self.tokens[self.at].line;
            let start = self.at;
            self.read(prefix);
            if self.peek() == "," || self.at == start {
                self.at += 1;
            }
        }
        self.at += 1;
    }
}

/// Replaces comments and the contents of strings and characters by spaces, keeping every line break.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        let (length, hidden) = match first {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), true),
            '/' if rest.starts_with("/*") => (block_comment(rest), true),
            '"' => (quoted(rest), true),
            'r' | 'b' | 'c' if !after_word => literal(rest).map_or((1, false), |length| (length, true)),
            '\'' => character(rest).map_or((1, false), |length| (length, true)),
            other => (other.len_utf8(), false),
        };
        let (taken, left) = rest.split_at(length);
        code.extend(taken.chars().map(|c| if hidden && c != '\n' { ' ' } else { c }));
        after_word = first.is_alphanumeric() || first == '_';
        rest = left;
    }
    code
}

fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        match text.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at.min(text.len())
}

/// Bytes of the string that starts with a quote here.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

/// Bytes of the raw, byte or C literal that starts here, if one does.
fn literal(text: &str) -> Option<usize> {
    let mark = text
        .find(|c: char| !matches!(c, 'r' | 'b' | 'c'))
        .filter(|mark| *mark <= 2)?;
    let (prefix, rest) = text.split_at(mark);
    if prefix.ends_with('r') {
        let hashes = rest.find(|c: char| c != '#')?;
        let body = rest[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", &rest[..hashes]);
        let length = body.find(&end).map_or(body.len(), |at| at + end.len());
        return Some(mark + hashes + 1 + length);
    }
    match rest.chars().next()? {
        '"' => Some(mark + quoted(rest)),
        '\'' if prefix == "b" => character(rest).map(|length| mark + length),
        _ => None,
    }
}

/// Bytes of the character literal that starts here; a lifetime is none.
fn character(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('\'')?;
    let first = inner.chars().next()?;
    if first == '\\' {
        let end = inner.char_indices().skip(2).find(|(_, c)| *c == '\'')?.0;
        return Some(end + 2);
    }
    inner[first.len_utf8()..]
        .starts_with('\'')
        .then(|| first.len_utf8() + 2)
}

/// The code without items under `#[cfg(test)]`, and how many lines those had.
fn without_tests(code: &str) -> (String, usize) {
    let mark = "#[cfg(test)]";
    let (mut live, mut lines, mut rest) = (String::new(), 0, code);
    while let Some(start) = rest.find(mark) {
        let end = start + mark.len() + item(&rest[start + mark.len()..]);
        let hidden = &rest[start..end];
        live.push_str(&rest[..start]);
        live.extend(hidden.chars().filter(|c| *c == '\n'));
        lines += hidden.lines().count();
        rest = &rest[end..];
    }
    live.push_str(rest);
    (live, lines)
}

/// Bytes up to the end of the item that starts here: its closing brace or its semicolon.
fn item(code: &str) -> usize {
    let (mut braces, mut others) = (0_i32, 0_i32);
    for (at, c) in code.char_indices() {
        match c {
            '{' => braces += 1,
            '(' | '[' => others += 1,
            ')' | ']' => others -= 1,
            '}' => {
                braces -= 1;
                if braces == 0 {
                    return at + 1;
                }
            }
            ';' if braces == 0 && others == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn code_is_what_is_neither_comment_nor_text() {
    let source = Source::new(
        "use a::{b, c::{self, D as E}}; // todo!\nlet s = \"crate::x\"; let r = r#\"dbg!()\"#; let c = '\"'; fn f<'a>() {}\n\
         /* crate::y /* nested */ */ crate::z::call(); $crate::not; child::f(); b'\\'' ; br\"crate::q\";",
    );
    let paths: Vec<String> = source.paths.iter().map(|path| path.segments.join("::")).collect();
    assert_eq!(paths, ["a::b", "a::c", "a::c::D", "crate::z::call", "child::f"]);
    assert_eq!(source.paths[2].name, "E");
    assert!(!source.code.contains("todo") && !source.code.contains("dbg") && source.code.contains("fn f<'a>"));
}

#[test]
fn unit_tests_are_no_part_of_the_live_code() {
    let source = Source::new(
        "use crate::a;\n#[cfg(test)]\nmod tests {\n  use crate::b;\n  #[test]\n  fn one_two_three() {}\n}\nfn f() {}\n",
    );
    assert_eq!(source.paths.len(), 1);
    assert_eq!(source.lines, 2);
    assert_eq!(source.tests(), [(6, "one_two_three".to_owned())]);
}
