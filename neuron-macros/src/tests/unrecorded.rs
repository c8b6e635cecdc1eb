//! Which calls in a body are warned of, and where the warning points. That the compiler shows it is a test of the whole.

use proc_macro2::TokenStream;
use syn::{
    ItemConst, LitStr,
    visit::{self, Visit},
};

use super::expansion;

/// The messages of all warnings in an expansion.
#[derive(Default)]
struct Warnings(Vec<String>);

impl<'ast> Visit<'ast> for Warnings {
    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        let deprecated = item.attrs.iter().find(|attr| attr.path().is_ident("deprecated"));
        if let Some(deprecated) = deprecated.filter(|_| item.ident == "__UNRECORDED") {
            let read = deprecated.parse_nested_meta(|meta| {
                self.0.push(meta.value()?.parse::<LitStr>()?.value());
                Ok(())
            });
            read.unwrap();
        }
        visit::visit_item_const(self, item);
    }
}

fn warnings(attribute: &str, arguments: &str, body: &str) -> Vec<String> {
    let context = if attribute == "orchestrator" {
        "board: &Board"
    } else {
        "cx: &Cx"
    };
    let item = format!("async fn work({context}) -> Result<()> {{ {body} }}");
    let expanded: TokenStream = expansion(attribute, arguments, &item);
    let mut warnings = Warnings::default();
    warnings.visit_file(&syn::parse2(expanded).unwrap());
    warnings.0
}

#[test]
fn what_a_replay_would_answer_otherwise_is_warned_of_with_what_to_write_instead() {
    let cases = [
        (
            "std::time::SystemTime::now()",
            "use `cx.now()`, or ask for it in a `#[step]`",
        ),
        ("Instant::now()", "use `cx.now()`, or ask for it in a `#[step]`"),
        ("chrono::Utc::now()", "use `cx.now()`, or ask for it in a `#[step]`"),
        ("rand::random::<u8>()", "use `cx.random()`"),
        ("random::<u8>()", "use `cx.random()`"),
        ("rand::rngs::OsRng", "use `cx.random()`"),
        ("random()", "use `cx.random()`"),
        ("thread_rng().gen()", "use `cx.random()`"),
        ("Uuid::new_v4()", "use `cx.uuid()`"),
        (
            "tokio::spawn(async {})",
            "use `cx.spawn_thread(…)`, or a `#[step]` for what blocks",
        ),
        (
            "std::thread::spawn(|| 1)",
            "use `cx.spawn_thread(…)`, or a `#[step]` for what blocks",
        ),
        ("thread::sleep(a)", "use `cx.sleep(…)`"),
        ("tokio::time::sleep(a).await", "use `cx.sleep(…)`"),
        ("tokio::time::timeout(a, b).await", "use `cx.timeout(…)`"),
        (
            "std::fs::read_to_string(a)",
            "do it in a `#[step]`, whose answer is recorded",
        ),
        ("env::var(a)", "do it in a `#[step]`, whose answer is recorded"),
        (
            "reqwest::get(a).await",
            "do it in a `#[step]`, whose answer is recorded",
        ),
    ];
    for (call, instead) in cases {
        let found = warnings("agent", "", &format!("let _ = {call}; Ok(())"));
        assert_eq!(found.len(), 1, "{call}: {found:?}");
        assert!(found[0].ends_with(&format!("; {instead}")), "{call}: {found:?}");
    }
    let board = warnings("orchestrator", "", "tokio::spawn(a); thread::sleep(b); Ok(())");
    assert_eq!(
        board,
        [
            "a replay of this orchestrator knows nothing of what `tokio::spawn` starts; give the work to an agent: \
             `board.assign(…)`",
            "`thread::sleep` waits again in each replay of this orchestrator; use `board.sleep(…)`",
        ]
    );
}

#[test]
fn closures_async_blocks_and_the_arguments_of_macros_belong_to_the_body() {
    for body in [
        "let late = || Instant::now(); Ok(())",
        "cx.spawn_thread(\"a\", |cx| async move { Instant::now(); Ok(()) }).await",
        "let all = [1].map(|_| async { fs::read(a) }); Ok(())",
        "let now = given.unwrap_or_else(Instant::now); Ok(())",
        "println!(\"{:?} {}\", Instant::now(), 1); Ok(())",
        "let all = vec![(1, Instant::now())]; Ok(())",
        "if Instant::now() > a { return Err(b) } Ok(())",
    ] {
        assert_eq!(warnings("agent", "", body).len(), 1, "{body}");
    }
}

#[test]
fn what_is_recorded_or_belongs_to_another_body_is_not_warned_of() {
    for body in [
        "#[step] async fn read(cx: &Cx) -> Result<Instant> { Ok(Instant::now()) } read(cx).await",
        "fn spawn() { std::thread::spawn(|| ()); } Ok(())",
        "use std::fs; Ok(())",
        "let now: Instant = cx.now(); cx.sleep(a).await; cx.random(); println!(\"now\"); spawn(); time.sleep(); Ok(())",
        "let d = Duration::from_secs(1); let t = time::Duration::MAX; Ok(())",
        "let random = cx.random(); let rng = rand::rngs::StdRng::seed_from_u64(random); Ok(())",
    ] {
        assert_eq!(warnings("agent", "", body), [""; 0], "{body}");
    }
    assert_eq!(warnings("step", "", "Instant::now(); Ok(())"), [""; 0]);
}

#[test]
fn whoever_says_that_it_is_meant_is_not_warned() {
    assert_eq!(
        warnings("agent", "allow(unrecorded)", "Instant::now(); Ok(())"),
        [""; 0]
    );
    assert_eq!(
        warnings("orchestrator", "allow(unrecorded)", "Instant::now(); Ok(())"),
        [""; 0]
    );
}

#[test]
fn a_body_that_is_not_finished_is_warned_of_nothing_and_expands() {
    let item = "async fn work(cx: &Cx) -> Result<()> { let now = Instant::now(); cx. }";
    let expanded = expansion("agent", "", item).to_string();
    assert!(
        !expanded.contains("__UNRECORDED") && expanded.contains("Def for __Neuron"),
        "{expanded}"
    );
}

#[test]
fn a_context_without_a_name_is_called_as_most_call_it() {
    let item = "async fn work(_: &Cx) -> Result<()> { Instant::now(); Ok(()) }";
    let expanded = expansion("agent", "", item).to_string();
    assert!(expanded.contains("use `cx.now()`"), "{expanded}");
}
