//! What the attributes give for what a user writes, seen as text: no runtime is needed to look at it.

mod golden;
mod handlers;
mod hygiene;
mod refusals;
mod samples;
mod unrecorded;
mod wires;

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Path, parse_quote};

use crate::{expand, lower::Kind};

/// What `#[attribute(arguments)] item` becomes in a crate that depends on `neuron`.
fn expansion(attribute: &str, arguments: &str, item: &str) -> TokenStream {
    let runtime: Path = parse_quote!(::neuron);
    expansion_with(Ok(runtime), attribute, arguments, item)
}

fn expansion_with(found: expand::Found, attribute: &str, arguments: &str, item: &str) -> TokenStream {
    let arguments: TokenStream = arguments.parse().unwrap();
    let item: TokenStream = item.parse().unwrap();
    match attribute {
        "step" => expand::definition(Kind::Step, arguments, &item, found),
        "agent" => expand::definition(Kind::Agent, arguments, &item, found),
        "orchestrator" => expand::definition(Kind::Orchestrator, arguments, &item, found),
        "plan" => expand::outline(arguments, &item, found),
        "on" => expand::on(arguments, &item, found),
        "metered" => expand::metered(&arguments, &item),
        "guard" => expand::guard(&arguments, &item),
        other => panic!("there is no attribute `{other}`"),
    }
}

/// An expansion as source text; one that does not parse is a failure of its own.
fn pretty(tokens: &TokenStream) -> String {
    prettyplease::unparse(&syn::parse2(quote!(#tokens)).unwrap())
}
