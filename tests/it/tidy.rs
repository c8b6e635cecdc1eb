//! The tree is held to its own rules: the code map, the layers, the sizes, the words.
//!
//! Each rule is a function from a tree to findings, so that the same rules run on this repository and on `planted`
//! violations. A finding says what to do.

mod imports;
mod map;
mod planted;
mod source;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use neuron::graph::Graph;

use self::{imports::Modules, source::Source};

/// Lines of one file without its unit tests. It may be lowered, never raised.
const LINES_MAX: usize = 400;
/// Each crate with the siblings it may depend on.
const CRATES: [(&str, &[&str]); 4] = [
    ("neuron-macros", &[]),
    ("neuron", &["neuron-macros"]),
    ("orchestrator", &["neuron", "neuron-macros"]),
    ("telos-adapter", &["neuron", "neuron-macros"]),
];
/// Files that compose a crate and may therefore import any of its rows.
const COMPOSING: [&str; 3] = ["lib.rs", "prelude.rs", "private.rs"];
/// Macros that leave something undone or were only there while looking for a fault.
const MACROS: [&str; 3] = ["todo", "unimplemented", "dbg"];
/// Module names that say nothing about what is inside.
const NAMES: [&str; 8] = [
    "utils", "util", "manager", "managers", "helpers", "helper", "common", "misc",
];

/// Where a file stands in its crate's table, and in which layer.
type Order<'a> = BTreeMap<&'a str, (usize, &'a str)>;

/// All text files of a tree, by path from its root.
struct Tree(BTreeMap<String, String>);

impl Tree {
    fn read(root: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec![PathBuf::new()];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(root.join(&folder))
                .expect("a readable folder")
                .map(Result::unwrap)
            {
                let path = folder.join(entry.file_name());
                let name = path.to_string_lossy().into_owned();
                if [".git", "target"].contains(&name.as_str()) {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    open.push(path);
                } else if let Ok(text) = fs::read_to_string(entry.path()) {
                    files.insert(name, text);
                }
            }
        }
        files.remove("review.md"); // what the main job writes when it is run from here
        Self(files)
    }

    fn rust(&self) -> impl Iterator<Item = (&str, Source)> {
        let rust = self
            .0
            .iter()
            .filter(|(path, _)| Path::new(path).extension().is_some_and(|it| it == "rs"));
        rust.map(|(path, text)| (path.as_str(), Source::new(text)))
    }

    fn findings(&self) -> Vec<String> {
        let mut findings = self.layers();
        findings.extend(self.siblings());
        findings.extend(self.rust().flat_map(|(path, source)| sizes_and_words(path, &source)));
        findings.extend(self.machine_paths());
        findings
    }

    /// The code map against the tree, and each import against the map.
    fn layers(&self) -> Vec<String> {
        let mut findings = Vec::new();
        let crates = CRATES.map(|(name, _)| name);
        let text = self.0.get(map::FILE).map_or("", String::as_str);
        let rows = map::read(text, &crates, &mut findings);
        for crate_name in crates {
            let prefix = format!("{crate_name}/src/");
            let mut modules = Modules::default();
            for (path, source) in self.rust() {
                if let Some(file) = path.strip_prefix(&prefix).filter(|file| !is_test(file)) {
                    modules.insert(file, source);
                }
            }
            let order: Order<'_> = (0..)
                .zip(rows.iter().filter(|row| row.crate_name == crate_name))
                .map(|(nth, row)| (row.file.as_str(), (nth, row.layer.as_str())))
                .collect();
            let (built, circles) = build_order(&modules);
            findings.extend(unmapped(crate_name, &built, &order));
            findings.extend(upward(crate_name, &modules, &order, &circles));
        }
        findings
    }

    /// Manifests name only the siblings that their crate may depend on.
    fn siblings(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for (crate_name, allowed) in CRATES {
            let path = format!("{crate_name}/Cargo.toml");
            let mut section = "";
            for line in self.0.get(&path).map_or("", String::as_str).lines() {
                if line.starts_with('[') {
                    section = line.trim_matches(['[', ']']);
                }
                let named = |sibling: &str| {
                    let key = line.split(['=', '.', ' ']).next() == Some(sibling);
                    key || section.ends_with(&format!("dependencies.{sibling}"))
                        || line.contains(&format!("\"{sibling}\""))
                };
                let within = section.contains("dependencies");
                let strangers = CRATES
                    .map(|(name, _)| name)
                    .into_iter()
                    .filter(|other| *other != crate_name);
                let apart = |other: &&str| match *other {
                    "orchestrator" | "telos-adapter" => !allowed.contains(other),
                    _ => !allowed.contains(other) && !section.contains("dev-dependencies"),
                };
                let named: Vec<&str> = strangers.filter(apart).filter(|other| within && named(other)).collect();
                findings.extend(
                    named
                        .iter()
                        .map(|other| format!("{path}: {crate_name} must not depend on {other}")),
                );
            }
        }
        findings
    }

    /// No file speaks of the machine it was written on. The needles are in pieces so that this file holds none.
    fn machine_paths(&self) -> Vec<String> {
        let needles = [["/wo", "rk/"], ["/ro", "ot/"], ["/ho", "me/"], ["/Us", "ers/"]].map(|it| it.concat());
        let mut findings = Vec::new();
        for (path, text) in &self.0 {
            for (line, text) in (1..).zip(text.lines()) {
                for needle in &needles {
                    let starts =
                        |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || "._-*}>".contains(c));
                    if text.match_indices(needle.as_str()).any(|(at, _)| starts(at)) {
                        findings.push(format!(
                            "{path}:{line}: `{needle}` is a path of one machine; leave it out"
                        ));
                    }
                }
            }
        }
        findings
    }
}

/// The files in an order in which each stands below what it imports, and the circles that have no such order.
fn build_order(modules: &Modules) -> (Graph<&str>, BTreeSet<Vec<&str>>) {
    let mut built = Graph::new();
    let mut circles = BTreeSet::new();
    let users = modules.names().filter(|file| !COMPOSING.contains(file));
    for file in users {
        let imports = modules.imports(file).into_iter().map(|(_, target)| target);
        for target in imports.filter(|target| !COMPOSING.contains(target)) {
            if let Err(circle) = built.add_edge(target, file) {
                circles.insert(circle.nodes().iter().rev().copied().collect());
            }
        }
    }
    for file in modules.names() {
        built.add_node(file);
        if let Some(parent) = modules.parent(file) {
            let _ = built.add_edge(file, parent); // a module stands below its children, unless they build on it
        }
    }
    (built, circles)
}

/// Files without a row, and rows without a file.
fn unmapped(crate_name: &str, built: &Graph<&str>, order: &Order<'_>) -> Vec<String> {
    let missing: Vec<&str> = built
        .order()
        .copied()
        .filter(|file| !order.contains_key(file))
        .collect();
    let gone = order.keys().filter(|file| !built.contains(file));
    let gone = gone.map(|file| format!("`{file}` of {crate_name} is mapped but not there; remove its row"));
    let rows = (!missing.is_empty()).then(|| format!("rows are missing; add\n{}", map::draft(crate_name, &missing)));
    gone.chain(rows)
        .map(|fault| format!("{}: {fault}", map::FILE))
        .collect()
}

/// Imports of rows below. Those inside a circle of one layer are told as a circle, since no order of rows would help.
fn upward(crate_name: &str, modules: &Modules, order: &Order<'_>, circles: &BTreeSet<Vec<&str>>) -> Vec<String> {
    let mut findings = Vec::new();
    for (file, (place, layer)) in order.iter().filter(|(file, _)| !COMPOSING.contains(file)) {
        let in_circle = |target: &str| circles.iter().any(|it| it.contains(file) && it.contains(&target));
        let imports: BTreeMap<&str, usize> = modules.imports(file).into_iter().map(|(line, to)| (to, line)).collect();
        for (target, line) in imports.into_iter().filter(|(to, _)| *to != "lib.rs") {
            let below = order.get(target).filter(|(other, _)| other > place);
            let Some((_, below)) = below.filter(|(_, below)| below != layer || !in_circle(target)) else {
                continue;
            };
            findings.push(format!(
                "{crate_name}/src/{file}:{line}: layer {layer} imports {target} of layer {below}, whose row is below; \
                 move what both need above them, or reorder the rows"
            ));
        }
    }
    let mut circles: Vec<_> = circles.iter().collect();
    circles.sort_by_key(|circle| circle.len()); // the small ones first: often the large ones open with them
    findings.extend(circles.into_iter().map(|circle| {
        let way = [circle.as_slice(), &circle[..1]].concat().join(" → ");
        format!("{crate_name}/src: files import in a circle: {way}; move what several need into a file of its own")
    }));
    findings
}

fn sizes_and_words(path: &str, source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    if source.lines > LINES_MAX && !is_test(path) {
        let lines = source.lines;
        findings.push(format!(
            "{path}: {lines} lines without tests, at most {LINES_MAX}; split it by what it is about"
        ));
    }
    for name in path
        .trim_end_matches(".rs")
        .split('/')
        .filter(|name| NAMES.contains(name))
    {
        findings.push(format!(
            "{path}: `{name}` says nothing about what is inside; name it after its noun"
        ));
    }
    for (line, text) in (1..).zip(source.code.lines()) {
        for name in MACROS.into_iter().filter(|name| has_word(text, &format!("{name}!"))) {
            findings.push(format!("{path}:{line}: `{name}!` is not for code that stands"));
        }
        for name in NAMES.into_iter().filter(|name| has_word(text, &format!("mod {name}"))) {
            findings.push(format!("{path}:{line}: `mod {name}` says nothing about what is inside"));
        }
    }
    for (line, name) in source
        .tests()
        .into_iter()
        .filter(|(_, name)| name.split('_').count() < 3)
    {
        findings.push(format!(
            "{path}:{line}: test `{name}` is no sentence; say what holds, in three words or more"
        ));
    }
    findings
}

/// Whether a file holds unit tests alone: they may import anything and have no row.
fn is_test(path: &str) -> bool {
    path.split('/').any(|name| name == "tests" || name == "tests.rs")
}

fn has_word(text: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(part) && (word.ends_with('!') || !text[at + word.len()..].starts_with(part))
    })
}

#[test]
fn the_tree_keeps_its_own_rules() {
    let findings = Tree::read(Path::new(env!("CARGO_MANIFEST_DIR"))).findings();
    assert!(
        findings.is_empty(),
        "{} findings:\n{}\n",
        findings.len(),
        findings.join("\n")
    );
}
