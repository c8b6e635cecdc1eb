//! The function under an attribute. Its body is never parsed: it goes on as the tokens the user wrote, finished or not.

use proc_macro2::TokenTree;
use quote::{ToTokens, TokenStreamExt};
use syn::{
    Attribute, FnArg, Result, Signature, Token, Visibility,
    parse::{Parse, ParseStream},
    token::Brace,
};

/// A function, its body still a block of tokens.
#[derive(Clone)]
pub(crate) struct Function {
    /// All attributes below the one that is being expanded.
    pub(crate) attrs: Vec<Attribute>,
    /// How far it can be seen.
    pub(crate) vis: Visibility,
    /// Everything from `async` to the return type.
    pub(crate) sig: Signature,
    /// The block in braces, verbatim.
    pub(crate) body: TokenTree,
}

impl Function {
    /// Removes the doc comments of the parameters, which the compiler allows only for an attribute to read.
    pub(crate) fn strip_parameter_docs(&mut self) {
        for input in &mut self.sig.inputs {
            let attrs = match input {
                FnArg::Receiver(receiver) => &mut receiver.attrs,
                FnArg::Typed(parameter) => &mut parameter.attrs,
            };
            attrs.retain(|attr| !attr.path().is_ident("doc"));
        }
    }
}

impl Parse for Function {
    fn parse(input: ParseStream) -> Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        if !starts_a_function(input) {
            return Err(input.error("this attribute goes on a function"));
        }
        let sig = input.parse()?;
        if !input.peek(Brace) {
            return Err(input.error("expected the body of the function; one without a body cannot be run"));
        }
        let body = input.parse()?;
        Ok(Self { attrs, vis, sig, body })
    }
}

fn starts_a_function(input: ParseStream) -> bool {
    let look = input.lookahead1();
    look.peek(Token![fn])
        || look.peek(Token![async])
        || look.peek(Token![unsafe])
        || look.peek(Token![extern])
        || look.peek(Token![const])
}

impl ToTokens for Function {
    fn to_tokens(&self, tokens: &mut proc_macro2::TokenStream) {
        tokens.append_all(&self.attrs);
        self.vis.to_tokens(tokens);
        self.sig.to_tokens(tokens);
        self.body.to_tokens(tokens);
    }
}
