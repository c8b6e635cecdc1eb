//! Each way to misuse `#[on]`, and what is said of it.

use super::refusals::{PLAIN, STEP_TAKES, check};

const SHIP: &str = "async fn ship(event: &Event, order: Order) -> Result<()> { send(order).await }";

const HANDLER_TAKES: &str = "a handler takes `name`, `retry`, `timeout`, `kind`, `from`, `in_flight`, `crate`";

#[test]
fn a_handler_names_first_what_it_listens_to() {
    let on = "`#[on]` names first what it listens to: a topic pattern in quotes, as in `#[on(\"orders.*\")]`, or the path \
              of a stage";
    check(&[
        ("on", "", SHIP, on),
        ("on", "7", SHIP, on),
        ("on", "name = \"shipper\"", SHIP, on),
        ("on", "\"a\" \"b\"", SHIP, "expected a comma after the pattern"),
        (
            "on",
            "\"a\", \"b\"",
            SHIP,
            "expected the name of an option, as in `name = \"…\"`",
        ),
    ]);
}

#[test]
fn a_pattern_that_the_runtime_would_refuse_is_refused_at_compile_time() {
    check(&[
        (
            "on",
            "\"\"",
            SHIP,
            "`` is no topic pattern: it is empty; every topic with dots in its name is `**`",
        ),
        (
            "on",
            "\"orders..placed\"",
            SHIP,
            "`orders..placed` is no topic pattern: it holds an empty segment; between two dots, or slashes, stands a name \
             or a wildcard",
        ),
        (
            "on",
            "\"orders.**.placed\"",
            SHIP,
            "`orders.**.placed` is no topic pattern: `**` is not allowed there; `*` stands for one whole segment, `**` \
             and `>` only at the end",
        ),
        (
            "on",
            "\"ord*\"",
            SHIP,
            "`ord*` is no topic pattern: `ord*` is not allowed there; `*` stands for one whole segment, `**` and `>` only \
             at the end",
        ),
    ]);
}

#[test]
fn what_a_handler_cannot_be_is_refused_with_its_whole_signature() {
    let usage = "expected `async fn ship(event: &Event, payload: …) -> Result<()>`";
    let cases = [
        (
            "fn ship(event: &Event) -> Result<()> { send() }",
            format!("a handler is an `async fn`; {usage}"),
        ),
        (
            "async fn ship() -> Result<()> { send().await }",
            format!("the first parameter of a handler is its event; {usage}"),
        ),
        (
            "async fn ship(order: Order) -> Result<()> { send(order).await }",
            format!("the first parameter of a handler is its event; {usage}"),
        ),
        (
            "async fn ship(event: &mut Event) -> Result<()> { send().await }",
            "the event of a handler is shared; write `&Event`".to_owned(),
        ),
        (
            "async fn ship(event: &Event, order: &Order) -> Result<()> { send(order).await }",
            "a parameter of a handler is owned, for it is written to the log and read back; write `Order`".to_owned(),
        ),
        (
            "async fn ship(event: &Event, order: Order, mailer: Mailer) -> Result<()> { send(order).await }",
            "a handler takes its event and one payload at most; the program's own values are at `event.state::<T>()`"
                .to_owned(),
        ),
        (
            "async fn ship(event: &Event) { send().await }",
            format!("a handler returns a `Result`; {usage}"),
        ),
        (
            "async fn ship(&self, event: &Event) -> Result<()> { send().await }",
            "a handler is a function without `self`; what it needs of the program is at `event.state::<T>()`"
                .to_owned(),
        ),
        (
            "#[step] async fn ship(event: &Event) -> Result<()> { send().await }",
            "a function is a handler or a step, not both; remove one of the attributes".to_owned(),
        ),
    ];
    for (item, message) in cases {
        check(&[("on", "\"orders.*\"", item, &message)]);
    }
}

#[test]
fn an_option_of_a_handler_that_is_wrong_is_refused() {
    check(&[
        (
            "on",
            "\"orders.*\", from = yesterday",
            SHIP,
            "`from` is written `from = start` or `from = now`",
        ),
        (
            "on",
            "\"orders.*\", kind = \"order\"",
            SHIP,
            "`kind` is written `kind(\"order.placed\")`",
        ),
        (
            "on",
            "\"orders.*\", kind(\"order\"), kind(\"order\")",
            SHIP,
            "the type `order` is named twice",
        ),
        (
            "on",
            "\"orders.*\", in_flight = \"8\"",
            SHIP,
            "`in_flight` is written `in_flight = 8`",
        ),
        (
            "on",
            "\"orders.*\", in_flight = 1, in_flight = 2",
            SHIP,
            "`in_flight` is given twice",
        ),
        (
            "on",
            "\"orders.*\", once",
            SHIP,
            &format!("`once` belongs on `#[step]`; {HANDLER_TAKES}"),
        ),
        (
            "step",
            "in_flight = 8",
            PLAIN,
            &format!("`in_flight` belongs on `#[on]`; {STEP_TAKES}"),
        ),
        (
            "on",
            "\"orders.*\", inflight = 8",
            SHIP,
            &format!("there is no option `inflight`; did you mean `in_flight`? {HANDLER_TAKES}"),
        ),
    ]);
}
