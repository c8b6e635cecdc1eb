//! Law L7: an expansion wires and never works. Outside the user's block there is no branch, no loop, no await, and no
//! closure that does more than call one function.

use quote::{ToTokens, quote};
use syn::{
    BinOp, Block, Expr, ExprClosure, File, Macro, Token,
    punctuated::Punctuated,
    visit::{self, Visit},
};

use super::{expansion, samples::SAMPLES};
use crate::parse::Function;

/// Macros an expansion may call: they register, or are text known to the compiler.
const MACROS: [&str; 5] = [
    ":: neuron :: __private :: inventory :: submit",
    "crate :: rt :: neuron :: __private :: inventory :: submit",
    "rt :: __private :: inventory :: submit",
    ":: core :: file",
    ":: core :: line",
];

/// Looks for work outside the user's block.
struct Work {
    block: String,
    found: Vec<String>,
}

impl<'ast> Visit<'ast> for Work {
    fn visit_block(&mut self, block: &'ast Block) {
        if block.to_token_stream().to_string() != self.block {
            visit::visit_block(self, block);
        }
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        if works(expr) {
            self.found.push(expr.to_token_stream().to_string());
        }
        visit::visit_expr(self, expr);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        let path = call.path.to_token_stream().to_string();
        let text = path == ":: core :: concat" || path == "include_str";
        if !text && !MACROS.contains(&path.as_str()) {
            self.found.push(path);
        }
        for expr in call
            .parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated)
            .unwrap()
        {
            self.visit_expr(&expr);
        }
    }
}

fn works(expr: &Expr) -> bool {
    let bound = match expr {
        Expr::Closure(closure) => !calls_one_function(closure),
        Expr::Binary(binary) => is_lazy(&binary.op),
        _ => false,
    };
    bound
        || matches!(
            expr,
            Expr::If(_)
                | Expr::Match(_)
                | Expr::Loop(_)
                | Expr::While(_)
                | Expr::ForLoop(_)
                | Expr::Await(_)
                | Expr::Try(_)
                | Expr::TryBlock(_)
                | Expr::Async(_)
                | Expr::Let(_)
                | Expr::Return(_)
                | Expr::Break(_)
                | Expr::Continue(_)
                | Expr::Yield(_)
                | Expr::Unsafe(_)
        )
}

/// Whether a closure does no more than call one function, on names it was given.
fn calls_one_function(closure: &ExprClosure) -> bool {
    let is_name = |expr: &Expr| match expr {
        Expr::Reference(reference) => matches!(&*reference.expr, Expr::Path(_)),
        other => matches!(other, Expr::Path(_)),
    };
    match &*closure.body {
        Expr::Call(call) => is_name(&call.func) && call.args.iter().all(is_name),
        _ => false,
    }
}

fn is_lazy(op: &BinOp) -> bool {
    matches!(op, BinOp::And(_) | BinOp::Or(_))
}

fn work(file: &File, block: String) -> Vec<String> {
    let mut work = Work {
        block,
        found: Vec::new(),
    };
    work.visit_file(file);
    work.found
}

#[test]
fn an_expansion_wires_and_never_works() {
    for sample in SAMPLES {
        let file = syn::parse2(expansion(sample.attribute, sample.arguments, sample.item)).unwrap();
        let function: Function = syn::parse_str(sample.item).unwrap();
        let block: Block = syn::parse2(function.body.to_token_stream()).unwrap();
        let found = work(&file, block.to_token_stream().to_string());
        assert!(found.is_empty(), "`{}` works: {found:?}", sample.name);
    }
}

#[test]
fn the_users_block_is_there_token_by_token() {
    for sample in SAMPLES {
        let expanded = expansion(sample.attribute, sample.arguments, sample.item).to_string();
        let function: Function = syn::parse_str(sample.item).unwrap();
        assert!(
            expanded.contains(&function.body.to_string()),
            "the block of `{}` is another one",
            sample.name
        );
    }
}

#[test]
fn work_in_an_expansion_would_be_found() {
    let planted = [
        quote!(if ready {
            go()
        }),
        quote!(match a {
            _ => b,
        }),
        quote!(loop {}),
        quote!(while ready {}),
        quote!(for a in b {}),
        quote!(fetch().await),
        quote!(fetch()?),
        quote!(async { 1 }),
        quote!(ready && go()),
        quote!(ready || go()),
        quote!(|a| go(stop(a))),
        quote!(|a| {
            go(a);
            stop(a)
        }),
        quote!(|a| a + 1),
        quote!(::std::println!("a")),
        quote!(::neuron::__private::inventory::submit! { if a { b } else { c } }),
    ];
    for work_in in planted {
        let file = syn::parse2(quote!(fn outer() { struct __Neuron; #work_in; })).unwrap();
        assert_eq!(work(&file, "{ }".to_owned()).len(), 1, "{work_in}");
    }
}
