//! Golden expansions: what a feature becomes, kept as text beside the code.

use super::{expansion, pretty, samples::SAMPLES};

#[test]
fn every_feature_expands_as_stored() {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("../snapshots");
    settings.set_omit_expression(true);
    for sample in SAMPLES {
        let expanded = pretty(&expansion(sample.attribute, sample.arguments, sample.item));
        settings.set_description(format!("#[{}({})]{}", sample.attribute, sample.arguments, sample.item));
        settings.bind(|| insta::assert_snapshot!(sample.name, expanded));
    }
}
