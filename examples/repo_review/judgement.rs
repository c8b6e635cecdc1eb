//! What the five agents' findings mean together: what to look at first.
//!
//! A list of rules, each a plain sentence with its numbers. There is no score: a number that mixes keys with missing
//! changelogs would only hide both.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::dependencies::Dependencies;
use crate::docs::{Docs, Purpose};
use crate::history::History;
use crate::report::{code, counted, number, per_cent, text};
use crate::risk::Risk;
use crate::structure::Structure;

/// Changes of a directory from which one person alone is worth a word.
const LONELY_CHANGES_MIN: u64 = 50;
/// Authors of a project from which one person alone in a directory is news.
const LONELY_AUTHORS_MIN: u64 = 3;
/// Lines of code from which the share of tests is judged.
const CODE_LINES_MIN: u64 = 500;
/// Test lines in thousandths of the code below which a word is said.
const TESTS_PERMILLE_MIN: u64 = 100;
/// Documented public items in thousandths below which a word is said.
const DOCUMENTED_PERMILLE_MIN: u64 = 500;
/// Public items from which their documentation is judged.
const ITEMS_MIN: u64 = 20;
/// Hot files that are looked for in the other agents' lists.
const HOTTEST: usize = 5;

/// All findings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Findings {
    /// Of the history agent.
    pub(crate) history: History,
    /// Of the structure agent.
    pub(crate) structure: Structure,
    /// Of the risk agent.
    pub(crate) risk: Risk,
    /// Of the dependencies agent.
    pub(crate) dependencies: Dependencies,
    /// Of the docs agent.
    pub(crate) docs: Docs,
}

/// When somebody should look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Urgency {
    /// Before anything else.
    Now,
    /// Before the next larger change.
    Soon,
    /// When there is time.
    Sometime,
}

/// Something to look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Concern {
    /// When.
    pub(crate) urgency: Urgency,
    /// The sections whose tables show the numbers.
    pub(crate) sections: Vec<String>,
    /// What, in one sentence of Markdown.
    pub(crate) sentence: String,
}

/// What to look at first, most urgent first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Judgement {
    /// The concerns.
    pub(crate) concerns: Vec<Concern>,
}

/// Weighs the findings.
pub(crate) fn weigh(findings: &Findings) -> Judgement {
    if findings.structure.listing.files == 0 {
        return Judgement::default();
    }
    let mut concerns = Vec::new();
    let rules = [
        secrets, conflicts, manifests, hotspots, people, pins, tests, documents, marks,
    ];
    for rule in rules {
        rule(findings, &mut |urgency, sections: &[&str], sentence| {
            let sections = sections.iter().map(|one| (*one).to_owned()).collect();
            concerns.push(Concern {
                urgency,
                sections,
                sentence,
            });
        });
    }
    concerns.sort_by_key(|concern| concern.urgency); // stable: the rules stand in the order of their weight
    Judgement { concerns }
}

type Say<'a> = &'a mut dyn FnMut(Urgency, &[&str], String);

fn secrets(findings: &Findings, say: Say<'_>) {
    let secrets = &findings.risk.scan.secrets;
    let Some(first) = secrets.first.first() else { return };
    let at = code(&format!("{}:{}", first.place.path, first.place.line));
    if first.test {
        let lines = counted(secrets.count, "line looks", "lines look");
        say(
            Urgency::Soon,
            &["Risk"],
            format!("{lines} like a secret, all in test files, the first at {at}; check that none is real."),
        );
    } else {
        let lines = counted(secrets.count, "line looks", "lines look");
        let sentence = format!(
            "{lines} like a secret, the first at {at} ({}). If it is real, revoke it: the history keeps it.",
            first.kind
        );
        say(Urgency::Now, &["Risk"], sentence);
    }
}

fn conflicts(findings: &Findings, say: Say<'_>) {
    let conflicts = &findings.risk.scan.conflicts;
    let Some(first) = conflicts.first.first() else { return };
    let at = code(&format!("{}:{}", first.path, first.line));
    let sentence = format!(
        "{} committed unresolved, the first at {at}.",
        counted(conflicts.count, "merge conflict was", "merge conflicts were")
    );
    say(Urgency::Now, &["Risk"], sentence);
}

fn manifests(findings: &Findings, say: Say<'_>) {
    let dependencies = &findings.dependencies;
    for row in &dependencies.shown {
        if let Some(reason) = &row.malformed {
            say(
                Urgency::Soon,
                &["Dependencies"],
                format!(
                    "The manifest {} cannot be read: {}.",
                    code(&row.path),
                    text(reason.trim_end_matches('.'))
                ),
            );
        }
    }
    if dependencies.twice > 0 {
        let names = counted(dependencies.twice, "dependency is", "dependencies are");
        say(
            Urgency::Soon,
            &["Dependencies"],
            format!("{names} declared twice in one manifest, with different requirements."),
        );
    }
}

/// Where change, size and danger meet: what no single agent can see.
fn hotspots(findings: &Findings, say: Say<'_>) {
    let risk = &findings.risk;
    for hot in findings.history.hot.iter().take(HOTTEST) {
        let mut also = Vec::new();
        if let Some(long) = risk.scan.long_files.first.iter().find(|file| file.path == hot.path) {
            also.push(format!("it has {} lines", number(long.lines)));
        }
        if let Some(dense) = risk.dense.iter().find(|dense| dense.file.path == hot.path) {
            let calls = counted(dense.file.uses.panicking(), "call", "calls");
            also.push(format!("{calls} in it can panic"));
        }
        let marks = risk
            .scan
            .marked
            .iter()
            .filter(|mark| mark.place.path == hot.path)
            .count();
        if marks > 0 {
            also.push("notes to come back to it stand in it".to_owned());
        }
        if !also.is_empty() {
            let commits = counted(hot.commits, "commit", "commits");
            let sentence = format!(
                "{} changes often ({commits}), and {}.",
                code(&hot.path),
                also.join(", and ")
            );
            say(Urgency::Soon, &["History", "Risk"], sentence);
        }
    }
}

fn people(findings: &Findings, say: Say<'_>) {
    let owners = &findings.history.ownership;
    if owners.authors < LONELY_AUTHORS_MIN {
        return; // nobody is surprised that one or two people know it all
    }
    if owners.bus_factor == 1
        && let Some(first) = owners.owners.first()
    {
        let sentence = format!(
            "Half of all changes were made by one person, {}, of {} authors.",
            text(&first.name),
            number(owners.authors)
        );
        say(Urgency::Soon, &["History"], sentence);
    }
    let lonely = owners
        .directories
        .iter()
        .filter(|one| one.bus_factor == 1 && one.changes >= LONELY_CHANGES_MIN);
    let shown: Vec<_> = lonely
        .take(3)
        .map(|one| format!("{} ({})", code(&one.path), text(&one.first)))
        .collect();
    if !shown.is_empty() && owners.bus_factor > 1 {
        say(
            Urgency::Soon,
            &["History"],
            format!(
                "Among the most changed directories, one person made half of the changes in {}.",
                shown.join(", ")
            ),
        );
    }
}

fn pins(findings: &Findings, say: Say<'_>) {
    let dependencies = &findings.dependencies;
    if dependencies.unpinned > 0 {
        let names = counted(dependencies.unpinned, "dependency accepts", "dependencies accept");
        say(
            Urgency::Soon,
            &["Dependencies"],
            format!("{names} any version, so a build can change without a commit."),
        );
    }
    if dependencies.unlocked > 0 {
        let manifests = counted(dependencies.unlocked, "manifest has", "manifests have");
        say(
            Urgency::Sometime,
            &["Dependencies"],
            format!("{manifests} no lock file; libraries often leave it out on purpose, programs should not."),
        );
    }
    if dependencies.at_odds > 0 {
        let names = counted(dependencies.at_odds, "dependency is", "dependencies are");
        say(
            Urgency::Sometime,
            &["Dependencies"],
            format!("{names} required differently by different manifests."),
        );
    }
}

fn tests(findings: &Findings, say: Say<'_>) {
    let structure = &findings.structure;
    // Rust keeps tests inside source files; those lines are seen by the risk agent alone.
    let inside = findings.risk.scan.rust_tests.lines > structure.tests;
    if structure.code >= CODE_LINES_MIN && structure.tests_permille < TESTS_PERMILLE_MIN && !inside {
        let share = per_cent(structure.tests_permille);
        say(
            Urgency::Soon,
            &["Structure"],
            format!(
                "Only {share} of the {} lines of code stand in test files.",
                number(structure.code)
            ),
        );
    }
}

fn documents(findings: &Findings, say: Say<'_>) {
    let docs = &findings.docs;
    let there: BTreeSet<_> = docs.customs.iter().map(|custom| custom.purpose).collect();
    for purpose in [Purpose::Readme, Purpose::Licence] {
        if !there.contains(&purpose) {
            say(
                Urgency::Soon,
                &["Docs"],
                format!("There is no {} at the root.", purpose.name()),
            );
        }
    }
    if docs.broken.count > 0 {
        let links = counted(docs.broken.count, "relative link leads", "relative links lead");
        say(Urgency::Sometime, &["Docs"], format!("{links} nowhere."));
    }
    if docs.items >= ITEMS_MIN && docs.documented_permille < DOCUMENTED_PERMILLE_MIN {
        let share = per_cent(docs.documented_permille);
        say(
            Urgency::Sometime,
            &["Docs"],
            format!(
                "Only {share} of the {} public Rust items have a doc comment.",
                number(docs.items)
            ),
        );
    }
}

fn marks(findings: &Findings, say: Say<'_>) {
    let scan = &findings.risk.scan;
    let total: u64 = scan.markers.values().sum();
    if total > 0 {
        let notes = counted(total, "note", "notes");
        say(
            Urgency::Sometime,
            &["Risk"],
            format!("{notes} of unfinished work in the code."),
        );
    }
}
