//! The agents: who reads what, in which order, with which claims.
//!
//! Each of the five is a plan, so its steps are known and cleared before the first one runs. Two of them and the
//! dependencies agent read file contents through a `git cat-file` pipe that each owns while it reads: clearance sees
//! it and puts them one after the other, while the history and the tree are read beside them.

mod reading;

use neuron::{ArtifactRef, Cx, Node, Plan, Result, agent, plan, step};

use crate::dependencies::{self, Dependencies, Manifest, Manifests};
use crate::docs::{self, Broken, Docs, Reading};
use crate::git::Subject;
use crate::history::{self, History, HotFile, Ownership, Walk};
use crate::judgement::{self, Findings, Judgement};
use crate::report;
use crate::risk::{self, Found, Risk, Scan};
use crate::structure::{self, LineCounts, Listing, Structure};

use reading::read;

/// How much changed, where, and by how many people.
#[plan]
pub(crate) fn history(plan: &Plan, subject: Node<Subject>) -> Node<History> {
    let walk = plan.step(walk_history, subject);
    let hot = plan.step(find_hot_files, (subject, walk));
    let ownership = plan.step(measure_ownership, walk);
    plan.step(summarise_history, (walk, ownership, hot))
}

/// What there is, how large, in which languages.
#[plan]
pub(crate) fn structure(plan: &Plan, subject: Node<Subject>) -> Node<Structure> {
    let listing = plan.step(list_tree, subject);
    let lines = plan.step(count_lines, subject);
    plan.step(summarise_structure, (listing, lines))
}

/// What is likely to hurt.
#[plan]
pub(crate) fn risk(plan: &Plan, subject: Node<Subject>) -> Node<Risk> {
    plan.step(rank_risks, plan.step(scan_files, subject))
}

/// What the manifests declare, and how firmly.
#[plan]
pub(crate) fn dependencies(plan: &Plan, subject: Node<Subject>) -> Node<Dependencies> {
    let manifests = plan.step(find_manifests, subject);
    let read = plan.step(read_manifests, manifests);
    plan.step(compare_manifests, (manifests, read))
}

/// What a newcomer would read.
#[plan]
pub(crate) fn docs(plan: &Plan, subject: Node<Subject>) -> Node<Docs> {
    let reading = plan.step(read_documents, subject);
    let broken = plan.step(check_links, (subject, reading));
    plan.step(summarise_docs, (reading, broken))
}

/// What the findings mean together, and the review.
#[plan]
pub(crate) fn outline(
    plan: &Plan,
    subject: Node<Subject>,
    history: Node<History>,
    structure: Node<Structure>,
    risk: Node<Risk>,
    dependencies: Node<Dependencies>,
    docs: Node<Docs>,
) -> Node<ArtifactRef> {
    let findings = plan.step(gather_findings, (history, structure, risk, dependencies, docs));
    let judgement = plan.step(weigh_findings, findings);
    plan.step(write_review, (subject, findings, judgement))
}

/// Weighs the findings of the five and writes the review.
#[agent(plan = outline)]
pub(crate) async fn synthesis(
    cx: &Cx,
    /// What was reviewed.
    subject: Subject,
    /// What the history agent found.
    history: History,
    /// What the structure agent found.
    structure: Structure,
    /// What the risk agent found.
    risk: Risk,
    /// What the dependencies agent found.
    dependencies: Dependencies,
    /// What the docs agent found.
    docs: Docs,
) -> Result<ArtifactRef> {
    let findings = gather_findings(cx, history, structure, risk, dependencies, docs).await?;
    let judgement = weigh_findings(cx, findings.clone()).await?;
    Ok(write_review(cx, subject, findings, judgement).await?)
}

/// Reads the log of the commit.
#[step(uses("git"))]
async fn walk_history(cx: &Cx, subject: Subject) -> Result<Walk> {
    read(cx, "commits", move |reader, progress| {
        history::walk(reader, &subject, progress)
    })
    .await
}

/// Finds the hot files that the commit still has.
#[step(uses("git"))]
async fn find_hot_files(cx: &Cx, subject: Subject, walk: Walk) -> Result<Vec<HotFile>> {
    read(cx, "files", move |reader, progress| {
        history::present(reader, &subject, walk.candidates, progress)
    })
    .await
}

/// Finds the bus factors.
#[step]
async fn measure_ownership(_cx: &Cx, walk: Walk) -> Result<Ownership> {
    Ok(history::measure(&walk))
}

/// Puts the history's parts together.
#[step]
async fn summarise_history(_cx: &Cx, walk: Walk, ownership: Ownership, hot: Vec<HotFile>) -> Result<History> {
    Ok(history::summarise(&walk, ownership, hot))
}

/// Reads the tree of the commit.
#[step(uses("git"))]
async fn list_tree(cx: &Cx, subject: Subject) -> Result<Listing> {
    read(cx, "files", move |reader, progress| {
        structure::list(reader, &subject, progress)
    })
    .await
}

/// Reads how many lines each file has.
#[step(uses("git"))]
async fn count_lines(cx: &Cx, subject: Subject) -> Result<LineCounts> {
    read(cx, "files", move |reader, progress| {
        structure::count_lines(reader, &subject, progress)
    })
    .await
}

/// Puts the structure's parts together.
#[step]
async fn summarise_structure(_cx: &Cx, listing: Listing, lines: LineCounts) -> Result<Structure> {
    Ok(structure::summarise(listing, &lines))
}

/// Reads every file and looks for what is likely to hurt.
#[step(uses("git"), owns("cat-file"))]
async fn scan_files(cx: &Cx, subject: Subject) -> Result<Scan> {
    read(cx, "files", move |reader, progress| {
        risk::scan(reader, &subject, progress)
    })
    .await
}

/// Ranks what was found.
#[step]
async fn rank_risks(_cx: &Cx, scan: Scan) -> Result<Risk> {
    Ok(risk::rank(scan))
}

/// Finds the manifests of the commit.
#[step(uses("git"))]
async fn find_manifests(cx: &Cx, subject: Subject) -> Result<Manifests> {
    read(cx, "files", move |reader, progress| {
        dependencies::find(reader, &subject, progress)
    })
    .await
}

/// Reads the manifests. One that is malformed is a finding.
#[step(uses("git"), owns("cat-file"))]
async fn read_manifests(cx: &Cx, manifests: Manifests) -> Result<Vec<Manifest>> {
    read(cx, "manifests", move |reader, progress| {
        dependencies::read(reader, &manifests, progress)
    })
    .await
}

/// Lays the manifests side by side.
#[step]
async fn compare_manifests(_cx: &Cx, manifests: Manifests, read: Vec<Manifest>) -> Result<Dependencies> {
    Ok(dependencies::compare(&manifests, &read))
}

/// Reads the Markdown and Rust files and the customary ones.
#[step(uses("git"), owns("cat-file"))]
async fn read_documents(cx: &Cx, subject: Subject) -> Result<Reading> {
    read(cx, "files", move |reader, progress| {
        docs::read(reader, &subject, progress)
    })
    .await
}

/// Looks the relative links up.
#[step(uses("git"))]
async fn check_links(cx: &Cx, subject: Subject, reading: Reading) -> Result<Found<Broken>> {
    read(cx, "links", move |reader, progress| {
        docs::check(reader, &subject, &reading.links, progress)
    })
    .await
}

/// Puts the parts of the docs together.
#[step]
async fn summarise_docs(_cx: &Cx, reading: Reading, broken: Found<Broken>) -> Result<Docs> {
    Ok(docs::summarise(reading, broken))
}

/// Puts the findings of the five together.
#[step]
async fn gather_findings(
    _cx: &Cx,
    history: History,
    structure: Structure,
    risk: Risk,
    dependencies: Dependencies,
    docs: Docs,
) -> Result<Findings> {
    Ok(Findings {
        history,
        structure,
        risk,
        dependencies,
        docs,
    })
}

/// Says what to look at first.
#[step]
async fn weigh_findings(_cx: &Cx, findings: Findings) -> Result<Judgement> {
    Ok(judgement::weigh(&findings))
}

/// Writes the review and keeps it as an artifact.
#[step]
async fn write_review(cx: &Cx, subject: Subject, findings: Findings, judgement: Judgement) -> Result<ArtifactRef> {
    let review = report::review(&subject, &findings, &judgement);
    Ok(cx.artifact("review.md", "report", review).await?)
}
