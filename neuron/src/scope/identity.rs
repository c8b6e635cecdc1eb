use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{
    known::{Known, Past},
    runtime::Runtime,
};
use crate::{CALL_CONTEXT, Digest, Error, Json, Result};

/// For what [`outside`] hashes.
const OUTSIDE_CONTEXT: &str = "neuron-outside-v1";

/// What a call is: the hash of scope, name and arguments.
pub(super) fn content(scope: &str, name: &str, identity: &Json) -> Result<String, Error> {
    let text = format!("[{},{},{identity}]", Json::of(scope)?, Json::of(name)?);
    Ok(Digest::derive(CALL_CONTEXT, text.as_bytes()).to_string())
}

/// What the outside knows a call of a fork by: the hash of the fork's id and the call's key.
pub(super) fn outside(run: &str, key: &str) -> String {
    let text = Json::of(&(run, key)).unwrap_or_else(|_| Json::null());
    Digest::derive(OUTSIDE_CONTEXT, text.as_str().as_bytes()).to_string()
}

/// The `draw`-th number of a scope, from 1: the first 8 bytes, little end first, of the BLAKE3 hash of the canonical
/// JSON `[scope, draw]`.
pub(super) fn random(scope: &str, draw: u64) -> u64 {
    let text = Json::of(&(scope, draw)).unwrap_or_else(|_| Json::null());
    let hash = Digest::content(text.as_str().as_bytes());
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.as_bytes()[..8]);
    u64::from_le_bytes(bytes)
}

/// Recorded calls that are another content today, because their name or the form of their arguments has changed. They
/// keep their recorded key, so that what stands below them is found.
#[derive(Default)]
pub(super) struct Aliases {
    /// Calls whose arguments have another form today, by what they are by today's types.
    changed: HashMap<String, Vec<Arc<str>>>,
    /// All recorded calls by their content, once a former name has been asked for.
    recorded: Option<HashMap<String, Vec<Arc<str>>>>,
    /// For a content that was asked for: the recorded key of each occurrence.
    known: HashMap<String, BTreeMap<u64, Arc<str>>>,
}

impl Aliases {
    pub(super) fn new(scope: &str, past: &Past, runtime: &Runtime) -> Self {
        let mut changed = HashMap::<_, Vec<_>>::new();
        for (key, call) in past.iter() {
            let Some((name, today)) = by_present_types(call, runtime) else {
                continue;
            };
            if let Ok(content) = content(scope, name, &today) {
                changed.entry(content).or_default().push(key.clone());
            }
        }
        Self {
            changed,
            ..Self::default()
        }
    }

    /// The recorded key of the `nth` call of a content, from 1, if one of this content was recorded as another.
    /// `former` is what it was under the names that it had before.
    pub(super) fn find(&mut self, content: &str, former: &[String], nth: u64, past: &Past) -> Option<Arc<str>> {
        if let Some(known) = self.known.get(content) {
            return known.get(&nth).cloned();
        }
        let mut keys = self.changed.remove(content).unwrap_or_default();
        if keys.is_empty() && former.is_empty() {
            return None;
        }
        let recorded = self.recorded.get_or_insert_with(|| by_content(past));
        for content in former.iter().map(String::as_str).chain([content]) {
            keys.extend(recorded.get(content).into_iter().flatten().cloned());
        }
        let known = self
            .known
            .entry(content.to_owned())
            .or_insert_with(|| in_places(keys, past));
        known.get(&nth).cloned()
    }
}

fn by_content(past: &Past) -> HashMap<String, Vec<Arc<str>>> {
    let mut recorded = HashMap::<_, Vec<_>>::new();
    for (key, _) in past.iter() {
        let content = key.split('#').next().unwrap_or_default();
        recorded.entry(content.to_owned()).or_default().push(key.clone());
    }
    recorded
}

/// Calls that are one content today, each in the place of its occurrence, or in the next one that is free: the one that
/// began first goes first.
fn in_places(keys: Vec<Arc<str>>, past: &Past) -> BTreeMap<u64, Arc<str>> {
    let born = |key: &Arc<str>| past.get(key).map_or(0, |call| call.born);
    let mut keys: Vec<_> = keys
        .into_iter()
        .map(|key| (occurrence(&key), born(&key), key))
        .collect();
    keys.sort();
    keys.dedup();
    let mut places = BTreeMap::new();
    for (occurrence, _, key) in keys {
        let mut place = occurrence;
        while places.contains_key(&place) {
            place += 1;
        }
        places.insert(place, key);
    }
    places
}

/// A recorded step by its present name and types; `None` if its arguments have the present form already, or no form that
/// is known today.
fn by_present_types(call: &Known, runtime: &Runtime) -> Option<(&'static str, Json)> {
    let (args, recorded) = (call.args.as_ref()?, call.args_schema?);
    let code = runtime.code.as_ref()?;
    let present = code.args_schema(&call.name)?;
    if recorded == present {
        return None;
    }
    // What the present types read needs no upcaster.
    let identity = code.identity(&call.name, args).ok().or_else(|| {
        let args = runtime.journal.upcast(args.clone(), recorded, present).ok()?;
        code.identity(&call.name, &args).ok()
    });
    Some((code.present_name(&call.name)?, identity?))
}

fn occurrence(key: &str) -> u64 {
    key.rsplit('#')
        .next()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIRE: &str = include_str!("../../docs/WIRE.md");

    #[test]
    fn the_vectors_of_a_scope_come_out_as_written() {
        let url = Json::parse(r#"{"url":"https://example.org/"}"#).unwrap();
        let call = content("run-1", "fetch", &url).unwrap();
        let draws = [random("run-1", 1), random("run-1", 2)].map(|draw| draw.to_string());
        let missing: Vec<_> = draws
            .iter()
            .chain([&call])
            .filter(|value| !WIRE.contains(value.as_str()))
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
