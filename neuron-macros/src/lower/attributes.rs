//! The other attributes of a function: which of them everybody sees, and which belong to the body.

use syn::{Attribute, Meta, Token, punctuated::Punctuated};

use super::kind::Kind;
use crate::errors::Errors;

/// Attributes of the function that callers and rustdoc see. Lint levels are among them: they reach all that is inside.
const OUTER: [&str; 10] = [
    "doc",
    "cfg",
    "deprecated",
    "must_use",
    "allow",
    "expect",
    "warn",
    "deny",
    "forbid",
    "automatically_derived",
];

/// Parts the attributes into those of the outer function and those of the body.
pub(super) fn split(attrs: &[Attribute]) -> (Vec<Attribute>, Vec<Attribute>) {
    attrs.iter().cloned().partition(|attr| is_outer(&attr.meta))
}

/// The attributes that decide whether the function exists.
pub(super) fn conditions(attrs: &[Attribute]) -> Vec<Attribute> {
    attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg"))
        .cloned()
        .collect()
}

/// A function is one thing: a second attribute of ours would expand what the first one made.
pub(super) fn refuse_a_second_kind(kind: Kind, attrs: &[Attribute], errors: &mut Errors) {
    for attr in attrs {
        if let Some(other) = Kind::of_attribute(attr.path()) {
            let message = format!(
                "a function is {} or {}, not both; remove one of the attributes",
                kind.a(),
                other.a()
            );
            let same = format!("`#[{}]` is given twice", kind.attribute());
            errors.on(attr, if other == kind { same } else { message });
        }
    }
}

fn is_outer(meta: &Meta) -> bool {
    if !meta.path().is_ident("cfg_attr") {
        return OUTER.iter().any(|name| meta.path().is_ident(name));
    }
    let Meta::List(list) = meta else { return true };
    let conditional = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated);
    conditional.is_ok_and(|metas| metas.iter().skip(1).all(is_outer))
}
