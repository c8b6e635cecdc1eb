//! The name a definition has on the log and as a tool.

use proc_macro2::{Ident, Span};
use syn::{LitStr, Path, ext::IdentExt};

use super::kind::Kind;
use crate::errors::Errors;

/// Longest name in bytes: what the makers of models accept as the name of a tool.
const NAME_MAX: usize = 64;

/// The name given by the option, else that of the function.
pub(super) fn of(ident: &Ident, given: Option<&LitStr>, kind: Kind, errors: &mut Errors) -> String {
    let bare = ident.unraw().to_string();
    match given {
        Some(text) if legal(&text.value()) => text.value(),
        Some(text) => {
            let message = format!("`{}` is no name; {}", text.value(), rule(kind));
            errors.on(text, message);
            bare
        }
        None if legal(&bare) => bare,
        None => {
            let message = format!("{}; give {} one with `name = \"…\"`", rule(kind), kind.a());
            errors.on(ident, message);
            bare
        }
    }
}

/// Notes the former names that are none, that are the present one, or that are given twice.
pub(super) fn refuse_was(was: &[LitStr], name: &str, kind: Kind, errors: &mut Errors) {
    for (at, text) in was.iter().enumerate() {
        let former = text.value();
        if !legal(&former) {
            errors.on(text, format!("`{former}` was never a name; {}", rule(kind)));
        } else if former == name {
            let message = format!(
                "{} is called `{name}` now; `was` takes the names it had before",
                kind.a()
            );
            errors.on(text, message);
        } else if was.iter().take(at).any(|earlier| earlier.value() == former) {
            errors.on(text, format!("the former name `{former}` is given twice"));
        }
    }
}

/// The runtime named by the attribute, else the one the manifest names.
pub(super) fn runtime(given: Option<Path>, found: Result<Path, &'static str>, errors: &mut Errors) -> Option<Path> {
    match given.map_or(found, Ok) {
        Ok(path) => Some(path),
        Err(message) => {
            errors.at(Span::call_site(), message);
            None
        }
    }
}

fn legal(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain)
}

fn rule(kind: Kind) -> String {
    format!("the name of {} is 1 to {NAME_MAX} of `A-Z a-z 0-9 _ -`", kind.a())
}
