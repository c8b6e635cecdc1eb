//! A plan: the function as it was written, and its registration beside it.

use proc_macro2::TokenStream;
use quote::quote;

use super::parts;
use crate::lower::Outline;

/// The function and one table entry.
pub(crate) fn outline(model: &Outline) -> TokenStream {
    let Outline {
        runtime,
        function,
        conditions,
        name,
        was,
        ..
    } = model;
    let (ident, doc) = (&function.sig.ident, parts::doc(&model.doc));
    let (parameters, was) = (parts::parameters(runtime, &model.parameters), parts::was(was));
    let quiet = parts::quiet(&function.attrs);
    quote! {
        #function
        #(#conditions)*
        #quiet
        const _: () = {
            #runtime::__private::inventory::submit! {
                #runtime::__private::PlanEntry::new(
                    #name, #doc, ::core::file!(), ::core::line!(), #parameters,
                    || #runtime::__private::type_of(&#ident)
                ) #was
            }
        };
    }
}
