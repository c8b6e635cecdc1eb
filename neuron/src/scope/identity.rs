use std::{collections::HashMap, sync::Arc};

use super::{
    past::{Known, Past},
    runtime::Runtime,
};
use crate::{CALL_CONTEXT, Digest, Error, Json, Result};

/// What a call is: the hash of scope, name and arguments.
pub(super) fn content(scope: &str, name: &str, identity: &Json) -> Result<String, Error> {
    let text = format!("[{},{},{identity}]", Json::of(scope)?, Json::of(name)?);
    Ok(Digest::derive(CALL_CONTEXT, text.as_bytes()).to_string())
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

/// Recorded calls whose arguments have another form today: what they are by today's types leads to the recorded key.
pub(super) fn aliases(scope: &str, past: &Past, runtime: &Runtime) -> HashMap<String, Vec<Arc<str>>> {
    let mut changed = HashMap::new();
    for (key, call) in past.iter() {
        let Some(today) = by_present_types(call, runtime) else {
            continue;
        };
        if let Ok(content) = content(scope, &call.name, &today) {
            changed
                .entry(content)
                .or_insert_with(Vec::new)
                .push((occurrence(key), call.born, key.clone()));
        }
    }
    for (key, call) in past.iter() {
        let unchanged = key.split('#').next().and_then(|content| changed.get_mut(content));
        if let Some(equal) = unchanged.filter(|equal| equal.iter().all(|(_, _, known)| known != key)) {
            equal.push((occurrence(key), call.born, key.clone()));
        }
    }
    let in_order = |mut keys: Vec<(u64, u64, Arc<str>)>| {
        keys.sort();
        keys.into_iter().map(|(_, _, key)| key).collect()
    };
    changed
        .into_iter()
        .map(|(content, keys)| (content, in_order(keys)))
        .collect()
}

/// The arguments of a recorded step by the present types; `None` if they have the present form already, or no form
/// that is known today.
fn by_present_types(call: &Known, runtime: &Runtime) -> Option<Json> {
    let (args, recorded) = (call.args.as_ref()?, call.args_schema?);
    let code = runtime.code.as_ref()?;
    let present = code.args_schema(&call.name)?;
    if recorded == present {
        return None;
    }
    // What the present types read needs no upcaster.
    code.identity(&call.name, args).ok().or_else(|| {
        let args = runtime.journal.upcast(args.clone(), recorded, present).ok()?;
        code.identity(&call.name, &args).ok()
    })
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
