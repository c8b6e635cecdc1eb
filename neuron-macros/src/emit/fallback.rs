//! After a mistake: what the user wrote stays there, so that one slip is one message and editors go on helping.

use proc_macro2::TokenStream;
use quote::quote;

use crate::{lower::Kind, parse::Function};

/// The messages, then the function as it was written, without what only we could have read.
pub(crate) fn as_written(messages: &TokenStream, mut function: Function) -> TokenStream {
    function.strip_parameter_docs();
    function.attrs.retain(|attr| Kind::of_attribute(attr.path()).is_none());
    quote! {
        #messages
        #[allow(unused)]
        #function
    }
}

/// The messages, then the item.
pub(crate) fn beside(messages: &TokenStream, item: &TokenStream) -> TokenStream {
    quote!(#messages #item)
}
