//! What is written down: plain data, every question answered.

use proc_macro2::{Ident, Span, TokenTree};
use syn::{Attribute, FnArg, LitStr, Path, Token, Type, Visibility, punctuated::Punctuated};

use super::{doc::Doc, kind::Kind, unrecorded::Unrecorded};
use crate::parse::Function;

/// A step, an agent or an orchestrator, ready to be written down.
pub(crate) struct Definition {
    pub(crate) kind: Kind,
    pub(crate) runtime: Path,
    /// Attributes of the function that others see: docs, `cfg`, lint levels.
    pub(crate) outer: Vec<Attribute>,
    /// All other attributes: they belong to the body.
    pub(crate) inner: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) doc: Doc,
    pub(crate) context: Context,
    pub(crate) parameters: Vec<Parameter>,
    /// Where the list of parameters stands.
    pub(crate) list: Span,
    /// The parameters as the body declares them, patterns and all.
    pub(crate) inputs: Punctuated<FnArg, Token![,]>,
    pub(crate) returns: Type,
    pub(crate) output: Output,
    pub(crate) options: Options,
    /// What the body does that no replay would repeat.
    pub(crate) unrecorded: Vec<Unrecorded>,
    pub(crate) body: TokenTree,
}

/// A plan: the function stays as it is, this is what is registered about it.
pub(crate) struct Outline {
    pub(crate) runtime: Path,
    pub(crate) function: Function,
    /// Attributes that decide whether the function exists at all.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) name: String,
    /// The names it had before.
    pub(crate) was: Vec<LitStr>,
    pub(crate) doc: Doc,
    pub(crate) parameters: Vec<Parameter>,
}

/// A handler: the function stays as it is, this is what is registered about it.
pub(crate) struct Handler {
    pub(crate) runtime: Path,
    pub(crate) function: Function,
    /// Attributes that decide whether the function exists at all.
    pub(crate) conditions: Vec<Attribute>,
    pub(crate) name: String,
    pub(crate) doc: Doc,
    pub(crate) pattern: LitStr,
    /// The type behind the reference to the event.
    pub(crate) event: Type,
    pub(crate) payload: Option<Type>,
    pub(crate) output: Output,
    pub(crate) options: Options,
}

/// The first parameter of a definition.
pub(crate) struct Context {
    pub(crate) ident: Ident,
    /// As written: a shared reference.
    pub(crate) reference: Type,
    /// The type behind the reference.
    pub(crate) ty: Type,
}

/// A parameter that stands on the log.
pub(crate) struct Parameter {
    pub(crate) ident: Ident,
    pub(crate) name: String,
    pub(crate) ty: Type,
    pub(crate) doc: Doc,
    /// Whether it is left out of the identity of a call.
    pub(crate) ignored: bool,
}

/// Where the type of the output is read from.
pub(crate) enum Output {
    /// `T` of a return type that ends in `Result<T, …>`.
    Named(Type),
    /// Any other return type is asked through a trait.
    Of(Type),
}

/// What the arguments of the attribute say.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    /// The names it had before.
    pub(crate) was: Vec<LitStr>,
    pub(crate) runtime: Option<Path>,
    pub(crate) uses: Vec<(LitStr, u32)>,
    pub(crate) owns: Vec<LitStr>,
    pub(crate) estimate: Option<Estimate>,
    pub(crate) retry: Option<Retry>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) once: bool,
    pub(crate) share: bool,
    pub(crate) resolve: Option<Path>,
    pub(crate) plan: Option<Path>,
    pub(crate) ignored: Vec<Ident>,
    /// What the body does by itself is its own business.
    pub(crate) unrecorded: bool,
    pub(crate) kinds: Vec<LitStr>,
    pub(crate) from: From,
    pub(crate) in_flight: Option<u32>,
}

/// Where a handler begins.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum From {
    /// With the first message after it was made.
    #[default]
    Now,
    /// With the first message of the log.
    Start,
}

/// What a step is expected to burn.
#[derive(Default)]
pub(crate) struct Estimate {
    pub(crate) tokens: u64,
    pub(crate) seconds: u64,
    pub(crate) tool_calls: u64,
}

/// How often a plain failure is tried again.
pub(crate) struct Retry {
    pub(crate) max: u32,
    /// 0 where none was written: the runtime has its own.
    pub(crate) backoff_ms: u64,
    /// The function that says which failures are.
    pub(crate) on: Option<Path>,
}
