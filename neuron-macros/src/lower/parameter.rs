//! The parameters of a definition: each stands on the log under its name.

use proc_macro2::Ident;
use quote::format_ident;
use syn::{FnArg, Pat, PatType, Signature, Type, ext::IdentExt};

use super::{
    doc::Doc,
    kind::Kind,
    model::{Options, Parameter},
    owned,
};
use crate::errors::Errors;

/// Checks the parameters after the context; `None` if one of them has no place on the log.
pub(super) fn lower(kind: Kind, sig: &Signature, errors: &mut Errors) -> Option<Vec<Parameter>> {
    let after_context = sig.inputs.iter().skip(if sig.receiver().is_some() { 2 } else { 1 });
    let found: Vec<_> = after_context
        .clone()
        .enumerate()
        .map(|(number, input)| parameter(kind, number, input, errors))
        .collect();
    if let Some(variadic) = &sig.variadic {
        errors.on(variadic, format!("{} has a fixed number of parameters", kind.a()));
        return None;
    }
    if let Some(first) = after_context.clone().nth(kind.parameters_max()) {
        let (a, most) = (kind.a(), kind.parameters_max());
        let message = match kind {
            Kind::Handler => format!(
                "{a} takes its event and one payload at most; the program's own values are at `event.state::<T>()`"
            ),
            _ => format!("{a} takes at most {most} parameters after its context; pass a struct instead"),
        };
        errors.on(first, message);
        return None;
    }
    found.into_iter().collect()
}

/// Marks the parameters that `ignore(…)` names.
pub(super) fn ignore(kind: Kind, parameters: &mut [Parameter], ignored: &[Ident], errors: &mut Errors) {
    for ident in ignored {
        if let Some(parameter) = parameters.iter_mut().find(|parameter| ident.unraw() == parameter.name) {
            parameter.ignored = true;
        } else {
            let message = format!(
                "`ignore` names a parameter of the {}, and `{ident}` is none",
                kind.word()
            );
            errors.on(ident, message);
        }
    }
}

/// A function named by an option is looked up where the parameters can be seen, and they would hide it.
pub(super) fn refuse_shadowed(parameters: &[Parameter], options: &Options, errors: &mut Errors) {
    let judge = options.retry.as_ref().and_then(|retry| retry.on.as_ref());
    for path in options.plan.iter().chain(&options.resolve).chain(judge) {
        let hidden = path
            .get_ident()
            .filter(|ident| parameters.iter().any(|parameter| parameter.ident == **ident));
        if let Some(ident) = hidden {
            errors.on(
                path,
                format!("a parameter is called `{ident}` too and hides the function; write `self::{ident}`"),
            );
        }
    }
}

fn parameter(kind: Kind, number: usize, input: &FnArg, errors: &mut Errors) -> Option<Parameter> {
    let FnArg::Typed(typed) = input else { return None };
    refuse_conditions(kind, typed, errors);
    // The function of a handler stays as it is, and the name of its payload stands nowhere else.
    let ident = ident(&typed.pat).unwrap_or_else(|| {
        if kind == Kind::Handler {
            return format_ident!("__{number}");
        }
        let why = "it stands on the log and in the schema of the tool; take it apart in the body";
        errors.on(
            &typed.pat,
            format!("a parameter of {} has a plain name: {why}", kind.a()),
        );
        format_ident!("__{number}")
    });
    if is_context(&typed.ty) {
        let (a, first) = (kind.a(), kind.first());
        let message =
            format!("the {first} of {a} is its first parameter, and there is one; move it there or remove it");
        errors.on(&typed.ty, message);
        return None;
    }
    let fit = owned::check(&typed.ty, &format!("a parameter of {}", kind.a()), errors);
    fit.then(|| Parameter {
        name: ident.unraw().to_string(),
        ident,
        ty: (*typed.ty).clone(),
        doc: Doc::of(&typed.attrs),
        ignored: false,
    })
}

/// Whether a type is plainly a reference to a context, of whatever kind.
fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = owned::peel(ty) else {
        return false;
    };
    Kind::of_context(&reference.elem).is_some()
}

fn refuse_conditions(kind: Kind, typed: &PatType, errors: &mut Errors) {
    for attr in typed
        .attrs
        .iter()
        .filter(|attr| attr.path().is_ident("cfg") || attr.path().is_ident("cfg_attr"))
    {
        let message = format!(
            "a parameter of {} is always there; put the condition on the function",
            kind.a()
        );
        errors.on(attr, message);
    }
}

/// The name a plain pattern binds: `url` or `mut url`.
pub(super) fn ident(pat: &Pat) -> Option<Ident> {
    match pat {
        Pat::Ident(pat) if pat.by_ref.is_none() && pat.subpat.is_none() => Some(pat.ident.clone()),
        _ => None,
    }
}
