//! What annotated functions are: one name that is called, planned, told to a model and registered.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::collections::HashSet;

use neuron::{
    Cx, Error, ErrorKind, Json, Node, Plan, Result, Secret, agent,
    def::{Def, Entry, Registry, form_of},
    plan,
    plan::{Input, Outline, write},
    step,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Url(String);
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Page {
    text: String,
}

/// Fetches one page.
#[step(uses("net"), retry(3))]
async fn fetch(
    _cx: &Cx,
    /// Where the page is.
    url: Url,
) -> Result<Page> {
    Ok(Page {
        text: format!("text of {}", url.0),
    })
}

#[step]
async fn upper(_cx: &Cx, page: Page) -> Result<String> {
    Ok(page.text.to_uppercase())
}

/// Joins lines under a title.
#[step(owns("report"), estimate(tokens = 10))]
async fn merge(_cx: &Cx, title: String, lines: Vec<String>) -> Result<String> {
    Ok(format!("{title}: {}", lines.join(", ")))
}

#[step]
async fn ping(_cx: &Cx) -> Result<()> {
    Ok(())
}

#[step]
async fn is_long(_cx: &Cx, page: Page) -> Result<bool> {
    Ok(page.text.len() > 20)
}

#[step]
async fn links(_cx: &Cx, page: Page) -> Result<Vec<Url>> {
    Ok(["1", "2"].map(|n| Url(format!("{}/{n}", page.text))).into())
}

#[step]
async fn four(_cx: &Cx, a: u8, b: Option<u8>, c: HashSet<u8>, d: i64) -> Result<i64> {
    Ok(i64::from(a) + i64::from(b.unwrap_or(0)) + c.iter().map(|n| i64::from(*n)).sum::<i64>() + d)
}

#[step]
async fn depth(cx: &Cx, left: u32) -> Result<u32> {
    if left == 0 {
        return Ok(0);
    }
    Ok(1 + depth(cx, left - 1).await?)
}

#[step]
async fn login(_cx: &Cx, user: String, password: Secret<String>) -> Result<usize> {
    Ok(user.len() + password.expose().len())
}

#[step(ignore(hint))]
async fn guided(_cx: &Cx, what: String, hint: u32) -> Result<String> {
    Ok(format!("{what} {hint}"))
}

mod crawl {
    use super::*;

    #[step]
    pub(super) async fn crawl(_cx: &Cx) -> Result<u32> {
        Ok(1)
    }
}
use crawl::crawl;

fn is_send<T: Send>(value: T) -> T {
    value
}

#[tokio::test]
async fn a_step_is_called_like_a_function_with_none_to_four_arguments() {
    let cx: Cx = neuron::test();
    is_send(ping(&cx)).await.unwrap();
    assert_eq!(is_send(fetch(&cx, Url("a".into()))).await.unwrap().text, "text of a");
    assert_eq!(merge(&cx, "t".into(), vec!["x".into()]).await.unwrap(), "t: x");
    assert_eq!(four(&cx, 1, Some(2), [3].into(), 4).await.unwrap(), 10);
    assert_eq!(crawl(&cx).await.unwrap(), 1);
}

#[tokio::test]
async fn a_step_calls_itself_without_boxing() {
    assert_eq!(depth(&neuron::test(), 20).await.unwrap(), 20);
}

#[tokio::test]
async fn a_secret_reaches_its_step_and_nothing_else() {
    let cx: Cx = neuron::test();
    assert_eq!(login(&cx, "ada".into(), "hunter2".to_owned().into()).await.unwrap(), 10);
    let call = login(&cx, "ada".into(), "hunter2".to_owned().into());
    assert!(!format!("{call:?}").contains("hunter2"));
}

#[test]
fn a_step_is_a_tool_with_name_doc_and_a_schema_per_parameter() {
    let tool = neuron::tool(fetch);
    assert_eq!((tool.name, tool.description), ("fetch", "Fetches one page."));
    assert_eq!(
        tool.input_schema,
        json!({
            "type": "object", "required": ["url"], "additionalProperties": false,
            "properties": { "url": { "type": "string", "title": "Url", "description": "Where the page is." } },
        })
    );
    assert_eq!(neuron::tool(four).input_schema["required"], json!(["a", "c", "d"]));
}

#[test]
fn what_is_linked_is_registered_and_what_is_not_is_named() {
    let registry = Registry::linked().unwrap();
    assert_eq!(registry.find("step", "fetch").unwrap().meta().uses, [("net", 1)]);
    assert!(registry.entries().any(|entry| entry.meta().name == "crawl"));
    let missing = registry.find("step", "nothing").unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
    assert!(registry.plans().any(|plan| plan.name() == "research"));
}

struct Twin;

impl Def for Twin {
    type Context = Cx;
    type Kind = neuron::def::kind::Step;
    type Args = ();
    type Output = ();
    const META: neuron::def::Meta = neuron::def::Meta::new("step", "fetch", "", "elsewhere.rs", 7, &[]);

    fn body(_: &Cx, (): ()) -> neuron::def::Body<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

#[test]
fn two_steps_of_one_name_are_refused_with_both_places() {
    static TWIN: Entry = Entry::of::<Twin>();
    let mut registry = Registry::linked().unwrap();
    let refused = registry.register(&TWIN).unwrap_err();
    assert!(refused.message().contains("surface.rs:"), "{refused}");
    assert!(refused.message().contains("elsewhere.rs:7"), "{refused}");
    let mut registry = Registry::new();
    registry.register(&TWIN).unwrap();
    registry.register(&TWIN).unwrap();
}

fn entry(name: &str) -> &'static Entry {
    Registry::linked().unwrap().find("step", name).unwrap()
}

#[test]
fn arguments_from_a_model_are_told_apart_by_what_they_say_not_how() {
    let parse = |text: &str| Json::parse(text).unwrap();
    let normal = |text: &str| entry("four").normalise(&parse(text));
    let one = normal(r#"{"a":1,"c":[2,1],"d":1e0}"#).unwrap();
    let other = normal(r#"{"d":1,"c":[1,2],"b":null,"a":1}"#).unwrap();
    assert_eq!(one.identity, other.identity);
    let unknown = normal(r#"{"a":1,"c":[],"d":1,"e":1}"#).unwrap_err();
    assert!(unknown.message().contains("there is no parameter `e`"), "{unknown}");
    assert!(
        normal(r#"{"a":1,"d":1}"#)
            .unwrap_err()
            .message()
            .contains("`c` is missing")
    );
}

#[test]
fn an_ignored_parameter_is_recorded_and_no_part_of_identity() {
    let args = entry("guided")
        .normalise(&Json::parse(r#"{"what":"x","hint":3}"#).unwrap())
        .unwrap();
    assert_eq!(args.recorded.as_str(), r#"{"hint":3,"what":"x"}"#);
    assert_eq!(args.identity.as_str(), r#"{"what":"x"}"#);
}

#[test]
fn a_doc_comment_changes_no_schema_and_a_type_does() {
    fn args<M, F: neuron::Callable<M>>(_: F) -> neuron::SchemaRef {
        form_of::<F::Def>().args_schema()
    }
    mod undocumented {
        use super::*;
        #[step]
        pub(super) async fn fetch2(_cx: &Cx, url: Url) -> Result<()> {
            let _ = url;
            Ok(())
        }
        #[step]
        pub(super) async fn fetch3(_cx: &Cx, url: u32) -> Result<()> {
            let _ = url;
            Ok(())
        }
    }
    assert_eq!(args(fetch), args(undocumented::fetch2));
    assert_ne!(args(fetch), args(undocumented::fetch3));
}

#[plan]
fn research(plan: &Plan, url: Url, deep: bool) -> Node<String> {
    let main = plan.step(upper, plan.step(fetch, url));
    let more: Vec<Node<String>> = if deep {
        ["x", "y"]
            .map(|url| plan.step(upper, plan.step(fetch, Url(url.into()))))
            .into()
    } else {
        Vec::new()
    };
    plan.step(merge, ("report", [vec![main], more].concat()))
}

#[plan]
fn dynamic(plan: &Plan, page: Node<Page>) -> Node<Vec<String>> {
    let pages = plan.each(fetch, plan.step(links, page));
    let _only_if_long: Node<Option<String>> = plan.when(plan.step(is_long, page), upper, page);
    plan.after(pages, plan.step(ping, ()));
    plan.each(upper, pages)
}

fn given(value: &serde_json::Value) -> Input {
    Input::Value(Json::of(value).unwrap().into())
}

#[test]
fn a_plan_declares_rows_whose_edges_come_from_the_values_that_flow() {
    let written = write(research, &[given(&json!("a")), given(&json!(true))])
        .unwrap()
        .unwrap();
    let outline = written.outline();
    let steps: Vec<&str> = outline.rows.iter().map(|row| row.step.as_str()).collect();
    assert_eq!(steps, ["fetch", "upper", "fetch", "upper", "fetch", "upper", "merge"]);
    let declared = Json::of(outline).unwrap();
    let last = &declared.to_value()["rows"][6];
    assert_eq!(last["inputs"], json!([{ "value": "report" }, { "wires": [1, 3, 5] }]));
    assert_eq!(last["owns"], json!(["report"]));
    assert_eq!(&declared.decode::<Outline>().unwrap(), outline);
    assert_eq!(outline.rows[6].edges(), [1, 3, 5]);
}

#[test]
fn a_plan_that_takes_a_node_is_declared_the_same_before_and_after_its_value_is_there() {
    let early = write(dynamic, &[Input::Wire(0)]).unwrap().unwrap();
    let late = write(dynamic, &[given(&json!({ "text": "t" }))]).unwrap().unwrap();
    assert_eq!(early.outline(), late.outline());
    assert!(
        write(research, &[Input::Wire(0), given(&json!(true))])
            .unwrap()
            .is_none(),
        "it reads the value"
    );
}

#[plan]
fn circular(plan: &Plan) -> Node<()> {
    let (first, second) = (plan.step(ping, ()), plan.step(ping, ()));
    plan.after(first, second);
    plan.after(second, first);
    first
}

#[plan]
fn broken(_plan: &Plan) -> Node<()> {
    panic!("no such plan")
}

#[test]
fn a_plan_that_waits_for_itself_or_panics_is_an_error() {
    let cycle = write(circular, &[]).unwrap_err();
    assert!(cycle.message().contains("waits for itself"), "{cycle}");
    assert_eq!(write(broken, &[]).unwrap_err().kind(), ErrorKind::Panicked);
}

#[agent(plan = dynamic)]
async fn reader(cx: &Cx, page: Page) -> Result<Vec<String>> {
    Ok(vec![upper(cx, page).await?])
}

#[test]
fn an_agent_declares_the_plan_its_attribute_names() {
    let entry = Registry::linked().unwrap().find("agent", "reader").unwrap();
    let outliner = entry.meta().outline.unwrap();
    let written = outliner(&[Input::Wire(3)]).unwrap().unwrap();
    assert_eq!(written.outline().rows.len(), 6);
    let opaque = entry.meta().opaque();
    assert_eq!(
        (opaque.rows.len(), &opaque.rows[0].inputs[..]),
        (1, &[Input::Param(0)][..])
    );
}

#[step]
async fn any_error(_cx: &Cx, text: String) -> std::result::Result<u32, std::num::ParseIntError> {
    text.parse()
}

#[tokio::test]
async fn a_body_fails_with_any_error_and_its_caller_sees_ours() {
    let cx: Cx = neuron::test();
    let error: Error = any_error(&cx, "x".into()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (ErrorKind::Failed, "invalid digit found in string")
    );
}
