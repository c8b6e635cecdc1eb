//! Syntax to model: every check is here, and what comes out can be written down without asking anything again.

mod attributes;
mod doc;
mod duration;
mod kind;
mod model;
mod name;
mod options;
mod owned;
mod parameter;
mod pattern;
mod signature;
mod unrecorded;

use syn::{LitStr, Path};

use crate::{
    errors::Errors,
    parse::{Argument, Function},
};
pub(crate) use doc::Doc;
pub(crate) use kind::Kind;
pub(crate) use model::{Definition, From, Handler, Options, Outline, Output, Parameter, Retry};
pub(crate) use unrecorded::Unrecorded;

/// A definition from its attribute and function; `None` if what is wrong leaves nothing that could be called.
///
/// `found` is the runtime as the manifest names it, which `crate = …` overrides.
pub(crate) fn definition(
    kind: Kind,
    function: &Function,
    arguments: Vec<Argument>,
    found: Result<Path, &'static str>,
    errors: &mut Errors,
) -> Option<Definition> {
    let mut options = options::lower(kind, arguments, errors);
    attributes::refuse_a_second_kind(kind, &function.attrs, errors);
    let name = name::of(&function.sig.ident, options.name.as_ref(), kind, errors);
    name::refuse_was(&options.was, &name, kind, errors);
    let signature = signature::lower(kind, function, errors);
    let runtime = name::runtime(options.runtime.take(), found, errors);
    let mut signature = signature?;
    parameter::ignore(kind, &mut signature.parameters, &options.ignored, errors);
    parameter::refuse_shadowed(&signature.parameters, &options, errors);
    let replayed = matches!(kind, Kind::Agent | Kind::Orchestrator) && !options.unrecorded;
    let unrecorded = replayed.then(|| unrecorded::find(kind, &signature.context.ident, &function.body));
    let (outer, inner) = attributes::split(&function.attrs);
    Some(Definition {
        kind,
        runtime: runtime?,
        doc: Doc::of(&function.attrs),
        outer,
        inner,
        vis: function.vis.clone(),
        ident: function.sig.ident.clone(),
        name,
        context: signature.context,
        parameters: signature.parameters,
        list: function.sig.paren_token.span.join(),
        inputs: signature.inputs,
        output: signature::output(&signature.returns),
        returns: signature.returns,
        options,
        unrecorded: unrecorded.unwrap_or_default(),
        body: function.body.clone(),
    })
}

/// A plan from its attribute and function; `None` if it cannot be registered.
pub(crate) fn outline(
    mut function: Function,
    arguments: Vec<Argument>,
    found: Result<Path, &'static str>,
    errors: &mut Errors,
) -> Option<Outline> {
    let mut options = options::lower(Kind::Plan, arguments, errors);
    attributes::refuse_a_second_kind(Kind::Plan, &function.attrs, errors);
    let name = name::of(&function.sig.ident, options.name.as_ref(), Kind::Plan, errors);
    name::refuse_was(&options.was, &name, Kind::Plan, errors);
    let signature = signature::lower(Kind::Plan, &function, errors);
    let runtime = name::runtime(options.runtime.take(), found, errors);
    function.strip_parameter_docs();
    Some(Outline {
        runtime: runtime?,
        conditions: attributes::conditions(&function.attrs),
        name,
        was: options.was,
        doc: Doc::of(&function.attrs),
        parameters: signature?.parameters,
        function,
    })
}

/// A handler from its attribute and function; `None` if it cannot be registered.
pub(crate) fn handler(
    mut function: Function,
    pattern: LitStr,
    arguments: Vec<Argument>,
    found: Result<Path, &'static str>,
    errors: &mut Errors,
) -> Option<Handler> {
    let kind = Kind::Handler;
    pattern::check(&pattern, errors);
    let mut options = options::lower(kind, arguments, errors);
    attributes::refuse_a_second_kind(kind, &function.attrs, errors);
    let name = name::of(&function.sig.ident, options.name.as_ref(), kind, errors);
    let signature = signature::lower(kind, &function, errors);
    let runtime = name::runtime(options.runtime.take(), found, errors);
    function.strip_parameter_docs();
    let mut signature = signature?;
    Some(Handler {
        runtime: runtime?,
        conditions: attributes::conditions(&function.attrs),
        name,
        doc: Doc::of(&function.attrs),
        pattern,
        event: signature.context.ty,
        payload: signature.parameters.pop().map(|parameter| parameter.ty),
        output: signature::output(&signature.returns),
        options,
        function,
    })
}
