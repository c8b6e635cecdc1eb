//! The arguments of an attribute: `once`, `timeout = "30s"`, `retry(3, backoff = "200ms")`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{
    Expr, LitStr, Path, Result, Token,
    ext::IdentExt,
    parse::{Parse, ParseStream, Parser},
    punctuated::Punctuated,
    token::Paren,
};

use crate::errors::Errors;

/// One argument of an attribute.
pub(crate) struct Argument {
    /// Its name, keywords included (`crate`).
    pub(crate) name: Ident,
    /// What follows the name.
    pub(crate) value: Value,
}

/// What follows the name of an argument.
pub(crate) enum Value {
    /// Nothing, as in `once`.
    Flag,
    /// As in `timeout = "30s"`.
    Is(Expr),
    /// As in `retry(3, backoff = "200ms")`.
    List(Vec<Item>, TokenStream),
}

/// One entry of a list, with a name or by position.
pub(crate) struct Item {
    /// `backoff` in `backoff = "200ms"`.
    pub(crate) name: Option<Ident>,
    /// The value itself.
    pub(crate) value: Expr,
}

/// What `#[on(…)]` listens to.
pub(crate) enum Target {
    /// A topic pattern, in quotes, and the options behind it.
    Pattern(LitStr, Vec<Argument>),
    /// A stage, by its path.
    Stage,
}

/// Parses the arguments of an attribute. An argument that does not parse is one mistake; the next one is read again.
pub(crate) fn arguments(tokens: TokenStream, errors: &mut Errors) -> Vec<Argument> {
    let mut found = Vec::new();
    let parsed = (|input: ParseStream| rest(input, &mut found, errors)).parse2(tokens);
    parsed.unwrap_or_else(|error| errors.push(error));
    found
}

fn rest(input: ParseStream, found: &mut Vec<Argument>, errors: &mut Errors) -> Result<()> {
    while !input.is_empty() {
        match one(input) {
            Ok(argument) => found.push(argument),
            Err(error) => {
                errors.push(error);
                skip_to_comma(input)?;
            }
        }
        input.parse::<Option<Token![,]>>()?;
    }
    Ok(())
}

/// Parses the arguments of `#[on(…)]`: a topic pattern in quotes, with options, or one path.
pub(crate) fn target(tokens: TokenStream, errors: &mut Errors) -> Option<Target> {
    let message = "`#[on]` names first what it listens to: a topic pattern in quotes, as in `#[on(\"orders.*\")]`, or \
                   the path of a stage";
    if tokens.is_empty() {
        errors.at(Span::call_site(), message);
        return None;
    }
    if Path::parse_mod_style.parse2(tokens.clone()).is_ok() {
        return Some(Target::Stage);
    }
    let mut found = Vec::new();
    let parser = |input: ParseStream| {
        let Ok(pattern) = input.parse::<LitStr>() else {
            return Err(syn::Error::new_spanned(input.parse::<TokenStream>()?, message));
        };
        if !input.is_empty() && input.parse::<Option<Token![,]>>()?.is_none() {
            return Err(input.error("expected a comma after the pattern"));
        }
        rest(input, &mut found, errors).map(|()| pattern)
    };
    match parser.parse2(tokens) {
        Ok(pattern) => Some(Target::Pattern(pattern, found)),
        Err(error) => {
            errors.push(error);
            None
        }
    }
}

fn one(input: ParseStream) -> Result<Argument> {
    let argument: Argument = input.parse()?;
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(argument);
    }
    Err(input.error(format!("expected a comma after `{}`", argument.name)))
}

fn skip_to_comma(input: ParseStream) -> Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

impl Parse for Argument {
    fn parse(input: ParseStream) -> Result<Self> {
        let name = input
            .call(Ident::parse_any)
            .map_err(|error| syn::Error::new(error.span(), "expected the name of an option, as in `name = \"…\"`"))?;
        let value = if input.parse::<Option<Token![=]>>()?.is_some() {
            Value::Is(input.parse()?)
        } else if input.peek(Paren) {
            let content;
            syn::parenthesized!(content in input);
            let tokens = content.fork().parse()?;
            let items = Punctuated::<Item, Token![,]>::parse_terminated(&content)?;
            Value::List(items.into_iter().collect(), tokens)
        } else {
            Value::Flag
        };
        Ok(Self { name, value })
    }
}

impl Parse for Item {
    fn parse(input: ParseStream) -> Result<Self> {
        let named = input.peek(syn::Ident::peek_any) && input.peek2(Token![=]) && !input.peek2(Token![==]);
        if !named {
            return Ok(Self {
                name: None,
                value: input.parse()?,
            });
        }
        let name = input.call(Ident::parse_any)?;
        input.parse::<Token![=]>()?;
        Ok(Self {
            name: Some(name),
            value: input.parse()?,
        })
    }
}

/// What a message about the whole argument points at.
impl ToTokens for Argument {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        self.name.to_tokens(tokens);
        match &self.value {
            Value::Is(value) => value.to_tokens(tokens),
            Value::List(_, inside) => tokens.extend(inside.clone()),
            Value::Flag => {}
        }
    }
}
