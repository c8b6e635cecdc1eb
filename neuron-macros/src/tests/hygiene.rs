//! Whatever a user calls their types, modules and macros: an expansion means what it meant. Every path in it is absolute,
//! or one the user wrote, or a name of its own that begins with `__`.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{
    Attribute, Block, Expr, File, Macro, PatIdent, Path, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{expansion, samples::SAMPLES};
use crate::parse::Function;

/// Looks for names that somebody else could give another meaning.
struct Loose {
    user: BTreeSet<String>,
    block: String,
    found: Vec<String>,
}

impl Loose {
    fn check(&mut self, name: &str) {
        let own = name == "Self" || name.starts_with("__");
        if !own && !self.user.contains(name) {
            self.found.push(name.to_owned());
        }
    }
}

impl<'ast> Visit<'ast> for Loose {
    fn visit_block(&mut self, block: &'ast Block) {
        if block.to_token_stream().to_string() != self.block {
            visit::visit_block(self, block);
        }
    }

    fn visit_path(&mut self, path: &'ast Path) {
        if path.leading_colon.is_none() {
            self.check(&path.segments[0].ident.to_string());
        }
        visit::visit_path(self, path);
    }

    fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
        self.check(&pat.ident.to_string());
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.visit_path(&call.path);
        for expr in call
            .parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
            .unwrap()
        {
            self.visit_expr(&expr);
        }
    }

    /// Attributes are built in, or the user's.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}
}

fn names(tokens: TokenStream, into: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => {
                into.insert(ident.to_string());
            }
            TokenTree::Group(group) => names(group.stream(), into),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

fn loose(file: &File, user: BTreeSet<String>, block: String) -> Vec<String> {
    let mut loose = Loose {
        user,
        block,
        found: Vec::new(),
    };
    loose.visit_file(file);
    loose.found
}

#[test]
fn every_path_of_an_expansion_is_absolute_or_the_users() {
    for sample in SAMPLES {
        let file = syn::parse2(expansion(sample.attribute, sample.arguments, sample.item)).unwrap();
        let mut function: Function = syn::parse_str(sample.item).unwrap();
        let block: Block = syn::parse2(function.body.to_token_stream()).unwrap();
        function.body = TokenTree::Group(proc_macro2::Group::new(
            proc_macro2::Delimiter::Brace,
            TokenStream::new(),
        ));
        let mut user = BTreeSet::new();
        names(function.to_token_stream(), &mut user);
        names(sample.arguments.parse().unwrap(), &mut user);
        let found = loose(&file, user, block.to_token_stream().to_string());
        assert!(found.is_empty(), "`{}` names {found:?}", sample.name);
    }
}

#[test]
fn a_loose_name_in_an_expansion_would_be_found() {
    let planted = [
        quote!(let a: Result<()>;),
        quote!(core::file!();),
        quote!(::neuron::__private::inventory::submit! { Entry::of::<__Neuron>() }),
        quote!(let __a = inputs;),
        quote!(let inputs = __a;),
    ];
    for name_in in planted {
        let file = syn::parse2(quote!(fn outer() { #name_in })).unwrap();
        let found = loose(&file, BTreeSet::from(["a".to_owned()]), "{ }".to_owned());
        assert_eq!(found.len(), 1, "{name_in}: {found:?}");
    }
}

#[test]
fn a_name_of_the_users_begins_no_path_of_ours() {
    let item = "async fn read(ctx: &Ctx, place: Place) -> Reply { look(place) }";
    let expanded = expansion("step", "", item).to_string();
    for taken in [
        "Result",
        "Option",
        "Box",
        "Call",
        "Ok",
        "Some",
        "core",
        "std",
        "stringify",
        "file",
    ] {
        let free = expanded.split(&format!(" {taken} ")).skip(1).count();
        let absolute = expanded.split(&format!(":: {taken} ")).skip(1).count();
        assert_eq!(free, absolute, "`{taken}` stands for whatever the user calls so");
    }
}
