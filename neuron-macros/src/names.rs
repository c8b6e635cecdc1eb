//! The path by which an expansion reaches the runtime, found in the manifest of the crate that is being compiled.

use proc_macro_crate::{Error, FoundCrate, crate_name};
use proc_macro2::{Ident, Span};
use syn::{Path, parse_quote};

/// What the manifest says about one package.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// It is there, under this name (its own, or the one it was renamed to).
    Named(String),
    /// It is the very package that is being compiled.
    Itself,
    /// The manifest was read, and the package is not in it.
    Absent,
    /// There is no manifest to read: the build is not one of cargo's.
    Unknown,
}

/// The runtime as the crate that is being compiled sees it.
///
/// # Errors
///
/// Says what to do if the manifest names neither `neuron` nor `orchestrator`.
pub(crate) fn runtime() -> Result<Path, &'static str> {
    choose(look_up("neuron"), || look_up("orchestrator"))
}

/// `neuron` if the manifest names it, else what `orchestrator` re-exports.
fn choose(neuron: Entry, orchestrator: impl FnOnce() -> Entry) -> Result<Path, &'static str> {
    match neuron {
        Entry::Named(name) => return Ok(absolute(&name)),
        Entry::Itself | Entry::Unknown => return Ok(absolute("neuron")),
        Entry::Absent => {}
    }
    match orchestrator() {
        Entry::Named(name) => {
            let name = Ident::new(&name, Span::call_site());
            Ok(parse_quote!(::#name::neuron))
        }
        Entry::Itself | Entry::Unknown => Ok(parse_quote!(::orchestrator::neuron)),
        Entry::Absent => Err(
            "this crate depends on neither `orchestrator` nor `neuron`; add one of them to its \
             Cargo.toml, or say where the runtime is with `crate = path::to::neuron`",
        ),
    }
}

fn absolute(name: &str) -> Path {
    let name = Ident::new(name, Span::call_site());
    parse_quote!(::#name)
}

fn look_up(package: &str) -> Entry {
    match crate_name(package) {
        Ok(FoundCrate::Name(name)) => Entry::Named(name),
        Ok(FoundCrate::Itself) => Entry::Itself,
        Err(Error::CrateNotFound { .. }) => Entry::Absent,
        Err(_) => Entry::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use quote::ToTokens;

    use super::*;

    fn chosen(neuron: Entry, orchestrator: Entry) -> String {
        match choose(neuron, || orchestrator) {
            Ok(path) => path.to_token_stream().to_string().replace(' ', ""),
            Err(message) => message.to_owned(),
        }
    }

    #[test]
    fn a_dependency_on_neuron_is_used_under_the_name_the_manifest_gives_it() {
        assert_eq!(chosen(Entry::Named("neuron".into()), Entry::Absent), "::neuron");
        assert_eq!(
            chosen(Entry::Named("brain".into()), Entry::Named("orchestrator".into())),
            "::brain"
        );
    }

    #[test]
    fn a_dependency_on_orchestrator_alone_is_enough_renamed_or_not() {
        assert_eq!(
            chosen(Entry::Absent, Entry::Named("orchestrator".into())),
            "::orchestrator::neuron"
        );
        assert_eq!(
            chosen(Entry::Absent, Entry::Named("conductor".into())),
            "::conductor::neuron"
        );
    }

    #[test]
    fn inside_the_runtime_itself_and_outside_of_cargo_the_name_is_its_own() {
        assert_eq!(chosen(Entry::Itself, Entry::Absent), "::neuron");
        assert_eq!(chosen(Entry::Unknown, Entry::Unknown), "::neuron");
        assert_eq!(chosen(Entry::Absent, Entry::Itself), "::orchestrator::neuron");
    }

    #[test]
    fn without_either_dependency_the_message_says_what_to_add() {
        assert_eq!(
            chosen(Entry::Absent, Entry::Absent),
            "this crate depends on neither `orchestrator` nor `neuron`; add one of them to its Cargo.toml, or say \
             where the runtime is with `crate = path::to::neuron`"
        );
    }

    #[test]
    fn this_very_crate_depends_on_no_runtime() {
        assert!(runtime().is_err());
    }
}
