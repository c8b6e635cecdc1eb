//! The way of every attribute: parse, lower, emit; or the mistakes, and what the user wrote.

use proc_macro2::{Span, TokenStream};
use syn::Path;

use crate::{
    emit,
    errors::Errors,
    lower::{self, Kind},
    parse::{self, Function, Target},
};

/// Where the manifest says the runtime is.
pub(crate) type Found = Result<Path, &'static str>;

/// `#[step]`, `#[agent]`, `#[orchestrator]`.
pub(crate) fn definition(kind: Kind, arguments: TokenStream, item: &TokenStream, found: Found) -> TokenStream {
    let mut errors = Errors::default();
    let arguments = parse::arguments(arguments, &mut errors);
    let Some(function) = function(item, &mut errors) else {
        return emit::beside(&errors.into_tokens(), item);
    };
    let model = lower::definition(kind, &function, arguments, found, &mut errors);
    let messages = errors.into_tokens();
    match model {
        Some(model) => emit::beside(&messages, &emit::definition(&model)),
        None => emit::as_written(&messages, function),
    }
}

/// `#[plan]`.
pub(crate) fn outline(arguments: TokenStream, item: &TokenStream, found: Found) -> TokenStream {
    let mut errors = Errors::default();
    let arguments = parse::arguments(arguments, &mut errors);
    let Some(function) = function(item, &mut errors) else {
        return emit::beside(&errors.into_tokens(), item);
    };
    let model = lower::outline(function.clone(), arguments, found, &mut errors);
    let messages = errors.into_tokens();
    match model {
        Some(model) if messages.is_empty() => emit::outline(&model),
        _ => emit::as_written(&messages, function),
    }
}

/// `#[on("pattern")]`; `#[on(stage)]` is read but not carried out in this version.
pub(crate) fn on(arguments: TokenStream, item: &TokenStream, found: Found) -> TokenStream {
    let mut errors = Errors::default();
    let target = parse::target(arguments, &mut errors);
    if let Some(Target::Stage) = target {
        not_yet(
            &mut errors,
            "`#[on(stage)]` comes with a later version of neuron; until then call the function where the message is \
             published",
        );
        return emit::beside(&errors.into_tokens(), item);
    }
    let Some(function) = function(item, &mut errors) else {
        return emit::beside(&errors.into_tokens(), item);
    };
    let model = match target {
        Some(Target::Pattern(pattern, arguments)) => {
            lower::handler(function.clone(), pattern, arguments, found, &mut errors)
        }
        _ => None,
    };
    let messages = errors.into_tokens();
    match model {
        Some(model) if messages.is_empty() => emit::handler(&model),
        _ => emit::as_written(&messages, function),
    }
}

/// `#[metered]`, which this version reads but does not carry out.
pub(crate) fn metered(arguments: &TokenStream, item: &TokenStream) -> TokenStream {
    stage(
        arguments,
        item,
        "`#[metered]` takes no arguments",
        "`#[metered]` comes with a later version of neuron; until then remove it: what a step burns is recorded anyway",
    )
}

/// `#[guard]`, which this version reads but does not carry out.
pub(crate) fn guard(arguments: &TokenStream, item: &TokenStream) -> TokenStream {
    stage(
        arguments,
        item,
        "`#[guard]` takes no arguments",
        "`#[guard]` comes with a later version of neuron; until then check in the body and return a terminal error",
    )
}

fn stage(arguments: &TokenStream, item: &TokenStream, form: &str, later: &str) -> TokenStream {
    let mut errors = Errors::default();
    if !arguments.is_empty() {
        errors.on(arguments, form);
    }
    not_yet(&mut errors, later);
    emit::beside(&errors.into_tokens(), item)
}

fn not_yet(errors: &mut Errors, message: &str) {
    errors.at(Span::call_site(), message);
}

fn function(item: &TokenStream, errors: &mut Errors) -> Option<Function> {
    syn::parse2(item.clone()).map_err(|error| errors.push(error)).ok()
}
