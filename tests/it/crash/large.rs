use neuron::{limits, store::Select};

use super::Victim;

#[test]
fn values_of_any_size_are_the_same_live_after_a_crash_and_from_the_log() {
    let mut whole = Victim::new("porter");
    let live = whole.run(&[]).unwrap();
    assert_eq!(whole.run(&[]).as_deref(), Some(&*live), "from the log");
    assert_eq!(whole.done("lift"), 2);

    let mut victim = Victim::new("porter");
    victim.dies_in("rest");
    assert_eq!(victim.run(&[]).as_deref(), Some(&*live), "after a crash");
    assert_eq!(victim.done("lift"), 2, "both had completed");

    whole.unset("FATAL");
    for store in [&whole, &victim] {
        let ledger = store.ledger().unwrap();
        let envelopes = ledger.read(Select::All).envelopes().map(Result::unwrap);
        let mut beside = Vec::new();
        for envelope in envelopes {
            let payload = envelope.body.payload.as_ref().map_or(0, neuron::Json::len);
            assert!(
                payload <= limits::INLINE_VALUE_BYTES_MAX,
                "{} holds {payload} bytes",
                envelope.body.kind
            );
            let artifacts = envelope.body.artifacts.iter();
            for artifact in artifacts.filter(|artifact| artifact.kind.as_deref() == Some("payload")) {
                let bytes = ledger.blob(&artifact.hash.unwrap()).unwrap().bytes();
                beside.push((
                    envelope.body.kind.to_string(),
                    artifact.name.clone(),
                    bytes > limits::RECORD_BYTES_MAX as u64,
                ));
            }
        }
        for (kind, name, over_a_record) in [
            ("orchestration.created", "args", true),
            ("package.assigned", "args", true),
            ("step.started", "args", true),
            ("step.completed", "output", false),
            ("package.completed", "output", false),
        ] {
            let known = (kind.to_owned(), name.to_owned(), over_a_record);
            assert!(beside.contains(&known), "{kind}: {beside:?}");
        }
    }
}
