//! Every mistake of one attribute, collected so that the user reads them all at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// A list of mistakes that must be looked at: dropping it unchecked panics, so that none gets lost on the way.
#[derive(Default)]
pub(crate) struct Errors {
    found: Vec<syn::Error>,
    checked: bool,
}

impl Errors {
    /// Notes a mistake that the user sees under all of `tokens`.
    pub(crate) fn on(&mut self, tokens: &impl ToTokens, message: impl std::fmt::Display) {
        self.found.push(syn::Error::new_spanned(tokens, message));
    }

    /// Notes a mistake for which the user wrote no token that could be pointed at.
    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.found.push(syn::Error::new(span, message));
    }

    /// Notes a mistake found by a parser.
    pub(crate) fn push(&mut self, error: syn::Error) {
        self.found.push(error);
    }

    /// One `compile_error!` per mistake, in the order they were found; empty if there was none.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.checked = true;
        self.found.iter().map(syn::Error::to_compile_error).collect()
    }
}

impl Drop for Errors {
    fn drop(&mut self) {
        assert!(
            self.checked || std::thread::panicking(),
            "a list of mistakes was dropped without being looked at"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_mistakes_cannot_be_forgotten() {
        let forgotten = std::panic::catch_unwind(|| {
            let mut errors = Errors::default();
            errors.at(Span::call_site(), "a mistake");
        });
        assert!(forgotten.is_err());
    }
}
