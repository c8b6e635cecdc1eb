//! Which file of a crate a path in its code stands for.

use std::collections::BTreeMap;

use super::source::{Path, Source};

/// The files of one crate by module path, with what each re-exports.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    files: BTreeMap<Vec<String>, (String, Source)>,
}

impl Modules {
    /// Takes up `file`, given below `src`.
    pub(crate) fn insert(&mut self, file: &str, source: Source) {
        self.files.insert(module_of(file), (file.to_owned(), source));
    }

    /// The files, below `src`.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.files.values().map(|(file, _)| file.as_str())
    }

    /// The file whose module declares the module of `file`.
    pub(crate) fn parent(&self, file: &str) -> Option<&str> {
        let module = module_of(file);
        let (_, parent) = module.split_last()?;
        self.files.get(parent).map(|(parent, _)| parent.as_str())
    }

    /// Every import of `file`: the line, and the other file it leads to.
    ///
    /// A module that passes a child's name on without saying it itself composes, it does not build on the child.
    pub(crate) fn imports(&self, file: &str) -> Vec<(usize, &str)> {
        let module = module_of(file);
        let Some((_, source)) = self.files.get(&module) else {
            return Vec::new();
        };
        let target = |path: &Path| {
            let target = self.resolve(&self.absolute(&module, path)?, 0)?;
            let composes = path.only_passed_on && module_of(target).starts_with(&module);
            (target != file && !composes).then_some((path.line, target))
        };
        source.paths.iter().filter_map(target).collect()
    }

    /// The path seen from the crate's root; `None` when it leads out of the crate.
    fn absolute(&self, module: &[String], path: &Path) -> Option<Vec<String>> {
        let (first, rest) = path.segments.split_first()?;
        let mut start = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module[..module.len().checked_sub(1)?].to_vec(),
            child => {
                let child: Vec<String> = module.iter().cloned().chain([child.to_owned()]).collect();
                self.files.contains_key(&child).then_some(child)?
            }
        };
        for segment in rest {
            if segment == "super" {
                start.pop()?;
            } else {
                start.push(segment.clone());
            }
        }
        Some(start)
    }

    /// The file that defines what `path` names, through re-exports.
    fn resolve(&self, path: &[String], depth: usize) -> Option<&str> {
        let known = (0..=path.len())
            .rev()
            .find(|&length| self.files.contains_key(&path[..length]))?;
        let (module, rest) = path.split_at(known);
        let (file, source) = &self.files[module];
        let Some(name) = rest.first().filter(|name| *name != "*" && depth < 16) else {
            return Some(file);
        };
        let uses: Vec<&Path> = source.paths.iter().filter(|path| path.is_use).collect();
        let onward = |via: &Path, skip: usize| {
            let target = self.absolute(module, via).filter(|target| target != path)?;
            Some(
                target
                    .into_iter()
                    .chain(rest[skip..].iter().cloned())
                    .collect::<Vec<_>>(),
            )
        };
        if let Some(via) = uses.iter().find(|path| path.name == *name) {
            return self.resolve(&onward(via, 1)?, depth + 1);
        }
        let globs = uses.iter().filter(|path| path.name == "*");
        let through = globs.filter_map(|glob| {
            let mut via = (*glob).clone();
            via.segments.pop();
            self.resolve(&onward(&via, 0)?, depth + 1)
        });
        let defines = |file: &&str| self.files[&module_of(file)].1.defines(name);
        Some(through.filter(|target| target != file).find(defines).unwrap_or(file))
    }
}

/// `a/b.rs` and `a/b/mod.rs` are `[a, b]`, `lib.rs` is the root.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let segments = path.split('/').map(str::to_owned);
    segments.filter(|segment| path != "lib" || segment != "lib").collect()
}

#[test]
fn a_path_leads_to_the_file_that_defines_the_name() {
    let mut modules = Modules::default();
    for (file, text) in [
        (
            "lib.rs",
            "mod error; pub use error::{Error, Kind as ErrorKind}; pub use store::*; pub use neuron::Neuron;",
        ),
        ("error.rs", "pub struct Error; pub enum Kind {}"),
        ("store/mod.rs", "mod log; use self::log::Log; pub fn open() {}"),
        (
            "compose/mod.rs",
            "mod used; mod passed; pub use used::A; pub use passed::{B, C as D}; pub trait T: A {} fn f() { said::f() }",
        ),
        ("compose/used.rs", "pub trait A {}"),
        ("compose/said.rs", "pub fn f() {}"),
        ("compose/passed.rs", "use super::T; pub struct B; pub struct C;"),
        (
            "store/log.rs",
            "use super::open; use crate::{Error, ErrorKind}; pub trait Log {}",
        ),
        (
            "user.rs",
            "use crate::{store, Log, Neuron, store::Log as L}; fn f() { crate::open(); crate::error::make() }",
        ),
    ] {
        modules.insert(file, Source::new(text));
    }
    let to = |file: &str| {
        modules
            .imports(file)
            .into_iter()
            .map(|(_, to)| to.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(to("store/log.rs"), ["store/mod.rs", "error.rs", "error.rs"]);
    assert_eq!(
        to("user.rs"),
        [
            "store/mod.rs",
            "store/log.rs",
            "store/log.rs",
            "store/mod.rs",
            "error.rs"
        ]
    );
    assert_eq!(to("store/mod.rs"), ["store/log.rs"]);
    assert_eq!(to("compose/mod.rs"), ["compose/used.rs", "compose/said.rs"]);
}
