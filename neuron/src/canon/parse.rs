//! JSON text from outside, straight to its canonical form: nothing between the two is built.

use crate::ErrorKind;

use super::{
    fault::Fault,
    number::push_literal,
    text::{needs_escape, push_string},
    writer::Writer,
};

/// The name under which `serde_json` types carry raw JSON, as struct and as field.
pub(super) const RAW: &str = "$serde_json::private::RawValue";
/// A field that [`Json`](super::Json) says it skips before such a raw field: the text is canonical already. Other
/// serialisers do not look at skipped fields.
pub(super) const CANONICAL: &str = "$neuron::Json";

/// Appends the canonical form of `text`.
pub(super) fn transcode(text: &str, writer: &mut Writer) -> Result<(), Fault> {
    let mut parser = Parser { text, at: 0 };
    parser.document(writer).map_err(|fault| fault.locate(text))
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn document(&mut self, writer: &mut Writer) -> Result<(), Fault> {
        self.value(writer)?;
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the text")),
        }
    }

    /// The next byte that is not white space; the parser stands on it.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blank = rest.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
        self.at += blank.unwrap_or(rest.len());
        self.byte()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn value(&mut self, writer: &mut Writer) -> Result<(), Fault> {
        match self.peek() {
            Some(b'{') => self.object(writer),
            Some(b'[') => self.array(writer),
            Some(b'"') => {
                let start = self.at;
                match self.string()? {
                    // A text that holds no backslash is canonical as it stands, quotes included.
                    Text::Plain(_) => writer.out.push_str(&self.text[start..self.at]),
                    Text::Unescaped(text) => push_string(&mut writer.out, &text),
                }
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => {
                let start = self.at;
                let literal = self.number()?;
                push_literal(&mut writer.out, literal).map_err(|fault| fault.at(start))
            }
            _ => self.word(writer),
        }
    }

    fn word(&mut self, writer: &mut Writer) -> Result<(), Fault> {
        let rest = &self.text[self.at..];
        let Some(word) = ["null", "true", "false"]
            .into_iter()
            .find(|word| rest.starts_with(word))
        else {
            return Err(self.unexpected("a JSON value"));
        };
        self.at += word.len();
        writer.out.push_str(word);
        Ok(())
    }

    fn array(&mut self, writer: &mut Writer) -> Result<(), Fault> {
        writer.enter().map_err(|fault| fault.at(self.at))?;
        self.at += 1;
        writer.out.push('[');
        if !self.skip(b']') {
            for index in 0.. {
                self.value(writer).map_err(|fault| fault.index(index))?;
                if self.skip(b']') {
                    break;
                }
                self.comma(b']')?;
                writer.out.push(',');
            }
        }
        writer.out.push(']');
        writer.leave();
        Ok(())
    }

    fn object(&mut self, writer: &mut Writer) -> Result<(), Fault> {
        let mut object = writer.open().map_err(|fault| fault.at(self.at))?;
        self.at += 1;
        if !self.skip(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(self.unexpected("a key in double quotes"));
                }
                let at = self.at;
                let key = self.string()?;
                writer.begin(&mut object, key.as_str(), at);
                if !self.skip(b':') {
                    return Err(self.unexpected("`:`").key(key.as_str()));
                }
                self.value(writer).map_err(|fault| fault.key(key.as_str()))?;
                writer.end();
                if self.skip(b'}') {
                    break;
                }
                self.comma(b'}')?;
            }
        }
        writer.close(&object)
    }

    fn comma(&mut self, end: u8) -> Result<(), Fault> {
        if self.skip(b',') {
            return Ok(());
        }
        Err(self.unexpected(if end == b']' { "`,` or `]`" } else { "`,` or `}`" }))
    }

    fn string(&mut self) -> Result<Text<'a>, Fault> {
        self.at += 1;
        let plain = self.run();
        if self.byte() == Some(b'"') {
            self.at += 1;
            return Ok(Text::Plain(plain));
        }
        let mut text = plain.to_owned();
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Text::Unescaped(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.unexpected("an escaped control character")),
                None => return Err(self.unexpected("`\"` at the end of a string")),
            }
            text.push_str(self.run());
        }
    }

    /// The longest run of characters that stand for themselves.
    fn run(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let end = rest.bytes().position(needs_escape).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        self.at += 1;
        let escaped = match self.byte() {
            Some(b'u') => return self.unicode(start),
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            _ => return Err(self.unexpected("one of `\"\\/bfnrtu` after a backslash")),
        };
        self.at += 1;
        Ok(escaped)
    }

    fn unicode(&mut self, start: usize) -> Result<char, Fault> {
        let first = self.hex()?;
        let pair = (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u");
        let code = if pair {
            self.at += 1;
            let second = self.hex()?;
            let low = second.checked_sub(0xdc00).filter(|low| *low < 0x400);
            low.map(|low| 0x1_0000 + ((first - 0xd800) << 10) + low)
        } else {
            Some(first)
        };
        code.and_then(char::from_u32)
            .ok_or_else(|| Fault::malformed("half of a surrogate pair is no character").at(start))
    }

    /// Four hex digits after the `u` the parser stands on.
    fn hex(&mut self) -> Result<u32, Fault> {
        self.at += 1;
        let digits = self.text.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let code = code.ok_or_else(|| self.unexpected("four hex digits"))?;
        self.at += 4;
        Ok(code)
    }

    fn number(&mut self) -> Result<&'a str, Fault> {
        let start = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(&self.text[start..self.at])
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if count == 0 {
            return Err(self.unexpected("a digit"));
        }
        self.at += count;
        Ok(())
    }

    #[cold]
    fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => format!("{found:?}"),
            None => "the end of the text".to_owned(),
        };
        Fault::new(ErrorKind::Malformed, format_args!("expected {expected}, found {found}")).at(self.at)
    }
}

enum Text<'a> {
    Plain(&'a str),
    Unescaped(String),
}

impl Text<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Plain(text) => text,
            Self::Unescaped(text) => text,
        }
    }
}
