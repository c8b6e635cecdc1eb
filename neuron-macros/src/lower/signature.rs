//! The signature of a definition: its qualifiers, its context, its output.

use proc_macro2::{Ident, Span};
use syn::{
    FnArg, GenericArgument, Pat, PathArguments, ReturnType, Safety, Signature, Token, Type, punctuated::Punctuated,
    spanned::Spanned,
};

use super::{
    kind::Kind,
    model::{Context, Output, Parameter},
    owned, parameter,
};
use crate::{errors::Errors, parse::Function};

/// Types that no alias of a `Result` is called by.
const PRIMITIVES: [&str; 17] = [
    "bool", "char", "str", "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize",
    "f32", "f64",
];

/// What the signature says.
pub(super) struct Lowered {
    pub(super) context: Context,
    pub(super) parameters: Vec<Parameter>,
    pub(super) inputs: Punctuated<FnArg, Token![,]>,
    pub(super) returns: Type,
}

/// Checks a signature; `None` if no callable function is left of it.
pub(super) fn lower(kind: Kind, function: &Function, errors: &mut Errors) -> Option<Lowered> {
    let sig = &function.sig;
    qualifiers(kind, sig, errors);
    let plain = not_generic(kind, sig, errors);
    let returns = returns(kind, sig, errors);
    let context = context(kind, sig, errors);
    let parameters = parameter::lower(kind, sig, errors);
    let mut clean = function.clone();
    clean.strip_parameter_docs();
    plain.then_some(())?;
    Some(Lowered {
        context: context?,
        parameters: parameters?,
        inputs: clean.sig.inputs,
        returns: returns?,
    })
}

/// The output type of a return type.
pub(super) fn output(returns: &Type) -> Output {
    named_output(returns).map_or_else(|| Output::Of(returns.clone()), |ty| Output::Named(ty.clone()))
}

fn named_output(returns: &Type) -> Option<&Type> {
    let Type::Path(path) = owned::peel(returns) else {
        return None;
    };
    let last = path.path.segments.last().filter(|last| last.ident == "Result")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(ty) => Some(ty),
        _ => None,
    }
}

fn qualifiers(kind: Kind, sig: &Signature, errors: &mut Errors) {
    let (a, usage) = (kind.a(), kind.usage(&sig.ident));
    match (kind, sig.asyncness) {
        (Kind::Plan, Some(token)) => {
            errors.on(
                &token,
                format!("{a} is data and waits for nothing; remove `async`: {usage}"),
            );
        }
        (Kind::Plan, None) | (_, Some(_)) => {}
        (_, None) => errors.on(&sig.fn_token, format!("{a} is an `async fn`; expected {usage}")),
    }
    if let Some(token) = sig.constness {
        errors.on(
            &token,
            format!("{a} runs when it is called, never at compile time; remove `const`"),
        );
    }
    if let Safety::Unsafe(token) = sig.safety {
        let why = "the runtime calls it, and promises nothing; keep the unsafe code in a function it calls";
        errors.on(&token, format!("{a} is never `unsafe`: {why}"));
    }
    if let Some(abi) = &sig.abi {
        errors.on(abi, format!("{a} is called from Rust alone; remove `extern`"));
    }
}

fn not_generic(kind: Kind, sig: &Signature, errors: &mut Errors) -> bool {
    let word = kind.word();
    let why = format!(
        "{} is recorded by its name, so it is not generic; write one {word} per type, each calling a generic function",
        kind.a()
    );
    match (&sig.generics.where_clause, sig.generics.params.is_empty()) {
        (None, true) => return true,
        (Some(clause), true) => errors.on(clause, why),
        (_, false) => errors.on(&sig.generics, why),
    }
    false
}

fn returns(kind: Kind, sig: &Signature, errors: &mut Errors) -> Option<Type> {
    let what = match kind {
        Kind::Plan => "the `Node` its output comes from",
        _ => "a `Result`",
    };
    let message = format!("{} returns {what}; expected {}", kind.a(), kind.usage(&sig.ident));
    let ReturnType::Type(_, ty) = &sig.output else {
        errors.on(&sig.ident, message);
        return None;
    };
    if is_no_result(ty) {
        errors.on(ty, message);
        return None;
    }
    let what = format!("the output of {}", kind.a());
    let fit = match output(ty) {
        Output::Named(output) => owned::check(&output, &what, errors),
        Output::Of(alias) => owned::check_alias(&alias, &what, errors),
    };
    fit.then(|| (**ty).clone())
}

/// Whether a return type is plainly a value by itself. Any other one is left to the compiler, which sees through names.
fn is_no_result(ty: &Type) -> bool {
    match owned::peel(ty) {
        Type::Tuple(_) | Type::Array(_) | Type::Never(_) => true,
        Type::Path(path) => PRIMITIVES.iter().any(|name| path.path.is_ident(name)),
        _ => false,
    }
}

fn context(kind: Kind, sig: &Signature, errors: &mut Errors) -> Option<Context> {
    let (a, usage) = (kind.a(), kind.usage(&sig.ident));
    let first = kind.first();
    let missing = format!("the first parameter of {a} is its {first}; expected {usage}");
    let typed = match sig.inputs.first() {
        None => {
            errors.at(sig.paren_token.span.join(), missing);
            return None;
        }
        Some(FnArg::Receiver(receiver)) => {
            let why = match kind {
                Kind::Handler => "what it needs of the program is at `event.state::<T>()`",
                _ => "pass what it holds as parameters, so that it is on the log",
            };
            errors.on(receiver, format!("{a} is a function without `self`; {why}"));
            return None;
        }
        Some(FnArg::Typed(typed)) => typed,
    };
    match owned::peel(&typed.ty) {
        Type::Reference(reference) if is_data(&reference.elem) => errors.on(&typed.ty, missing),
        Type::Reference(reference) if reference.mutability.is_some() => {
            errors.on(
                &typed.ty,
                format!("the {first} of {a} is shared; write `&{}`", kind.context()),
            );
        }
        Type::Reference(reference) => {
            return Some(Context {
                ident: context_ident(kind, &typed.pat, errors),
                reference: (*typed.ty).clone(),
                ty: (*reference.elem).clone(),
            });
        }
        ty if Kind::of_context(ty).is_some() => {
            errors.on(
                &typed.ty,
                format!("the {first} of {a} is lent to it; write `&{}`", kind.context()),
            );
        }
        _ => errors.on(&typed.ty, missing),
    }
    None
}

/// Whether a reference in the place of the context is plainly something else.
fn is_data(ty: &Type) -> bool {
    match owned::peel(ty) {
        Type::Path(path) => path.path.is_ident("str"),
        Type::Slice(_) | Type::Array(_) | Type::Tuple(_) => true,
        _ => false,
    }
}

fn context_ident(kind: Kind, pat: &Pat, errors: &mut Errors) -> Ident {
    if let Pat::Wild(_) = pat {
        return Ident::new("__cx", Span::call_site());
    }
    parameter::ident(pat).unwrap_or_else(|| {
        errors.on(
            pat,
            format!("the {} of {} has a plain name, as in `cx`", kind.first(), kind.a()),
        );
        Ident::new("__cx", pat.span())
    })
}
