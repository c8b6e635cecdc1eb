//! What the attributes refuse, and what they say. One case per mistake: the messages are the interface.

use syn::{Item, LitStr};

use super::{expansion, expansion_with, pretty};

/// The messages that `#[attribute(arguments)] item` is refused with.
fn messages(attribute: &str, arguments: &str, item: &str) -> Vec<String> {
    messages_in(&expansion(attribute, arguments, item))
}

fn messages_in(expanded: &proc_macro2::TokenStream) -> Vec<String> {
    let file: syn::File = syn::parse2(expanded.clone()).unwrap();
    let errors = file.items.iter().filter_map(|item| match item {
        Item::Macro(call) if call.mac.path.segments.last().unwrap().ident == "compile_error" => Some(&call.mac),
        _ => None,
    });
    errors
        .map(|call| call.parse_body::<LitStr>().unwrap().value())
        .collect()
}

/// Asserts that each case is refused with exactly one message, this one.
pub(super) fn check(cases: &[(&str, &str, &str, &str)]) {
    for (attribute, arguments, item, message) in cases {
        assert_eq!(
            messages(attribute, arguments, item),
            [*message],
            "#[{attribute}({arguments})] {item}"
        );
    }
}

pub(super) const PLAIN: &str = "async fn fetch(cx: &Cx, url: Url) -> Result<Page> { get(url).await }";

pub(super) const STEP_TAKES: &str = "a step takes `name`, `was`, `uses`, `owns`, `estimate`, `retry`, `timeout`, `once`, `share`, \
                          `resolve`, `ignore`, `crate`";

#[test]
fn a_function_of_another_sort_is_refused() {
    check(&[
        (
            "step",
            "",
            "fn fetch(cx: &Cx) -> Result<Page> { get() }",
            "a step is an `async fn`; expected `async fn fetch(cx: &Cx, …) -> Result<…>`",
        ),
        (
            "orchestrator",
            "",
            "fn digest(board: &Board) -> Result<Page> { get() }",
            "an orchestrator is an `async fn`; expected `async fn digest(board: &Board, …) -> Result<…>`",
        ),
        (
            "plan",
            "",
            "async fn outline(plan: &Plan) -> Node<Page> { plan.step(fetch, ()) }",
            "a plan is data and waits for nothing; remove `async`: `fn outline(plan: &Plan, …) -> Node<…>`",
        ),
        (
            "step",
            "",
            "async unsafe fn fetch(cx: &Cx) -> Result<Page> { get() }",
            "a step is never `unsafe`: the runtime calls it, and promises nothing; keep the unsafe code in a function \
             it calls",
        ),
        (
            "step",
            "",
            "const async fn fetch(cx: &Cx) -> Result<Page> { get() }",
            "a step runs when it is called, never at compile time; remove `const`",
        ),
        (
            "agent",
            "",
            "async extern \"C\" fn scout(cx: &Cx) -> Result<Page> { get() }",
            "an agent is called from Rust alone; remove `extern`",
        ),
        (
            "plan",
            "",
            "const fn outline(plan: &Plan) -> Node<Page> { plan.step(fetch, ()) }",
            "a plan runs when it is called, never at compile time; remove `const`",
        ),
        (
            "step",
            "",
            "struct Page { url: Url }",
            "this attribute goes on a function",
        ),
        ("plan", "", "mod outline {}", "this attribute goes on a function"),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx) -> Result<Page>;",
            "expected the body of the function; one without a body cannot be run",
        ),
    ]);
}

#[test]
fn a_generic_function_is_refused() {
    let message = "a step is recorded by its name, so it is not generic; write one step per type, each calling a \
                   generic function";
    check(&[
        (
            "step",
            "",
            "async fn fetch<T>(cx: &Cx, url: T) -> Result<Page> { get(url) }",
            message,
        ),
        (
            "step",
            "",
            "async fn fetch<'a>(cx: &'a Cx) -> Result<Page> { get() }",
            message,
        ),
        (
            "step",
            "",
            "async fn fetch<const N: usize>(cx: &Cx) -> Result<Page> { get() }",
            message,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx) -> Result<Page> where Page: Send { get() }",
            message,
        ),
        (
            "plan",
            "",
            "fn outline<T>(plan: &Plan, of: Node<T>) -> Node<T> { of }",
            "a plan is recorded by its name, so it is not generic; write one plan per type, each calling a generic \
             function",
        ),
    ]);
}

#[test]
fn a_function_without_its_context_is_refused() {
    let step = "the first parameter of a step is its context; expected `async fn fetch(cx: &Cx, …) -> Result<…>`";
    let board = "the first parameter of an orchestrator is its context; expected `async fn digest(board: &Board, …) \
                 -> Result<…>`";
    let plan = "the first parameter of a plan is its context; expected `fn outline(plan: &Plan, …) -> Node<…>`";
    check(&[
        ("step", "", "async fn fetch() -> Result<Page> { get() }", step),
        (
            "step",
            "",
            "async fn fetch(url: Url) -> Result<Page> { get(url) }",
            step,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: Cx) -> Result<Page> { get() }",
            "the context of a step is lent to it; write `&Cx`",
        ),
        (
            "agent",
            "",
            "async fn scout(cx: &Cx, other: &Cx) -> Result<Page> { get() }",
            "the context of an agent is its first parameter, and there is one; move it there or remove it",
        ),
        (
            "step",
            "",
            "async fn fetch(url: &str) -> Result<Page> { get(url) }",
            step,
        ),
        (
            "step",
            "",
            "async fn fetch(urls: &[Url]) -> Result<Page> { get(urls) }",
            step,
        ),
        (
            "orchestrator",
            "",
            "async fn digest(urls: Vec<Url>) -> Result<Page> { get(urls) }",
            board,
        ),
        ("plan", "", "fn outline() -> Node<Page> { make() }", plan),
        (
            "plan",
            "",
            "fn outline(url: Node<Url>) -> Node<Page> { make(url) }",
            plan,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &mut Cx) -> Result<Page> { get() }",
            "the context of a step is shared; write `&Cx`",
        ),
        (
            "orchestrator",
            "",
            "async fn digest(board: &mut Board) -> Result<Page> { get() }",
            "the context of an orchestrator is shared; write `&Board`",
        ),
        (
            "plan",
            "",
            "fn outline(p: &mut Plan) -> Node<Page> { make() }",
            "the context of a plan is shared; write `&Plan`",
        ),
        (
            "step",
            "",
            "async fn fetch(&self, cx: &Cx, url: Url) -> Result<Page> { get(url) }",
            "a step is a function without `self`; pass what it holds as parameters, so that it is on the log",
        ),
        (
            "plan",
            "",
            "fn outline(self: Arc<Self>) -> Node<Page> { make() }",
            "a plan is a function without `self`; pass what it holds as parameters, so that it is on the log",
        ),
        (
            "step",
            "",
            "async fn fetch(Cx { id }: &Cx) -> Result<Page> { get(id) }",
            "the context of a step has a plain name, as in `cx`",
        ),
    ]);
}

#[test]
fn a_parameter_that_cannot_stand_on_the_log_is_refused() {
    let named = "a parameter of a step has a plain name: it stands on the log and in the schema of the tool; take it \
                 apart in the body";
    let owned = |instead: &str| {
        format!("a parameter of a step is owned, for it is written to the log and read back; write `{instead}`")
    };
    let (string, list, map) = (owned("String"), owned("Vec<u8>"), owned("HashMap<u8, Url>"));
    let for_ever = "a parameter of a step is owned, for it is written to the log and read back; write `'static` here, \
                    or a type that owns";
    check(&[
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, url: &str) -> Result<Page> { get(url) }",
            &string,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, url: Option<&str>) -> Result<Page> { get(url) }",
            &string,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, bytes: &'static [u8]) -> Result<Page> { get(bytes) }",
            &list,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, all: &mut HashMap<u8, Url>) -> Result<Page> { get(all) }",
            &map,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, url: Cow<'_, str>) -> Result<Page> { get(url) }",
            for_ever,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, url: impl Into<Url>) -> Result<Page> { get(url) }",
            "a parameter of a step has one type, written out; `impl` names none",
        ),
        (
            "plan",
            "",
            "fn outline(plan: &Plan, url: Node<_>) -> Node<Page> { get(url) }",
            "a parameter of a plan has one type, written out; `_` names none",
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, from: Self) -> Result<Page> { get(from) }",
            "a parameter of a step has one type, written out; `Self` means another one where it is registered",
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, _: Url) -> Result<Page> { get() }",
            named,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, (a, b): (Url, Url)) -> Result<Page> { get(a, b) }",
            named,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, ref url: Url) -> Result<Page> { get(url) }",
            named,
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, #[cfg(unix)] url: Url) -> Result<Page> { get(url) }",
            "a parameter of a step is always there; put the condition on the function",
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx, ...) -> Result<Page> { get() }",
            "a step has a fixed number of parameters",
        ),
        (
            "step",
            "",
            "async fn wide(cx: &Cx, a: A, b: A, c: A, d: A, e: A, f: A, g: A, h: A, i: A) -> Result<A> { Ok(a) }",
            "a step takes at most 8 parameters after its context; pass a struct instead",
        ),
    ]);
}

#[test]
fn an_output_that_cannot_stand_on_the_log_is_refused() {
    check(&[
        (
            "step",
            "",
            "async fn fetch(cx: &Cx) { get() }",
            "a step returns a `Result`; expected `async fn fetch(cx: &Cx, …) -> Result<…>`",
        ),
        (
            "agent",
            "",
            "async fn scout(cx: &Cx) -> (u8, u8) { get() }",
            "an agent returns a `Result`; expected `async fn scout(cx: &Cx, …) -> Result<…>`",
        ),
        (
            "step",
            "",
            "async fn fetch(cx: &Cx) -> u32 { get() }",
            "a step returns a `Result`; expected `async fn fetch(cx: &Cx, …) -> Result<…>`",
        ),
        (
            "plan",
            "",
            "fn outline(plan: &Plan) { make() }",
            "a plan returns the `Node` its output comes from; expected `fn outline(plan: &Plan, …) -> Node<…>`",
        ),
        (
            "step",
            "",
            "async fn name(cx: &Cx) -> Result<&str> { get() }",
            "the output of a step is owned, for it is written to the log and read back; write `String`",
        ),
        (
            "agent",
            "",
            "async fn scout(cx: &Cx) -> Result<impl Display> { get() }",
            "the output of an agent has one type, written out; `impl` names none",
        ),
    ]);
}

#[test]
fn an_option_that_is_not_there_is_refused_with_those_that_are() {
    let elsewhere = |name: &str, home: &str, takes: &str| format!("`{name}` belongs on {home}; {takes}");
    let agent = "an agent takes `name`, `was`, `plan`, `uses`, `owns`, `estimate`, `allow`, `crate`";
    let orchestrator = "an orchestrator takes `name`, `was`, `allow`, `crate`";
    check(&[
        (
            "step",
            "retries(3)",
            PLAIN,
            &format!("there is no option `retries`; did you mean `retry`? {STEP_TAKES}"),
        ),
        (
            "plan",
            "url",
            "fn outline(plan: &Plan) -> Node<A> { a() }",
            "there is no option `url`; a plan takes `name`, `was`, `crate`",
        ),
        (
            "step",
            "plan = outline",
            PLAIN,
            &elsewhere("plan", "`#[agent]`", STEP_TAKES),
        ),
        (
            "agent",
            "retry(3)",
            PLAIN,
            &elsewhere("retry", "`#[step]` or `#[on]`", agent),
        ),
        ("agent", "once", PLAIN, &elsewhere("once", "`#[step]`", agent)),
        (
            "orchestrator",
            "owns(\"x\")",
            PLAIN,
            &elsewhere("owns", "`#[step]` or `#[agent]`", orchestrator),
        ),
    ]);
}

#[test]
fn an_option_that_is_given_twice_is_refused() {
    check(&[
        ("step", "once, share, once", PLAIN, "`once` is given twice"),
        (
            "step",
            "timeout = \"1s\", timeout = \"1s\"",
            PLAIN,
            "`timeout` is given twice",
        ),
        (
            "step",
            "estimate(tokens = 1, tokens = 2)",
            PLAIN,
            "`tokens` is given twice",
        ),
        ("step", "ignore(url), ignore(url)", PLAIN, "`url` is ignored twice"),
        (
            "step",
            "uses(\"net\"), uses(\"net\", 2)",
            PLAIN,
            "the resource `net` is named twice; it is either used, once with its count, or owned",
        ),
        (
            "step",
            "owns(\"net\"), uses(\"net\")",
            PLAIN,
            "the resource `net` is named twice; it is either used, once with its count, or owned",
        ),
        (
            "step",
            "",
            &format!("#[step(once)] {PLAIN}"),
            "`#[step]` is given twice",
        ),
        (
            "step",
            "",
            &format!("#[neuron::agent] {PLAIN}"),
            "a function is a step or an agent, not both; remove one of the attributes",
        ),
    ]);
}

#[test]
fn an_option_in_a_wrong_form_is_refused_with_the_right_one() {
    let uses = "`uses` is written `uses(\"net\")` or `uses(\"gpu\", 2)`";
    let retry = "`retry` is written `retry(3)` or `retry(3, backoff = \"200ms\", on = path::of::a_function)`, of which both \
                 names may be left out";
    let estimate =
        "`estimate` is written `estimate(tokens = 2000, seconds = 30, tool_calls = 1)`, each of them optional";
    let ignore = "`ignore` is written `ignore(parameter)`";
    let cases = [
        ("name", "`name` is written `name = \"…\"`"),
        ("name(\"a\")", "`name` is written `name = \"…\"`"),
        ("name = 7", "`name` is written `name = \"…\"`"),
        ("uses", uses),
        ("uses = \"net\"", uses),
        ("uses()", uses),
        ("uses(net)", uses),
        ("uses(\"gpu\", \"2\")", uses),
        ("uses(\"gpu\", 2, 3)", uses),
        ("owns", "`owns` is written `owns(\"index.db\")`"),
        ("owns(\"a\", \"b\")", "`owns` is written `owns(\"index.db\")`"),
        ("retry", retry),
        ("retry = 3", retry),
        ("retry()", retry),
        ("retry(\"3\")", retry),
        ("retry(3, \"200ms\")", retry),
        ("retry(3, wait = \"200ms\")", retry),
        ("retry(3, backoff = 200)", retry),
        ("retry(3, is_worth_it)", retry),
        ("retry(on = is_worth_it)", retry),
        ("retry(on = is_worth_it, 3)", retry),
        ("retry(3, on = \"is_worth_it\")", retry),
        ("retry(3, on = |error| true)", retry),
        ("retry(3, on = is_worth_it())", retry),
        ("retry(3, on = one, on = other)", "`on` is given twice"),
        (
            "retry(3, backoff = \"1s\", backoff = \"2s\")",
            "`backoff` is given twice",
        ),
        ("timeout", "`timeout` is written `timeout = \"30s\"`"),
        ("timeout = 30", "`timeout` is written `timeout = \"30s\"`"),
        ("timeout(\"30s\")", "`timeout` is written `timeout = \"30s\"`"),
        ("once = true", "`once` is written `once`, without a value"),
        ("share(true)", "`share` is written `share`, without a value"),
        ("resolve", "`resolve` is written `resolve = path::of::a_step`"),
        (
            "resolve = \"found\"",
            "`resolve` is written `resolve = path::of::a_step`",
        ),
        ("resolve(found)", "`resolve` is written `resolve = path::of::a_step`"),
        ("estimate(5)", estimate),
        ("estimate()", estimate),
        ("estimate(bytes = 5)", estimate),
        ("estimate(tokens = \"5\")", estimate),
        ("ignore", ignore),
        ("ignore()", ignore),
        ("ignore(\"url\")", ignore),
        ("ignore(url = 1)", ignore),
        ("crate = \"neuron\"", "`crate` is written `crate = path::to::neuron`"),
    ];
    for (arguments, message) in cases {
        assert_eq!(messages("step", arguments, PLAIN), [message], "#[step({arguments})]");
    }
    assert_eq!(
        messages("agent", "plan = \"outline\"", PLAIN),
        ["`plan` is written `plan = path::of::a_plan`"]
    );
}

#[test]
fn a_value_that_makes_no_sense_is_refused() {
    let duration = |text: &str| {
        format!(
            "`{text}` is no duration; write a whole number and a unit: \"250ms\", \"30s\", \"5m\", \"2h\" or \"1d\""
        )
    };
    let rule = "the name of a step is 1 to 64 of `A-Z a-z 0-9 _ -`";
    let long = "x".repeat(65);
    let none = "starts at 1; leave it out to say none";
    let cases = [
        ("timeout = \"soon\"", duration("soon")),
        ("timeout = \"30\"", duration("30")),
        ("retry(3, backoff = \"1.5s\")", duration("1.5s")),
        (
            "timeout = \"0s\"",
            "`0s` is no time at all; a duration is longer than zero".to_owned(),
        ),
        ("name = \"\"", "the text of `name` is empty".to_owned()),
        ("name = \"fetch page\"", format!("`fetch page` is no name; {rule}")),
        ("name = \"$sleep\"", format!("`$sleep` is no name; {rule}")),
        (&format!("name = \"{long}\""), format!("`{long}` is no name; {rule}")),
        ("uses(\" \")", "the text of `uses` is empty".to_owned()),
        ("uses(\"gpu\", 0)", format!("a number of `uses` {none}")),
        ("retry(0)", format!("a number of `retry` {none}")),
        ("estimate(tokens = 0)", format!("a number of `estimate` {none}")),
        ("retry(5000000000)", "the number of `retry` is too large".to_owned()),
        (
            "ignore(link)",
            "`ignore` names a parameter of the step, and `link` is none".to_owned(),
        ),
        (
            "ignore(cx)",
            "`ignore` names a parameter of the step, and `cx` is none".to_owned(),
        ),
        (
            "retry(3, on = url)",
            "a parameter is called `url` too and hides the function; write `self::url`".to_owned(),
        ),
        (
            "resolve = url",
            "a parameter is called `url` too and hides the function; write `self::url`".to_owned(),
        ),
    ];
    for (arguments, message) in cases {
        assert_eq!(messages("step", arguments, PLAIN), [message], "#[step({arguments})]");
    }
}

#[test]
fn a_function_whose_name_is_no_tool_name_needs_another_one() {
    let item = "async fn größe(cx: &Cx) -> Result<u32> { Ok(1) }";
    let message = "the name of a step is 1 to 64 of `A-Z a-z 0-9 _ -`; give a step one with `name = \"…\"`";
    assert_eq!(messages("step", "", item), [message]);
    assert!(messages("step", "name = \"size\"", item).is_empty());
}

#[test]
fn an_argument_that_does_not_parse_is_refused_and_the_next_one_is_read() {
    let cases = [
        (
            "\"net\", once = 1",
            "expected the name of an option, as in `name = \"…\"`",
        ),
        ("uses \"net\", once = 1", "expected a comma after `uses`"),
        ("retry::three, once = 1", "expected a comma after `retry`"),
    ];
    for (arguments, message) in cases {
        assert_eq!(
            messages("step", arguments, PLAIN),
            [message, "`once` is written `once`, without a value"]
        );
    }
}

#[test]
fn a_former_name_is_another_one_legal_and_given_once() {
    check(&[
        (
            "step",
            "was = \"fetch\"",
            PLAIN,
            "a step is called `fetch` now; `was` takes the names it had before",
        ),
        (
            "agent",
            "was = \"get page\"",
            PLAIN,
            "`get page` was never a name; the name of an agent is 1 to 64 of `A-Z a-z 0-9 _ -`",
        ),
        (
            "step",
            "was = \"get\", was = \"load\", was = \"get\"",
            PLAIN,
            "the former name `get` is given twice",
        ),
        (
            "step",
            "was",
            PLAIN,
            "`was` is written `was = \"…\"`, the name it had before",
        ),
        (
            "plan",
            "was = \"outline\"",
            "fn outline(plan: &Plan) -> Node<Page> { plan.step(fetch, ()) }",
            "a plan is called `outline` now; `was` takes the names it had before",
        ),
    ]);
}

#[test]
fn several_mistakes_give_several_messages_at_once() {
    let item = "pub fn fetch<T>(url: &str, (a, b): (T, T)) { }";
    assert_eq!(
        messages("step", "once, once, timeout = \"soon\", colour = \"red\"", item),
        [
            "`once` is given twice",
            "`soon` is no duration; write a whole number and a unit: \"250ms\", \"30s\", \"5m\", \"2h\" or \"1d\"",
            &format!("there is no option `colour`; {STEP_TAKES}"),
            "a step is an `async fn`; expected `async fn fetch(cx: &Cx, …) -> Result<…>`",
            "a step is recorded by its name, so it is not generic; write one step per type, each calling a generic \
             function",
            "a step returns a `Result`; expected `async fn fetch(cx: &Cx, …) -> Result<…>`",
            "the first parameter of a step is its context; expected `async fn fetch(cx: &Cx, …) -> Result<…>`",
            "a parameter of a step has a plain name: it stands on the log and in the schema of the tool; take it \
             apart in the body",
        ]
    );
}

#[test]
fn only_the_output_has_to_be_owned_not_the_error_beside_it() {
    for returns in [
        "Result<u32, &'static str>",
        "Result<u32, Failure<'static>>",
        "Reply<&'static str>",
    ] {
        let item = format!("async fn fetch(cx: &Cx) -> {returns} {{ get() }}");
        assert!(messages("step", "", &item).is_empty(), "{returns}");
    }
}

#[test]
fn once_may_be_retried() {
    assert!(messages("step", "once, retry(3)", PLAIN).is_empty());
}

#[test]
fn attributes_of_a_later_version_say_what_to_do_until_then_and_leave_the_item() {
    let cases = [
        (
            "on",
            "stages::validate",
            "`#[on(stage)]` comes with a later version of neuron; until then call the function where the message is \
             published",
        ),
        (
            "metered",
            "",
            "`#[metered]` comes with a later version of neuron; until then remove it: what a step burns is recorded \
             anyway",
        ),
        (
            "guard",
            "",
            "`#[guard]` comes with a later version of neuron; until then check in the body and return a terminal error",
        ),
    ];
    for (attribute, arguments, message) in cases {
        let expanded = expansion(attribute, arguments, "struct Sensor;");
        assert_eq!(messages_in(&expanded), [message]);
        assert!(pretty(&expanded).ends_with("struct Sensor;\n"));
    }
}

#[test]
fn the_grammar_of_later_attributes_is_read_now() {
    assert_eq!(messages("metered", "fast", PLAIN)[0], "`#[metered]` takes no arguments");
    assert_eq!(messages("guard", "role", PLAIN)[0], "`#[guard]` takes no arguments");
}

#[test]
fn what_is_allowed_is_named() {
    let form = "`allow` is written `allow(unrecorded)`";
    let agent = "async fn scout(cx: &Cx) -> Result<Page> { get() }";
    check(&[
        ("agent", "allow(clocks)", agent, form),
        ("agent", "allow", agent, form),
        ("agent", "allow(unrecorded, twice)", agent, form),
    ]);
}

#[test]
fn a_slip_in_the_name_of_an_option_is_guessed() {
    for (written, meant) in [
        ("retires(3)", Some("retry")),
        ("retries(3)", Some("retry")),
        ("retri(3)", Some("retry")),
        ("Timeout = \"1s\"", Some("timeout")),
        ("time_out = \"1s\"", Some("timeout")),
        ("estimates(tokens = 1)", Some("estimate")),
        ("use(\"net\")", Some("uses")),
        ("own(\"net\")", Some("owns")),
        ("colour = \"red\"", None),
    ] {
        let option: String = written
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let guess = meant
            .map(|meant| format!("did you mean `{meant}`? "))
            .unwrap_or_default();
        let message = format!("there is no option `{option}`; {guess}{STEP_TAKES}");
        check(&[("step", written, PLAIN, &message)]);
    }
}

#[test]
fn without_a_runtime_in_the_manifest_the_message_is_passed_on_unless_a_path_is_given() {
    let refused = messages_in(&expansion_with(Err("no runtime"), "step", "", PLAIN));
    assert_eq!(refused, ["no runtime"]);
    let given = messages_in(&expansion_with(Err("no runtime"), "step", "crate = ::rt", PLAIN));
    assert!(given.is_empty());
}

#[test]
fn after_a_mistake_in_an_option_the_call_still_has_its_type() {
    let good = pretty(&expansion("step", "", PLAIN));
    let bad = pretty(&expansion("step", "colour = \"red\"", PLAIN));
    assert!(bad.ends_with(&good), "{bad}");
}

#[test]
fn after_a_mistake_in_the_signature_the_function_stands_as_written() {
    let item = "pub async fn fetch(/** The context. */ cx: &mut Cx, url: Url) -> Result<Page> { get(cx, url).await }";
    let stands = pretty(&expansion("step", "", item));
    assert!(
        stands.contains("pub async fn fetch(cx: &mut Cx, url: Url) -> Result<Page> {"),
        "{stands}"
    );
    assert!(!stands.contains("The context."), "{stands}");
}
