//! Rust source, read line by line: what is code, what is comment or string, what is test.
//!
//! A light lexer, not a parser: it knows comments, strings, characters and braces, which is enough to count words in
//! code without counting those in prose. Macros that build tokens in unusual ways can fool it.

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    /// Its code: comments and the insides of strings and characters are left out.
    pub(crate) code: &'a [u8],
    /// Whether it is, or begins, a doc comment of the item that follows.
    pub(crate) doc: bool,
    /// Whether it lies in an item marked as a test.
    pub(crate) test: bool,
}

/// Calls `each` with every line of `source`.
pub(crate) fn lines(source: &[u8], mut each: impl FnMut(Line<'_>)) {
    let mut lexer = Lexer::default();
    let mut region = TestRegion::default();
    let mut code = Vec::new();
    for raw in source.split(|byte| *byte == b'\n') {
        let doc = matches!(lexer.state, State::Code) && begins_doc(raw.trim_ascii_start());
        code.clear();
        lexer.line(raw, &mut code);
        let test = region.line(&code);
        each(Line { code: &code, doc, test });
    }
}

fn begins_doc(line: &[u8]) -> bool {
    let line_doc = line.starts_with(b"///") && !line.starts_with(b"////");
    line_doc || (line.starts_with(b"/**") && !line.starts_with(b"/**/") && !line.starts_with(b"/***"))
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Code,
    /// In a block comment, this many deep.
    Comment(u32),
    Str,
    /// In a raw string that ends with a quote and this many `#`.
    Raw(usize),
}

#[derive(Debug, Default)]
struct Lexer {
    state: State,
}

impl Lexer {
    fn line(&mut self, raw: &[u8], code: &mut Vec<u8>) {
        let mut rest = raw;
        while !rest.is_empty() {
            let used = match self.state {
                State::Code => match self.code(rest, code) {
                    0 => return, // a line comment: the rest is prose
                    used => used,
                },
                State::Comment(depth) => self.comment(rest, depth),
                State::Str => self.string(rest, code),
                State::Raw(hashes) => self.raw(rest, hashes, code),
            };
            rest = &rest[used.min(rest.len())..];
        }
    }

    /// Lexes one thing in code; gives its length, 0 for the start of a line comment.
    fn code(&mut self, rest: &[u8], code: &mut Vec<u8>) -> usize {
        if rest.starts_with(b"//") {
            return 0;
        }
        if rest.starts_with(b"/*") {
            self.state = State::Comment(1);
            return 2;
        }
        let after_name = code.last().is_some_and(|byte| is_name(*byte));
        if let Some((hashes, length)) = raw_start(rest).filter(|_| !after_name) {
            code.push(b'"');
            self.state = State::Raw(hashes);
            return length;
        }
        match rest[0] {
            b'"' => {
                code.push(b'"');
                self.state = State::Str;
                1
            }
            b'\'' => {
                code.push(b'\'');
                character(rest).unwrap_or(1) // a lifetime is a quote and then a name
            }
            byte => {
                code.push(byte);
                1
            }
        }
    }

    fn comment(&mut self, rest: &[u8], depth: u32) -> usize {
        if rest.starts_with(b"*/") {
            self.state = if depth == 1 {
                State::Code
            } else {
                State::Comment(depth - 1)
            };
            2
        } else if rest.starts_with(b"/*") {
            self.state = State::Comment(depth + 1);
            2
        } else {
            1
        }
    }

    fn string(&mut self, rest: &[u8], code: &mut Vec<u8>) -> usize {
        match rest[0] {
            b'\\' => 2,
            b'"' => {
                code.push(b'"');
                self.state = State::Code;
                1
            }
            _ => 1,
        }
    }

    fn raw(&mut self, rest: &[u8], hashes: usize, code: &mut Vec<u8>) -> usize {
        let ends = rest[0] == b'"' && rest.len() > hashes && rest[1..=hashes].iter().all(|byte| *byte == b'#');
        if !ends {
            return 1;
        }
        code.push(b'"');
        self.state = State::Code;
        hashes + 1
    }
}

/// The number of `#` and the length of `r"`, `r#"`, `br"`, … at the start of `rest`.
fn raw_start(rest: &[u8]) -> Option<(usize, usize)> {
    let prefix = [&b"br"[..], b"cr", b"r"]
        .into_iter()
        .find(|prefix| rest.starts_with(prefix))?;
    let after = &rest[prefix.len()..];
    let hashes = after.iter().take_while(|byte| **byte == b'#').count();
    (after.get(hashes) == Some(&b'"')).then_some((hashes, prefix.len() + hashes + 1))
}

/// The length of a character literal at the start of `rest`; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    let length = match rest.get(1)? {
        0xf0.. => 5,
        0xe0.. => 4,
        // Two bytes of UTF-8; or a backslash and what it escapes, which may be a quote.
        0xc0.. | b'\\' => 3,
        _ => 2,
    };
    let tail = rest.get(length..)?;
    let end = tail.iter().take(10).position(|byte| *byte == b'\'')?;
    (end == 0 || rest[1] == b'\\').then_some(length + end + 1)
}

pub(crate) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Follows the braces to know where an item marked `#[test]` or `#[cfg(test)]` ends.
#[derive(Debug, Default)]
struct TestRegion {
    depth: u64,
    /// A mark was seen and its item's body not yet.
    marked: bool,
    /// The depth outside of the item that is being passed.
    outside: Option<u64>,
}

impl TestRegion {
    fn line(&mut self, code: &[u8]) -> bool {
        let code = code.trim_ascii();
        if self.outside.is_none()
            && [&b"#[test]"[..], b"#[cfg(test)]"]
                .iter()
                .any(|mark| code.starts_with(mark))
        {
            self.marked = true;
        }
        let mut test = self.marked || self.outside.is_some();
        for byte in code {
            match byte {
                b'{' => self.open(),
                b'}' => self.close(),
                b';' => self.marked = false, // an item without a body: `mod tests;`
                _ => {}
            }
            test |= self.outside.is_some();
        }
        test
    }

    fn open(&mut self) {
        if std::mem::take(&mut self.marked) {
            self.outside = Some(self.depth);
        }
        self.depth += 1;
    }

    fn close(&mut self) {
        self.depth = self.depth.saturating_sub(1);
        if self.outside == Some(self.depth) {
            self.outside = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(source: &str) -> Vec<String> {
        let mut all = Vec::new();
        lines(source.as_bytes(), |line| {
            all.push(String::from_utf8_lossy(line.code).trim().to_owned());
        });
        all
    }

    #[test]
    fn comments_strings_and_characters_are_no_code() {
        assert_eq!(code("a(); // unwrap()"), ["a();"]);
        assert_eq!(code("a(\"// \\\" unwrap()\"); b"), ["a(\"\"); b"]);
        assert_eq!(code("a /* x /* y */ z */ b"), ["a  b"]);
        assert_eq!(code("r#\"one \" two\"# + x"), ["\"\" + x"]);
        assert_eq!(
            code("let c = '\"'; let d = '\\''; let e = '{'; f::<'a>()"),
            ["let c = '; let d = '; let e = '; f::<'a>()"]
        );
        assert_eq!(code("\"one\ntwo unwrap()\nthree\" + x"), ["\"", "", "\" + x"]);
    }

    #[test]
    fn a_test_module_ends_with_its_brace() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { \"}\" }\n}\nfn c() {}\n#[cfg(test)]\nmod more;\nfn d() {}";
        let mut tests = Vec::new();
        lines(source.as_bytes(), |line| tests.push(line.test));
        assert_eq!(tests, [false, true, true, true, true, false, true, true, false]);
    }

    #[test]
    fn a_doc_comment_is_told_from_a_comment() {
        let mut docs = Vec::new();
        lines(b"/// doc\n// no\n//// no\n/** doc */\n/*** no */\n/**/", |line| {
            docs.push(line.doc);
        });
        assert_eq!(docs, [true, false, false, true, false, false]);
    }
}
