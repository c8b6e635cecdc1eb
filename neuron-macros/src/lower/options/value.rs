//! The values of options: a text, a number, a path.

use std::{fmt::Display, str::FromStr};

use syn::{Expr, ExprLit, Lit, LitStr, Path, Result};

use super::table::Spec;

/// A text in quotes that says something.
pub(super) fn text(spec: &Spec, value: &Expr) -> Result<LitStr> {
    match literal(value) {
        Some(Lit::Str(text)) if text.value().trim().is_empty() => Err(syn::Error::new_spanned(
            text,
            format!("the text of `{}` is empty", spec.name),
        )),
        Some(Lit::Str(text)) => Ok(text.clone()),
        _ => Err(spec.form_error(value)),
    }
}

/// A whole number from 1 that fits its type.
pub(super) fn number<N>(spec: &Spec, value: &Expr) -> Result<N>
where
    N: FromStr<Err: Display> + PartialEq + Default,
{
    let number = match literal(value) {
        Some(Lit::Int(number)) if number.suffix().is_empty() => number,
        _ => return Err(spec.form_error(value)),
    };
    match number.base10_parse::<N>() {
        Ok(counted) if counted != N::default() => Ok(counted),
        Ok(_) => Err(syn::Error::new_spanned(
            number,
            format!("a number of `{}` starts at 1; leave it out to say none", spec.name),
        )),
        Err(_) => Err(syn::Error::new_spanned(
            number,
            format!("the number of `{}` is too large", spec.name),
        )),
    }
}

/// The path of something that exists elsewhere.
pub(super) fn path(spec: &Spec, value: &Expr) -> Result<Path> {
    match bare(value) {
        Expr::Path(path) if path.qself.is_none() => Ok(path.path.clone()),
        _ => Err(spec.form_error(value)),
    }
}

fn literal(value: &Expr) -> Option<&Lit> {
    match bare(value) {
        Expr::Lit(ExprLit { lit, .. }) => Some(lit),
        _ => None,
    }
}

/// A value without the invisible group that a `macro_rules` fragment puts around it.
fn bare(value: &Expr) -> &Expr {
    match value {
        Expr::Group(group) => bare(&group.expr),
        other => other,
    }
}
