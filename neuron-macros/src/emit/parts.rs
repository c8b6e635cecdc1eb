//! Pieces that several expansions share.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::{Attribute, LitStr, Path, spanned::Spanned};

use crate::lower::{Doc, Output, Parameter, Retry};

/// A doc comment as an expression of type `&'static str`.
pub(super) fn doc(doc: &Doc) -> TokenStream {
    match doc {
        Doc::Text(text) => quote!(#text),
        Doc::Parts(parts) => {
            let (first, rest) = (parts.first(), parts.iter().skip(1));
            quote!(::core::concat!(#first #(, "\n", #rest)*))
        }
    }
}

/// The former names, as the method that takes them; nothing if there are none.
pub(super) fn was(was: &[LitStr]) -> Option<TokenStream> {
    (!was.is_empty()).then(|| quote!(.was(&[#(#was),*])))
}

/// How often a failure is tried again, and which, as the methods that take it.
pub(super) fn retry(retry: &Retry) -> TokenStream {
    let (max, backoff_ms) = (retry.max, retry.backoff_ms);
    let on = retry.on.as_ref().map(|on| quote!(.retry_on(#on)));
    quote!(.retry(#max, #backoff_ms) #on)
}

/// The parameters as an expression of type `&'static [Param]`.
pub(super) fn parameters(runtime: &Path, parameters: &[Parameter]) -> TokenStream {
    let each = parameters.iter().map(|parameter| {
        let (name, doc) = (&parameter.name, doc(&parameter.doc));
        let ignored = parameter.ignored.then(|| quote!(.ignored()));
        quote!(#runtime::__private::Param::new(#name, #doc) #ignored)
    });
    quote!(&[#(#each),*])
}

/// The type of what a success holds.
pub(super) fn output(runtime: &Path, output: &Output) -> TokenStream {
    match output {
        Output::Named(ty) => quote!(#ty),
        Output::Of(ty) => quote_spanned!(ty.span()=> <#ty as #runtime::__private::Outcome>::Value),
    }
}

/// Registering a function that is deprecated is no use of it that its author should be warned of.
pub(super) fn quiet(attrs: &[Attribute]) -> Option<TokenStream> {
    let deprecated = attrs.iter().any(|attr| attr.path().is_ident("deprecated"));
    deprecated.then(|| quote!(#[allow(deprecated)]))
}
