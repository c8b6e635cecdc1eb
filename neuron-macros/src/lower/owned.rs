//! Whether a type can be written to the log and read back: nothing borrowed, nothing without a name.

use quote::ToTokens;
use syn::{
    GenericArgument, Lifetime, Type, TypeFnPtr, TypePath, TypeReference,
    visit::{self, Visit},
};

use crate::errors::Errors;

/// Refuses what is not an owned type with a name, once per type. `what` is the subject of the message.
pub(super) fn check(ty: &Type, what: &str, errors: &mut Errors) -> bool {
    search(ty, what, false, errors)
}

/// As [`check`], for a type that only an alias spells out: what lives for ever may be the error of a `Result`.
pub(super) fn check_alias(ty: &Type, what: &str, errors: &mut Errors) -> bool {
    search(ty, what, true, errors)
}

fn search(ty: &Type, what: &str, forever: bool, errors: &mut Errors) -> bool {
    let mut search = Search {
        what,
        forever,
        refused: None,
    };
    search.visit_type(ty);
    match search.refused {
        None => true,
        Some(error) => {
            errors.push(error);
            false
        }
    }
}

/// A type without the invisible group that a `macro_rules` fragment, or the parentheses the user, put around it.
pub(super) fn peel(ty: &Type) -> &Type {
    match ty {
        Type::Group(group) => peel(&group.elem),
        Type::Paren(paren) => peel(&paren.elem),
        other => other,
    }
}

/// Keeps the first thing that is wrong.
struct Search<'s> {
    what: &'s str,
    /// Whether a borrow that never ends is let through.
    forever: bool,
    refused: Option<syn::Error>,
}

impl Search<'_> {
    fn refuse(&mut self, tokens: &impl ToTokens, why: &str) {
        if self.refused.is_none() {
            self.refused = Some(syn::Error::new_spanned(tokens, format!("{} {why}", self.what)));
        }
    }
}

impl<'ast> Visit<'ast> for Search<'_> {
    fn visit_type(&mut self, ty: &'ast Type) {
        match ty {
            Type::ImplTrait(_) => self.refuse(ty, "has one type, written out; `impl` names none"),
            Type::Infer(_) => self.refuse(ty, "has one type, written out; `_` names none"),
            _ => visit::visit_type(self, ty),
        }
    }

    fn visit_type_reference(&mut self, reference: &'ast TypeReference) {
        let never_ends = reference
            .lifetime
            .as_ref()
            .is_some_and(|lifetime| lifetime.ident == "static");
        if self.forever && never_ends {
            return;
        }
        let why = format!(
            "is owned, for it is written to the log and read back; write `{}`",
            owned(&reference.elem)
        );
        self.refuse(reference, &why);
    }

    fn visit_generic_argument(&mut self, argument: &'ast GenericArgument) {
        match argument {
            GenericArgument::Lifetime(lifetime) => self.visit_borrow(lifetime),
            _ => visit::visit_generic_argument(self, argument),
        }
    }

    fn visit_type_path(&mut self, path: &'ast TypePath) {
        let of_self = path.qself.is_none() && path.path.segments.first().is_some_and(|first| first.ident == "Self");
        if of_self {
            self.refuse(
                path,
                "has one type, written out; `Self` means another one where it is registered",
            );
        }
        visit::visit_type_path(self, path);
    }

    /// What a function pointer or a closure takes is nobody's data.
    fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}

    fn visit_parenthesized_generic_arguments(&mut self, _: &'ast syn::ParenthesizedGenericArguments) {}
}

impl Search<'_> {
    fn visit_borrow(&mut self, lifetime: &Lifetime) {
        if lifetime.ident != "static" {
            self.refuse(
                lifetime,
                "is owned, for it is written to the log and read back; write `'static` here, or a type that owns",
            );
        }
    }
}

/// The type to write instead of a reference to this one.
fn owned(ty: &Type) -> String {
    match peel(ty) {
        Type::Slice(slice) => format!("Vec<{}>", text(&slice.elem)),
        other => match text(other).as_str() {
            "str" => "String".to_owned(),
            "Path" => "PathBuf".to_owned(),
            other => other.to_owned(),
        },
    }
}

/// A type as people write it.
fn text(ty: &Type) -> String {
    let spaced = ty.to_token_stream().to_string();
    spaced
        .replace(" :: ", "::")
        .replace(" < ", "<")
        .replace(" >", ">")
        .replace(" ,", ",")
}
