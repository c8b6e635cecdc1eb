//! One more step of a package that runs: what is free is granted.

use crate::{
    package::{Claims, Key},
    ruling::Verdict,
};

/// Rules on a step that its package did not declare. `running` is every other package that runs, with what it holds: the
/// step cannot wait for one of them, since its own package holds claims meanwhile.
pub fn amend<'a>(wanted: &Claims, running: impl IntoIterator<Item = (&'a Key, &'a str, &'a Claims)>) -> Verdict {
    for (key, name, held) in running {
        if let Some(resource) = wanted.conflict(held) {
            return Verdict::Denied {
                because: format!("`{resource}` is held by `{name}`: declare the step, so that it can be ordered"),
                with: Some(key.clone()),
            };
        }
    }
    let because = if wanted.uses.is_empty() && wanted.owns.is_empty() {
        "it claims no resource".into()
    } else {
        "what it claims is free".into()
    };
    Verdict::Go { because }
}
