//! A step, an agent or an orchestrator: one function whose return type carries the definition.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Type, spanned::Spanned};

use super::parts;
use crate::lower::{Definition, Kind, Options, Unrecorded};

/// The function that makes a call, with the body, the definition and its registration inside.
pub(crate) fn definition(model: &Definition) -> TokenStream {
    let Definition {
        runtime,
        outer,
        vis,
        ident,
        ..
    } = model;
    let marker = Ident::new(model.kind.marker(), Span::call_site());
    let (args, output) = (arguments(model), parts::output(runtime, &model.output));
    let (cx, reference) = (ours(&model.context.ident), &model.context.reference);
    let names: Vec<_> = model
        .parameters
        .iter()
        .map(|parameter| ours(&parameter.ident))
        .collect();
    let types = model.parameters.iter().map(|parameter| &parameter.ty);
    let context = context(model);
    let warnings = model.unrecorded.iter().map(warning);
    let (body, implementation) = (body(model), implementation(model, &marker, &args, &output));
    quote! {
        #(#outer)*
        #vis fn #ident(#cx: #reference #(, #names: #types)*)
            -> #runtime::Call<'_, impl #runtime::#marker<#context Args = #args, Output = #output> + use<>>
        {
            struct __Neuron;
            #(#warnings)*
            #body
            #implementation
            #runtime::__private::inventory::submit! { #runtime::__private::Entry::of::<__Neuron>() }
            #runtime::Call::<__Neuron>::new(#cx, (#(#names,)*))
        }
    }
}

/// The same name in the same place, but known as part of an expansion: `_url` is passed on by us, and no lint shall tell
/// the user that an unused parameter is used.
fn ours(ident: &Ident) -> Ident {
    let mut ident = ident.clone();
    ident.set_span(ident.span().resolved_at(Span::call_site()));
    ident
}

/// The board is a type of another crate, so only the return type can say that an orchestrator is called with it. The
/// context of all others follows from their kind.
fn context(model: &Definition) -> Option<TokenStream> {
    let context = &model.context.ty;
    (model.kind == Kind::Orchestrator).then(|| quote!(Context = #context,))
}

/// A warning at the user's token: on a stable compiler only the use of something deprecated gives one.
fn warning(unrecorded: &Unrecorded) -> TokenStream {
    let (span, message) = (unrecorded.span, &unrecorded.message);
    let used = quote_spanned!(span=> __UNRECORDED);
    quote! {
        const _: () = {
            #[deprecated(note = #message)]
            const __UNRECORDED: () = ();
            #used
        };
    }
}

/// What the user wrote, under another name.
fn body(model: &Definition) -> TokenStream {
    let Definition {
        inner,
        inputs,
        returns,
        body,
        ..
    } = model;
    quote! {
        #(#inner)*
        async fn __neuron_body(#inputs) -> #returns #body
    }
}

fn implementation(model: &Definition, marker: &Ident, args: &TokenStream, output: &TokenStream) -> TokenStream {
    let Definition { runtime, .. } = model;
    let context = &model.context.ty;
    let values: Vec<_> = (0..model.parameters.len())
        .map(|number| format_ident!("__{number}"))
        .collect();
    let meta = meta(model);
    quote! {
        impl #runtime::__private::Def for __Neuron {
            type Context = #context;
            type Kind = #runtime::__private::kind::#marker;
            type Args = #args;
            type Output = #output;
            const META: #runtime::__private::Meta = #meta;
            fn body<'a>(__cx: &'a Self::Context, (#(#values,)*): Self::Args)
                -> #runtime::__private::Body<'a, Self::Output>
            {
                #runtime::__private::body(__neuron_body(__cx #(, #values)*))
            }
        }
    }
}

fn meta(model: &Definition) -> TokenStream {
    let Definition { runtime, name, .. } = model;
    let (kind, doc) = (model.kind.word(), parts::doc(&model.doc));
    let parameters = parts::parameters(runtime, &model.parameters);
    let options = options(model);
    quote! {
        #runtime::__private::Meta::new(#kind, #name, #doc, ::core::file!(), ::core::line!(), #parameters) #options
    }
}

fn options(model: &Definition) -> TokenStream {
    let Options {
        was,
        uses,
        owns,
        estimate,
        retry,
        timeout_ms,
        once,
        share,
        resolve,
        plan,
        ..
    } = &model.options;
    let runtime = &model.runtime;
    let was = parts::was(was);
    let shared = uses.iter().map(|(resource, count)| quote!((#resource, #count)));
    let uses = (!uses.is_empty()).then(|| quote!(.uses(&[#(#shared),*])));
    let owns = (!owns.is_empty()).then(|| quote!(.owns(&[#(#owns),*])));
    let estimate = estimate.as_ref().map(|estimate| {
        let (tokens, seconds, tool_calls) = (estimate.tokens, estimate.seconds, estimate.tool_calls);
        quote!(.estimate(#tokens, #seconds, #tool_calls))
    });
    let retry = retry.as_ref().map(parts::retry);
    let timeout = timeout_ms.map(|timeout_ms| quote!(.timeout_ms(#timeout_ms)));
    let once = once.then(|| quote!(.once()));
    let share = share.then(|| quote!(.share()));
    let resolve = resolve.as_ref().map(|resolve| quote!(.resolve(#resolve)));
    let plan = plan
        .as_ref()
        .map(|plan| quote!(.plan(|__inputs| #runtime::__private::outline::<__Neuron, _, _>(#plan, __inputs))));
    quote!(#was #uses #owns #estimate #retry #timeout #once #share #resolve #plan)
}

/// The tuple of the parameter types. It is placed where the compiler shall point if one of them cannot be logged: at the
/// type if there is one, else at the list.
fn arguments(model: &Definition) -> TokenStream {
    let types: Vec<&Type> = model.parameters.iter().map(|parameter| &parameter.ty).collect();
    let place = match types.as_slice() {
        [ty] => ty.span(),
        _ => model.list,
    };
    quote_spanned!(place=> (#(#types,)*))
}
