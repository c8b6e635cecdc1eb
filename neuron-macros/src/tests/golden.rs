//! Golden expansions: what a feature becomes, kept as text beside the tests.

use super::{expansion, pretty, samples::SAMPLES};

/// Compares the expansion of a sample with the stored one.
pub(super) fn check(name: &str) {
    let sample = SAMPLES.iter().find(|sample| sample.name == name).unwrap();
    let expanded = pretty(&expansion(sample.attribute, sample.arguments, sample.item));
    insta::with_settings!({
        prepend_module_to_snapshot => false,
        snapshot_path => "../snapshots",
        omit_expression => true,
        description => format!("#[{}({})]{}", sample.attribute, sample.arguments, sample.item),
    }, {
        insta::assert_snapshot!(name, expanded);
    });
}
