//! What a body does by itself and a replay would answer otherwise: the clock, chance, tasks, files, the network.
//!
//! It is known by the path that is written, for an attribute sees no more: `use std::time::Instant as Now` hides it, and a
//! module of one's own called `fs` is taken for the one it is named like.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use syn::{
    Block, Item, Macro, Path,
    ext::IdentExt,
    visit::{self, Visit},
};

use super::kind::Kind;

/// One such call, and what to write instead.
pub(crate) struct Unrecorded {
    /// The last name of its path.
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// What a replay answers otherwise.
#[derive(Clone, Copy)]
enum What {
    Time,
    Chance,
    Uuid,
    Task,
    Sleep,
    Timeout,
    Outside,
}

/// Ends of paths, and what they stand for. `*` is any name.
const PATHS: &[(&[&str], What)] = &[
    (&["SystemTime", "now"], What::Time),
    (&["Instant", "now"], What::Time),
    (&["Utc", "now"], What::Time),
    (&["Local", "now"], What::Time),
    (&["Zoned", "now"], What::Time),
    (&["Timestamp", "now"], What::Time),
    (&["OffsetDateTime", "now_utc"], What::Time),
    (&["thread_rng"], What::Chance),
    (&["rand", "*"], What::Chance),
    (&["rngs", "OsRng"], What::Chance),
    (&["fastrand", "*"], What::Chance),
    (&["Uuid", "new_v4"], What::Uuid),
    (&["Uuid", "now_v7"], What::Uuid),
    (&["tokio", "spawn"], What::Task),
    (&["task", "spawn"], What::Task),
    (&["task", "spawn_local"], What::Task),
    (&["task", "spawn_blocking"], What::Task),
    (&["thread", "spawn"], What::Task),
    (&["thread", "sleep"], What::Sleep),
    (&["time", "sleep"], What::Sleep),
    (&["time", "sleep_until"], What::Sleep),
    (&["time", "interval"], What::Sleep),
    (&["time", "timeout"], What::Timeout),
    (&["fs", "*"], What::Outside),
    (&["fs", "*", "*"], What::Outside),
    (&["File", "open"], What::Outside),
    (&["File", "create"], What::Outside),
    (&["env", "var"], What::Outside),
    (&["env", "var_os"], What::Outside),
    (&["env", "vars"], What::Outside),
    (&["process", "Command", "new"], What::Outside),
    (&["TcpStream", "connect"], What::Outside),
    (&["reqwest", "get"], What::Outside),
    (&["reqwest", "blocking", "get"], What::Outside),
    (&["reqwest", "Client", "new"], What::Outside),
    (&["reqwest", "Client", "builder"], What::Outside),
];

/// Looks through a body. One that does not parse yet is the compiler's to judge.
pub(super) fn find(kind: Kind, context: &Ident, body: &TokenTree) -> Vec<Unrecorded> {
    let mut search = Search {
        kind,
        context: match context.unraw().to_string() {
            // The user wrote `_`: they will have to name it.
            unnamed if unnamed.starts_with("__") => kind.context().to_lowercase(),
            named => named,
        },
        found: Vec::new(),
    };
    if let Ok(block) = syn::parse2::<Block>(body.clone().into()) {
        search.visit_block(&block);
    }
    search.found
}

struct Search {
    kind: Kind,
    context: String,
    found: Vec<Unrecorded>,
}

impl<'ast> Visit<'ast> for Search {
    /// A function inside is another body: often a step, where all of this belongs.
    fn visit_item(&mut self, _: &'ast Item) {}

    fn visit_expr_path(&mut self, path: &'ast syn::ExprPath) {
        self.judge(path.path.segments.iter().map(|segment| &segment.ident));
        visit::visit_expr_path(self, path);
    }

    /// `random` is also what people call a number that is recorded; only a call of it is chance.
    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let syn::Expr::Path(path) = &*call.func
            && path.path.segments.len() == 1
            && path.path.segments[0].ident == "random"
        {
            self.note(&[&path.path.segments[0].ident], What::Chance);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.scan(call.tokens.clone());
    }

    /// Attributes call nothing.
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    /// A path elsewhere is a type or a pattern.
    fn visit_path(&mut self, _: &'ast Path) {}
}

impl Search {
    /// Looks for paths in the tokens of a macro, whose grammar nobody else knows.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<Ident> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) if colons == 2 => path.push(ident),
                TokenTree::Ident(ident) => {
                    self.judge(path.iter());
                    path = vec![ident];
                }
                other => {
                    self.judge(path.iter());
                    path.clear();
                    if let TokenTree::Group(group) = other {
                        self.scan(group.stream());
                    }
                }
            }
            colons = 0;
        }
        self.judge(path.iter());
    }

    fn judge<'i>(&mut self, path: impl Iterator<Item = &'i Ident>) {
        let path: Vec<&Ident> = path.collect();
        let names: Vec<String> = path.iter().map(|ident| ident.unraw().to_string()).collect();
        if let Some(what) = what(&names) {
            self.note(&path, what);
        }
    }

    fn note(&mut self, path: &[&Ident], what: What) {
        let Some(last) = path.last() else { return };
        let names: Vec<String> = path.iter().map(|ident| ident.unraw().to_string()).collect();
        let message = format!("{}; {}", self.why(&names, what), self.instead(what));
        self.found.push(Unrecorded {
            span: last.span(),
            message,
        });
    }

    fn why(&self, names: &[String], what: What) -> String {
        let (path, word) = (names.join("::"), self.kind.word());
        match what {
            What::Task => format!("a replay of this {word} knows nothing of what `{path}` starts"),
            What::Sleep | What::Timeout => format!("`{path}` waits again in each replay of this {word}"),
            _ => format!("`{path}` answers otherwise in a replay of this {word}"),
        }
    }

    fn instead(&self, what: What) -> String {
        let context = &self.context;
        match (what, self.kind) {
            (What::Time, _) => format!("use `{context}.now()`, or ask for it in a `#[step]`"),
            (What::Chance, _) => format!("use `{context}.random()`"),
            (What::Uuid, Kind::Agent) => format!("use `{context}.uuid()`"),
            (What::Task, Kind::Agent) => format!("use `{context}.spawn_thread(…)`, or a `#[step]` for what blocks"),
            (What::Task, _) => format!("give the work to an agent: `{context}.assign(…)`"),
            (What::Sleep, _) => format!("use `{context}.sleep(…)`"),
            (What::Timeout, Kind::Agent) => format!("use `{context}.timeout(…)`"),
            (What::Timeout, _) => "assign an agent that uses `cx.timeout(…)`".to_owned(),
            (What::Uuid, _) => "make it in a `#[step]` of an agent".to_owned(),
            (What::Outside, Kind::Agent) => "do it in a `#[step]`, whose answer is recorded".to_owned(),
            (What::Outside, _) => "do it in a `#[step]` of an agent, whose answer is recorded".to_owned(),
        }
    }
}

fn what(names: &[String]) -> Option<What> {
    let ends = |end: &[&str]| {
        let start = names.len().checked_sub(end.len());
        start.is_some_and(|start| {
            names[start..]
                .iter()
                .zip(end)
                .all(|(name, wanted)| *wanted == "*" || name == wanted)
        })
    };
    PATHS.iter().find(|(end, _)| ends(end)).map(|(_, what)| *what)
}
