//! A handler: the function as written, its registration beside it.

use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::{Visibility, spanned::Spanned};

use super::parts;
use crate::{
    lower::{From, Handler, Kind, Options},
    parse::Function,
};

/// The function and one table entry.
pub(crate) fn handler(model: &Handler) -> TokenStream {
    let Handler {
        runtime,
        function,
        conditions,
        event,
        name,
        pattern,
        ..
    } = model;
    let (ident, doc) = (&function.sig.ident, parts::doc(&model.doc));
    let function = for_lints(function.clone());
    let marker = format_ident!("{}", Kind::Handler.marker());
    let quiet = parts::quiet(&function.attrs);
    let values: Vec<_> = model.payload.iter().map(|_| format_ident!("__0")).collect();
    let payload = payload(model);
    let effect = parts::output(runtime, &model.output);
    let options = options(&model.options);
    quote! {
        #function
        #(#conditions)*
        #quiet
        const _: () = {
            struct __Neuron;
            impl #runtime::__private::#marker for __Neuron {
                type Event = #event;
                type Payload = #payload;
                type Effect = #effect;
                const META: #runtime::__private::OnMeta = #runtime::__private::OnMeta::new(
                    #name, #pattern, #doc, ::core::file!(), ::core::line!()
                ) #options;
                fn body<'a>(__event: &'a Self::Event, (#(#values,)*): Self::Payload)
                    -> #runtime::__private::Body<'a, Self::Effect>
                {
                    #runtime::__private::body(#ident(__event #(, #values)*))
                }
            }
            #runtime::__private::inventory::submit! { #runtime::__private::Handler::of::<__Neuron>() }
        };
    }
}

/// The same function, its first words known as part of an expansion: one that waits for nothing is `async` because a handler
/// is, and no lint shall tell the user so.
fn for_lints(mut function: Function) -> Function {
    let ours = |span: Span| span.resolved_at(Span::call_site());
    if let Visibility::Public(token) = &mut function.vis {
        token.span = ours(token.span);
    }
    if let Some(token) = &mut function.sig.asyncness {
        token.span = ours(token.span);
    }
    function.sig.fn_token.span = ours(function.sig.fn_token.span);
    function
}

/// The payload as a tuple, placed where the compiler shall point if it cannot be read.
fn payload(model: &Handler) -> TokenStream {
    let place = model.payload.as_ref().map_or_else(Span::call_site, Spanned::span);
    let ty = model.payload.iter();
    quote_spanned!(place=> (#(#ty,)*))
}

fn options(options: &Options) -> TokenStream {
    let kinds = &options.kinds;
    let kinds = (!kinds.is_empty()).then(|| quote!(.kinds(&[#(#kinds),*])));
    let from = (options.from == From::Start).then(|| quote!(.from_start()));
    let retry = options.retry.as_ref().map(parts::retry);
    let timeout = options.timeout_ms.map(|timeout_ms| quote!(.timeout_ms(#timeout_ms)));
    let in_flight = options.in_flight.map(|count| quote!(.in_flight(#count)));
    quote!(#kinds #from #retry #timeout #in_flight)
}
