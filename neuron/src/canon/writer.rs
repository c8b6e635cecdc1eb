//! The one output buffer, and the objects in it that are put in order by moving ranges of it.

use std::{cell::Cell, ops::Range};

use crate::{ErrorKind, limits};

use super::{
    fault::Fault,
    text::{push_string, utf16_order},
};

thread_local! {
    /// A used writer, kept for its allocations. Taken out while in use, so a nested call simply makes another.
    static SPARE: Cell<Option<Writer>> = const { Cell::new(None) };
}

/// Canonical text being written.
#[derive(Default)]
pub(super) struct Writer {
    pub(super) out: String,
    /// Members of the objects that are open, outermost object first.
    members: Vec<Member>,
    /// The unescaped keys of those members: escapes would change their order.
    keys: String,
    scratch: String,
    depth: usize,
}

struct Member {
    key: Range<usize>,
    text: Range<usize>,
    /// Byte offset of the key in the text that is parsed.
    at: usize,
}

/// An object that is open in a [`Writer`].
pub(super) struct Open {
    start: usize,
    first: usize,
    current: usize,
    keys: usize,
    ordered: bool,
}

impl Writer {
    /// Runs `write` on an empty writer and gives what it wrote to `take`.
    pub(super) fn with<T>(
        write: impl FnOnce(&mut Self) -> Result<(), Fault>,
        take: impl FnOnce(&str) -> T,
    ) -> Result<T, Fault> {
        let mut writer = SPARE.take().unwrap_or_default();
        let result = write(&mut writer).map(|()| take(&writer.out));
        if writer.out.capacity() <= limits::INLINE_VALUE_BYTES_MAX {
            writer.clear();
            SPARE.set(Some(writer));
        }
        result
    }

    fn clear(&mut self) {
        self.out.clear();
        self.members.clear();
        self.keys.clear();
        self.scratch.clear();
        self.depth = 0;
    }

    /// Goes one array or object deeper.
    pub(super) fn enter(&mut self) -> Result<(), Fault> {
        self.enter_by(1)?;
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    fn enter_by(&self, levels: usize) -> Result<(), Fault> {
        if self.depth + levels <= limits::JSON_DEPTH_MAX {
            return Ok(());
        }
        Err(Fault::new(
            ErrorKind::TooLarge,
            format_args!("nested deeper than {} levels", limits::JSON_DEPTH_MAX),
        ))
    }

    /// Appends text that is canonical already.
    pub(super) fn embed(&mut self, canonical: &str) -> Result<(), Fault> {
        self.holds(canonical)?;
        self.out.push_str(canonical);
        Ok(())
    }

    /// Whether canonical text may stand here without nesting too deep.
    fn holds(&self, canonical: &str) -> Result<(), Fault> {
        // Counting brackets overestimates the depth (strings hold some too) but costs next to nothing.
        let brackets = canonical.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count();
        self.enter_by(brackets).or_else(|_| self.enter_by(depth(canonical)))
    }

    /// As [`holds`](Self::holds), so many levels inside of other text.
    pub(super) fn holds_at(levels: usize, canonical: &str) -> Result<(), Fault> {
        let writer = Self {
            depth: levels,
            ..Self::default()
        };
        writer.holds(canonical)
    }

    pub(super) fn open(&mut self) -> Result<Open, Fault> {
        self.enter()?;
        self.out.push('{');
        Ok(Open {
            start: self.out.len(),
            first: self.members.len(),
            current: self.members.len(),
            keys: self.keys.len(),
            ordered: true,
        })
    }

    /// Begins the member `key`, which stands at `at` in the text that is parsed, if one is.
    pub(super) fn begin(&mut self, object: &mut Open, key: &str, at: usize) {
        if let Some(last) = self.members[object.first..].last() {
            object.ordered &= utf16_order(&self.keys[last.key.clone()], key).is_lt();
            self.out.push(',');
        }
        let (start, name) = (self.out.len(), self.keys.len());
        self.keys.push_str(key);
        push_string(&mut self.out, key);
        self.out.push(':');
        object.current = self.members.len();
        self.members.push(Member {
            key: name..self.keys.len(),
            text: start..start,
            at,
        });
    }

    /// Ends the member begun last.
    pub(super) fn end(&mut self) {
        if let Some(member) = self.members.last_mut() {
            member.text.end = self.out.len();
        }
    }

    /// The key of the object's latest member, for the path of a failure in its value (which leaves its own members).
    pub(super) fn key(&self, object: &Open) -> &str {
        let member = self.members.get(object.current);
        member.map_or("", |member| &self.keys[member.key.clone()])
    }

    pub(super) fn close(&mut self, object: &Open) -> Result<(), Fault> {
        if !object.ordered {
            self.order(object)?;
        }
        self.members.truncate(object.first);
        self.keys.truncate(object.keys);
        self.out.push('}');
        self.leave();
        Ok(())
    }

    fn order(&mut self, object: &Open) -> Result<(), Fault> {
        let keys = &self.keys;
        let members = &mut self.members[object.first..];
        members.sort_unstable_by(|a, b| {
            utf16_order(&keys[a.key.clone()], &keys[b.key.clone()]).then(a.text.start.cmp(&b.text.start))
        });
        for pair in members.windows(2) {
            let key = &keys[pair[0].key.clone()];
            if *key == keys[pair[1].key.clone()] {
                return Err(Fault::malformed("this key stands twice in the object")
                    .key(key)
                    .at(pair[1].at));
            }
        }
        self.scratch.clear();
        self.scratch.push_str(&self.out[object.start..]);
        self.out.truncate(object.start);
        for (index, member) in members.iter().enumerate() {
            if index > 0 {
                self.out.push(',');
            }
            let text = member.text.start - object.start..member.text.end - object.start;
            self.out.push_str(&self.scratch[text]);
        }
        Ok(())
    }
}

/// How deep arrays and objects nest in canonical text.
fn depth(canonical: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0_usize, 0, false, false);
    for byte in canonical.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
