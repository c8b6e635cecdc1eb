use std::{collections::HashMap, str::Split};

use super::{Pattern, Topic, name};

/// What is registered under patterns, found by topic: whoever wants nothing of a topic is not looked at.
///
/// Patterns without wildcard stand in a map; the others in a tree of segments.
#[derive(Debug)]
pub(crate) struct Index<T> {
    exact: HashMap<Topic, Vec<(u64, T)>>,
    dotted: Node<T>,
    slashed: Node<T>,
    /// Those of [`Pattern::all`].
    all: Vec<(u64, T)>,
}

#[derive(Debug)]
struct Node<T> {
    named: HashMap<Box<str>, Node<T>>,
    any: Option<Box<Node<T>>>,
    /// Patterns that end here.
    here: Vec<(u64, T)>,
    /// Patterns that end in `**` here.
    rest: Vec<(u64, T)>,
    /// Patterns that end in `>` here.
    more: Vec<(u64, T)>,
}

impl<T> Default for Index<T> {
    fn default() -> Self {
        Self {
            exact: HashMap::new(),
            dotted: Node::default(),
            slashed: Node::default(),
            all: Vec::new(),
        }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self {
            named: HashMap::new(),
            any: None,
            here: Vec::new(),
            rest: Vec::new(),
            more: Vec::new(),
        }
    }
}

impl<T> Index<T> {
    /// Registers under a pattern; `key` is the caller's, and unique.
    pub(crate) fn insert(&mut self, pattern: &Pattern, key: u64, value: T) {
        if pattern.is_all() {
            return self.all.push((key, value));
        }
        if let Some(topic) = pattern.literal() {
            return self.exact.entry(topic).or_default().push((key, value));
        }
        let root = if pattern.as_str().starts_with('/') {
            &mut self.slashed
        } else {
            &mut self.dotted
        };
        root.insert(name::segments(pattern.as_str()), (key, value));
    }

    /// Takes out what was registered under this pattern with this key.
    pub(crate) fn remove(&mut self, pattern: &Pattern, key: u64) {
        if pattern.is_all() {
            return self.all.retain(|(known, _)| *known != key);
        }
        if let Some(topic) = pattern.literal() {
            if let Some(found) = self.exact.get_mut(&topic) {
                found.retain(|(known, _)| *known != key);
                if found.is_empty() {
                    self.exact.remove(&topic);
                }
            }
            return;
        }
        let root = if pattern.as_str().starts_with('/') {
            &mut self.slashed
        } else {
            &mut self.dotted
        };
        root.remove(name::segments(pattern.as_str()), key);
    }

    /// Shows each whose pattern selects `topic`, once.
    pub(crate) fn each<'a>(&'a self, topic: &Topic, mut show: impl FnMut(u64, &'a T)) {
        let mut show_all = |found: &'a [(u64, T)]| found.iter().for_each(|(key, value)| show(*key, value));
        if !self.exact.is_empty()
            && let Some(found) = self.exact.get(topic)
        {
            show_all(found);
        }
        if !topic.is_reserved() {
            show_all(&self.all);
        }
        let root = if topic.as_str().starts_with('/') {
            &self.slashed
        } else {
            &self.dotted
        };
        if root.is_empty() {
            return;
        }
        let mut segments = name::segments(topic.as_str());
        if topic.is_reserved() {
            // Names of the engine are selected only by a pattern that names their first segment.
            if let Some(node) = segments.next().and_then(|first| root.named.get(first)) {
                node.each(segments, &mut show_all);
            }
        } else {
            root.each(segments, &mut show_all);
        }
    }

    /// Whether any pattern selects `topic`.
    pub(crate) fn selects(&self, topic: &Topic) -> bool {
        let mut found = false;
        self.each(topic, |_, _| found = true);
        found
    }

    /// Everything that is registered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        let mut lists: Vec<&[(u64, T)]> = vec![&self.all];
        lists.extend(self.exact.values().map(Vec::as_slice));
        let mut nodes = vec![&self.dotted, &self.slashed];
        while let Some(node) = nodes.pop() {
            lists.extend([&*node.here, &node.rest, &node.more]);
            nodes.extend(node.named.values());
            nodes.extend(node.any.as_deref());
        }
        lists.into_iter().flatten().map(|(_, value)| value)
    }

    /// Whether nothing is registered.
    pub(crate) fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.all.is_empty() && self.dotted.is_empty() && self.slashed.is_empty()
    }
}

impl<T> Node<T> {
    fn is_empty(&self) -> bool {
        let Self {
            named,
            any,
            here,
            rest,
            more,
        } = self;
        named.is_empty() && any.is_none() && here.is_empty() && rest.is_empty() && more.is_empty()
    }

    fn insert<'a>(&mut self, mut segments: impl Iterator<Item = &'a str>, entry: (u64, T)) {
        match segments.next() {
            None => self.here.push(entry),
            Some("**") => self.rest.push(entry),
            Some(">") => self.more.push(entry),
            Some("*") => self.any.get_or_insert_default().insert(segments, entry),
            Some(segment) => self.named.entry(segment.into()).or_default().insert(segments, entry),
        }
    }

    fn remove<'a>(&mut self, mut segments: impl Iterator<Item = &'a str>, key: u64) {
        let without = |list: &mut Vec<(u64, T)>| list.retain(|(known, _)| *known != key);
        match segments.next() {
            None => without(&mut self.here),
            Some("**") => without(&mut self.rest),
            Some(">") => without(&mut self.more),
            Some("*") => {
                if let Some(node) = &mut self.any {
                    node.remove(segments, key);
                }
                self.any.take_if(|node| node.is_empty());
            }
            Some(segment) => {
                if let Some(node) = self.named.get_mut(segment) {
                    node.remove(segments, key);
                    if node.is_empty() {
                        self.named.remove(segment);
                    }
                }
            }
        }
    }

    fn each<'a>(&'a self, mut left: Split<'_, char>, show: &mut impl FnMut(&'a [(u64, T)])) {
        show(&self.rest);
        let Some(segment) = left.next() else {
            return show(&self.here);
        };
        show(&self.more);
        if let Some(node) = &self.any {
            node.each(left.clone(), show);
        }
        if let Some(node) = self.named.get(segment) {
            node.each(left, show);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::Index;
    use crate::{Pattern, Topic};

    fn pattern() -> impl Strategy<Value = String> {
        let segment = prop_oneof![Just("a"), Just("b"), Just("$x"), Just("*")];
        let end = prop_oneof![Just(""), Just("**"), Just(">")];
        let join = |(segments, end, slash): (Vec<&str>, &str, bool)| {
            let all: Vec<&str> = segments.into_iter().chain((!end.is_empty()).then_some(end)).collect();
            if slash {
                format!("/{}", all.join("/"))
            } else {
                all.join(".")
            }
        };
        prop_oneof![
            1 => Just(Pattern::all().as_str().to_owned()),
            9 => (vec(segment, 1..4), end, any::<bool>()).prop_map(join),
        ]
    }

    fn topic() -> impl Strategy<Value = Topic> {
        let segment = prop_oneof![Just("a"), Just("b"), Just("$x")];
        (vec(segment, 1..5), any::<bool>()).prop_map(|(segments, slash)| {
            let name = if slash {
                format!("/{}", segments.join("/"))
            } else {
                segments.join(".")
            };
            Topic::new(name).unwrap()
        })
    }

    proptest! {
        #[test]
        fn it_finds_exactly_those_whose_pattern_matches_and_forgets_who_is_taken_out(
            patterns in vec(pattern(), 0..20), topics in vec(topic(), 1..10), gone in vec(any::<bool>(), 20),
        ) {
            let patterns: Vec<Pattern> = patterns.iter().map(|text| Pattern::new(text).unwrap()).collect();
            let mut index = Index::default();
            for (key, pattern) in (0..).zip(&patterns) {
                index.insert(pattern, key, key);
            }
            for (key, pattern) in (0..).zip(&patterns).filter(|(key, _)| gone[usize::try_from(*key).unwrap()]) {
                index.remove(pattern, key);
            }
            let left = || (0_u64..).zip(&patterns).filter(|(key, _)| !gone[usize::try_from(*key).unwrap()]);
            for topic in &topics {
                let mut found = Vec::new();
                index.each(topic, |key, value| {
                    assert_eq!(key, *value);
                    found.push(key);
                });
                found.sort_unstable();
                let wanted: Vec<u64> = left().filter(|(_, pattern)| pattern.matches(topic)).map(|(key, _)| key).collect();
                prop_assert_eq!(index.selects(topic), !wanted.is_empty());
                prop_assert_eq!(found, wanted);
            }
            let mut all: Vec<u64> = index.iter().copied().collect();
            all.sort_unstable();
            prop_assert_eq!(all, left().map(|(key, _)| key).collect::<Vec<_>>());
            prop_assert_eq!(index.is_empty(), left().next().is_none());
            for (key, pattern) in left() {
                index.remove(pattern, key);
            }
            prop_assert!(index.is_empty(), "nothing is left behind: {index:?}");
        }
    }
}
