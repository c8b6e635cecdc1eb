//! The dependencies agent's findings: what the manifests declare, and how firmly.

mod cargo;
mod compare;
mod find;
mod npm;
mod plain;
mod python;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::git::{Content, GitError, Progress, Reader};
use crate::name::printable;

pub(crate) use compare::compare;
pub(crate) use find::find;

/// Manifests that are read; the rest is counted.
pub(crate) const MANIFESTS_MAX: usize = 1000;

/// The format of a manifest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Format {
    /// `Cargo.toml`
    Cargo,
    /// `package.json`
    Npm,
    /// `pyproject.toml`
    Pyproject,
    /// `requirements*.txt`
    Requirements,
    /// `Pipfile`
    Pipfile,
    /// `go.mod`
    Go,
    /// `pom.xml`
    Maven,
    /// `Gemfile`
    Bundler,
    /// `composer.json`
    Composer,
}

impl Format {
    /// The lock files that stand for it, beside it or above it. Empty for a format that has none.
    pub(crate) fn locks(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["Cargo.lock"],
            Self::Npm => &[
                "package-lock.json",
                "npm-shrinkwrap.json",
                "yarn.lock",
                "pnpm-lock.yaml",
                "bun.lock",
                "bun.lockb",
            ],
            Self::Pyproject => &["uv.lock", "poetry.lock", "pdm.lock"],
            Self::Pipfile => &["Pipfile.lock"],
            Self::Go => &["go.sum"],
            Self::Bundler => &["Gemfile.lock"],
            Self::Composer => &["composer.lock"],
            Self::Requirements | Self::Maven => &[],
        }
    }
}

/// The manifests of a commit, not yet read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Manifests {
    /// Them, in the order of their paths.
    pub(crate) found: Vec<ManifestFile>,
    /// Manifests past the first [`MANIFESTS_MAX`].
    pub(crate) more: u64,
    /// Manifests within code that was copied in.
    pub(crate) vendored: u64,
}

/// Where a manifest is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ManifestFile {
    /// Its path.
    pub(crate) path: String,
    /// Its blob's id.
    pub(crate) blob: String,
    /// Its format.
    pub(crate) format: Format,
    /// The nearest lock file beside or above it.
    pub(crate) lock: Option<String>,
}

/// What one manifest declares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Manifest {
    /// Where it is.
    pub(crate) file: ManifestFile,
    /// Why it could not be read, if so.
    pub(crate) malformed: Option<String>,
    /// Direct dependencies from outside of the repository, each name once.
    pub(crate) direct: u64,
    /// Those used only to build or test.
    pub(crate) development: u64,
    /// Dependencies on other parts of the same repository, or taken over from a parent manifest.
    pub(crate) local: u64,
    /// Direct dependencies for which any version will do.
    pub(crate) unpinned: Vec<String>,
    /// Names declared more than once with different requirements.
    pub(crate) twice: Vec<String>,
    /// Each direct dependency's requirement, to compare manifests with each other.
    pub(crate) requirements: BTreeMap<String, String>,
}

/// The findings of the dependencies agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Dependencies {
    /// How many manifests were read.
    pub(crate) manifests: u64,
    /// Manifests that were left out at the bound.
    pub(crate) more: u64,
    /// Manifests within copied code, not read.
    pub(crate) vendored: u64,
    /// Different direct dependencies over all manifests, told apart by format and name.
    pub(crate) direct: u64,
    /// The manifests with the most direct dependencies, those with something wrong first.
    pub(crate) shown: Vec<ManifestRow>,
    /// Manifests that could not be read.
    pub(crate) malformed: u64,
    /// Manifests with direct dependencies of a format that has lock files, and no lock file.
    pub(crate) unlocked: u64,
    /// Direct dependencies for which any version will do, over all manifests.
    pub(crate) unpinned: u64,
    /// Names declared twice within a manifest, over all manifests.
    pub(crate) twice: u64,
    /// Dependencies that different manifests require differently.
    pub(crate) at_odds: u64,
    /// The first of them by name.
    pub(crate) first_at_odds: Vec<AtOdds>,
}

/// A manifest as the review shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct ManifestRow {
    /// Its path.
    pub(crate) path: String,
    /// Why it could not be read, if so.
    pub(crate) malformed: Option<String>,
    /// Direct dependencies.
    pub(crate) direct: u64,
    /// Those used only to build or test.
    pub(crate) development: u64,
    /// The lock file that holds for it.
    pub(crate) lock: Option<String>,
    /// Whether its format has lock files.
    pub(crate) lockable: bool,
    /// The first dependencies for which any version will do.
    pub(crate) unpinned: Vec<String>,
    /// The first names declared twice.
    pub(crate) twice: Vec<String>,
}

/// A dependency that manifests require differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct AtOdds {
    /// Its name.
    pub(crate) name: String,
    /// The first different requirements.
    pub(crate) requirements: Vec<String>,
}

/// Reads the manifests that were found.
pub(crate) fn read(reader: &Reader, manifests: &Manifests, progress: Progress<'_>) -> Result<Vec<Manifest>, GitError> {
    if manifests.found.is_empty() {
        return Ok(Vec::new());
    }
    let mut blobs = reader.blobs()?;
    let mut buffer = Vec::new();
    let mut read = Vec::new();
    for file in &manifests.found {
        let declared = match blobs.read(&file.blob, &mut buffer)? {
            Content::Whole => parse(file.format, &buffer),
            Content::Start => Err("it is larger than what is read of a file".to_owned()),
            Content::Missing => Err("this clone does not have its content".to_owned()),
        };
        read.push(manifest(file.clone(), declared));
        progress(u64::try_from(read.len()).unwrap_or(u64::MAX))?;
    }
    blobs.finish()?;
    Ok(read)
}

/// One dependency as a manifest declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declared {
    name: String,
    /// The requirement; `None` if any version will do.
    requirement: Option<String>,
    scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    Normal,
    Development,
    /// Within the repository, or taken over from a parent.
    Local,
}

fn parse(format: Format, bytes: &[u8]) -> Result<Vec<Declared>, String> {
    let text =
        std::str::from_utf8(bytes).map_err(|error| format!("it is not UTF-8 from byte {}", error.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    match format {
        Format::Cargo => cargo::parse(text),
        Format::Npm => npm::package(text),
        Format::Composer => npm::composer(text),
        Format::Pyproject => python::pyproject(text),
        Format::Pipfile => python::pipfile(text),
        Format::Requirements => Ok(python::requirements(text)),
        Format::Go => Ok(plain::go(text)),
        Format::Maven => plain::maven(text),
        Format::Bundler => Ok(plain::gemfile(text)),
    }
}

fn manifest(file: ManifestFile, declared: Result<Vec<Declared>, String>) -> Manifest {
    let (declared, malformed) = match declared {
        Ok(declared) => (declared, None),
        // A parser quotes the input: made printable like every name.
        Err(reason) => (Vec::new(), Some(printable(reason.as_bytes()))),
    };
    let local = declared.iter().filter(|one| one.scope == Scope::Local).count();
    let mut by_name: BTreeMap<String, Vec<&Declared>> = BTreeMap::new();
    for one in declared.iter().filter(|one| one.scope != Scope::Local) {
        by_name.entry(printable(one.name.as_bytes())).or_default().push(one);
    }
    let names = |which: fn(&[&Declared]) -> bool| -> Vec<String> {
        by_name
            .iter()
            .filter(|(_, all)| which(all))
            .map(|(name, _)| name.clone())
            .collect()
    };
    let development = by_name
        .values()
        .filter(|all| all.iter().all(|one| one.scope == Scope::Development))
        .count();
    let requirements = by_name.iter().map(|(name, all)| (name.clone(), requirement(all)));
    Manifest {
        malformed,
        direct: long(by_name.len()),
        development: long(development),
        local: long(local),
        unpinned: names(|all| all.iter().any(|one| one.requirement.is_none())),
        twice: names(|all| all.iter().any(|one| one.requirement != all[0].requirement)),
        requirements: requirements.collect(),
        file,
    }
}

fn requirement(all: &[&Declared]) -> String {
    let requirement = all
        .first()
        .and_then(|one| one.requirement.as_deref())
        .unwrap_or("any version");
    printable(requirement.as_bytes())
}

fn long(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
