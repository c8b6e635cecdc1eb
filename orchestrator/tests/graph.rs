//! The work of a run as a graph: what its packages and their steps are told to be, and that every drawing is well formed.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    missing_docs,
    reason = "a test that fails is meant to panic"
)]

use std::time::Duration;

use orchestrator::{
    graph::{Edge, PARTS_MAX, Part, RunGraph, State, Work},
    neuron::{TokenId, vocabulary::orchestration::PackageKind},
    package::Phase,
    prelude::*,
    testing::Kit,
};
use proptest::prelude::*;

#[step]
async fn links(_cx: &Cx, site: String) -> Result<Vec<u32>> {
    Ok((0..site.len() as u32).collect())
}

#[step(retry(2, backoff = "1h"))]
async fn fetch(_cx: &Cx, page: u32) -> Result<String> {
    Ok(format!("page {page}"))
}

#[step]
async fn is_large(_cx: &Cx, pages: Vec<String>) -> Result<bool> {
    Ok(pages.len() > 10)
}

#[step]
async fn archive(_cx: &Cx, pages: Vec<String>) -> Result<String> {
    Ok(pages.concat())
}

#[step]
async fn join(_cx: &Cx, pages: Vec<String>, archived: Option<String>) -> Result<String> {
    Ok(format!("{} {archived:?}", pages.len()))
}

#[plan]
fn crawl(plan: &Plan, site: Node<String>) -> Node<String> {
    let pages = plan.at_once(2, plan.each(fetch, plan.step(links, site)));
    let archived = plan.when(plan.step(is_large, pages), archive, pages);
    plan.step(join, (pages, archived))
}

#[agent]
async fn reader(cx: &Cx, text: String) -> Result<usize> {
    links(cx, text.clone()).await?;
    links(cx, format!("{text}.")).await?;
    cx.sleep(Duration::from_hours(1)).await?;
    fetch(cx, 7).await?;
    Ok(text.len())
}

#[orchestrator]
async fn inner(board: &Board, text: String) -> Result<usize> {
    Ok(board.assign(reader, text).await?)
}

#[orchestrator]
async fn digest(board: &Board, site: String) -> Result<usize> {
    let crawled = board.assign(crawl, site);
    Ok(board.assign(inner, crawled).await?)
}

/// Each package with its phase and its parts.
fn shown(graph: &RunGraph) -> Vec<String> {
    let parts = |work: &Work| {
        let parts = work.parts.iter().map(|part| {
            let after = part.after.iter().map(|at| RunGraph::letter(*at)).collect::<String>();
            format!("{} {} <{after}", part.name, part.standing())
        });
        parts.collect::<Vec<_>>().join("; ")
    };
    let shown = graph.packages.iter().map(|work| {
        let after: Vec<_> = work
            .after
            .iter()
            .map(|edge| format!("{}{}", edge.from, edge.why))
            .collect();
        format!(
            "{} {} {after:?} {:?}: {}",
            work.name,
            work.phase,
            work.within,
            parts(work)
        )
    });
    shown.collect()
}

fn graph(kit: &Kit, run: &str) -> RunGraph {
    RunGraph::of(kit.ledger(), &RunId::new(run).unwrap()).unwrap()
}

#[tokio::test]
async fn a_run_is_told_package_by_package_and_step_by_step_while_it_runs_and_when_it_has_ended() {
    let kit = Kit::new().await.unwrap();
    kit.fail("fetch").on_attempt(1).with("busy");
    let running = kit.run(digest, "abc".into()).start().await.unwrap();
    kit.reached("step.attempted", "fetch").await.unwrap();
    let early = graph(&kit, "digest-1");
    assert_eq!(early.state, State::Running);
    let shown_early = shown(&early);
    assert!(
        shown_early[0].starts_with("crawl running [] None: links done <; fetch retrying, 0 of"),
        "{shown_early:#?}"
    );
    assert!(
        shown_early[0].contains("is_large waiting <b; archive waiting <bc; join waiting <bd"),
        "{shown_early:#?}"
    );
    assert_eq!(shown_early[1], "inner cleared [\"0text\"] None: ");

    assert_eq!(kit.skip_time(running.wait()).await.unwrap(), 6);
    let late = graph(&kit, "digest-1");
    assert_eq!(late.state, State::Done);
    assert_eq!(
        shown(&late),
        [
            "crawl done [] None: links done <; fetch 3 done <a; is_large done <b; archive skipped <bc; join done <bd",
            "inner done [\"0text\"] None: ",
            "reader done [] Some(1): links 2 done <; $sleep done <; fetch done <",
        ]
    );
}

#[tokio::test]
async fn what_failed_and_what_was_held_up_by_it_is_told_as_that() {
    let kit = Kit::new().await.unwrap();
    kit.fail("is_large").always().with(Error::terminal("no ruler"));
    kit.skip_time(kit.run(digest, "abc".into())).await.unwrap_err();
    let graph = graph(&kit, "digest-1");
    assert_eq!(graph.state, State::Failed);
    assert!(
        shown(&graph)[0].ends_with("is_large failed <b; archive skipped <bc; join skipped <bd"),
        "{graph:#?}"
    );
}

fn word() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\"\\\\<>&;#|\\]\\[\n\r\t{}-]{0,12}"]
}

fn state() -> impl Strategy<Value = State> {
    (0..State::ALL.len()).prop_map(|at| State::ALL[at])
}

prop_compose! {
    fn part(place: usize)(
        name in word(), state in state(), done in 0_usize..3, more in 0_usize..3,
        after in prop::collection::vec(0..place.max(1), 0..3), manner in prop::option::of(word()),
    ) -> Part {
        Part { name, state, done, calls: done + more, after: if place == 0 { Vec::new() } else { after }, manner }
    }
}

prop_compose! {
    fn work(place: usize, of: usize)(
        name in word(), why in word(), from in prop::option::of(0..of), within in prop::option::of(0..place.max(1)),
        parts in (0_usize..4).prop_flat_map(|count| (0..count).map(part).collect::<Vec<_>>()),
        kind in prop_oneof![Just(PackageKind::Agent), Just(PackageKind::Plan), Just(PackageKind::Orchestrator)],
        more in 0_usize..2,
    ) -> Work {
        Work {
            name, kind, token: TokenId::new("reader-as7m4aqxea2jsph2").unwrap(), phase: Phase::Running,
            within: within.filter(|_| place > 0), after: from.map(|from| Edge { from, why }).into_iter().collect(),
            parts, more,
        }
    }
}

prop_compose! {
    fn drawn()(
        name in word(), state in state(),
        packages in (0_usize..5).prop_flat_map(|of| (0..of).map(|place| work(place, of)).collect::<Vec<_>>()),
    ) -> RunGraph {
        RunGraph { run: RunId::new("r").unwrap(), name, state, packages }
    }
}

/// What stands outside of quotes, which hold no quote but an escaped one.
fn outside(text: &str) -> String {
    let (mut outside, mut quoted, mut escaped) = (String::new(), false, false);
    for letter in text.chars() {
        match (quoted, escaped, letter) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, _, '"') => quoted = !quoted,
            (false, ..) => outside.push(letter),
            (true, false, '\n') => panic!("a line ends inside of quotes: {text}"),
            (true, false, _) => {}
        }
    }
    assert!(!quoted, "quotes are open at the end: {text}");
    outside
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn whatever_is_called_how_each_drawing_is_well_formed_and_shows_every_package(graph in drawn()) {
        let svg = graph.svg();
        let document = roxmltree::Document::parse(&svg).unwrap();
        let texts = document.descendants().filter(|node| node.has_tag_name("text")).count();
        prop_assert!(texts > graph.packages.len());

        let dot = outside(&graph.dot());
        prop_assert_eq!(dot.matches('{').count(), dot.matches('}').count());
        prop_assert_eq!(dot.matches("subgraph").count(), graph.packages.len());
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter.is_ascii_whitespace() || "_{}[]=,;->.".contains(letter);
        prop_assert!(dot.chars().all(plain), "{}", dot);

        let mermaid = outside(&graph.mermaid());
        let plain = |letter: char| letter.is_ascii_alphanumeric() || " \n_[]():.,->|#".contains(letter);
        prop_assert!(mermaid.chars().all(plain), "{}", mermaid);
        let boxes = mermaid.lines().filter(|line| line.trim_start().starts_with("subgraph")).count();
        prop_assert_eq!(mermaid.lines().filter(|line| line.trim() == "end").count(), boxes);
    }
}

#[step]
async fn left(_cx: &Cx, _turn: u32) -> Result<()> {
    Ok(())
}

#[step]
async fn right(_cx: &Cx, _turn: u32) -> Result<()> {
    Ok(())
}

#[agent]
async fn dancer(cx: &Cx) -> Result<()> {
    for turn in 0..PARTS_MAX as u32 {
        left(cx, turn).await?;
        right(cx, turn).await?;
    }
    Ok(())
}

#[orchestrator]
async fn dance(board: &Board) -> Result<()> {
    Ok(board.assign(dancer, ()).await?)
}

#[tokio::test]
async fn of_an_agent_with_very_many_turns_the_first_are_drawn_and_the_rest_are_told_by_number() {
    let kit = Kit::new().await.unwrap();
    kit.run(dance, ()).await.unwrap();
    let graph = graph(&kit, "dance-1");
    assert_eq!(
        (graph.packages[0].parts.len(), graph.packages[0].more),
        (PARTS_MAX, PARTS_MAX)
    );
    assert!(graph.svg().contains(&format!("{PARTS_MAX} more")));
}
