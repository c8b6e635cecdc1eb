//! L14: payloads hold entities, edges are envelopes, collections are folds.

use std::collections::{BTreeMap, HashMap};

use neuron::{
    Append, ArtifactRef, Author, Digest, Draft, EnvelopeRef, Error, ErrorKind, ItemRef, Json, RunRef, SchemaUse,
};
use proptest::{collection::vec, prop_assert_eq, proptest, sample::select};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::{BOTH, Backend, Home, cases, note, rows, topic};

#[derive(Serialize, JsonSchema)]
struct Listed {
    sources: Vec<ArtifactRef>,
}

#[derive(Serialize, JsonSchema)]
struct Mapped {
    by_name: BTreeMap<String, EnvelopeRef>,
}

#[derive(Serialize, JsonSchema)]
struct Keyed {
    of_runs: HashMap<RunRef, u32>,
}

#[derive(Serialize, JsonSchema)]
struct Deep {
    inner: Option<Box<Listed>>,
}

#[derive(Serialize, JsonSchema)]
enum Either {
    One(ItemRef),
    Many { items: Vec<Option<ItemRef>> },
}

#[derive(Serialize, JsonSchema)]
struct Paired {
    pair: (RunRef, RunRef),
}

#[derive(Serialize, JsonSchema)]
struct Single {
    report: ArtifactRef,
    about: Option<EnvelopeRef>,
    /// Steps of a plan name each other within one payload: these are no references.
    rows: Vec<String>,
}

fn draft() -> Draft {
    Draft::new(topic(0), Author::cli(), "said").unwrap()
}

fn refused(outcome: Result<Draft, Error>, path: &str) {
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Schema);
    let told = error.to_string();
    for part in [
        path,
        "append one envelope for each edge and fold them",
        "cannot be a payload",
    ] {
        assert!(told.contains(part), "`{part}` is not in: {told}");
    }
}

#[test]
fn a_type_with_a_list_or_map_of_references_at_any_depth_cannot_be_a_payload() {
    let report = ArtifactRef(Digest::content(b"x"));
    let listed = || Listed { sources: vec![report] };
    refused(draft().payload(&listed()), "$.sources[*]");
    refused(
        draft().payload(&Mapped {
            by_name: BTreeMap::new(),
        }),
        "$.by_name.*",
    );
    refused(
        draft().payload(&Keyed {
            of_runs: HashMap::new(),
        }),
        "$.of_runs.*",
    );
    refused(
        draft().payload(&Deep {
            inner: Some(Box::new(listed())),
        }),
        "$.inner.sources[*]",
    );
    refused(draft().payload(&Either::Many { items: Vec::new() }), "items[*]");
    refused(draft().payload(&Either::One(ItemRef("i".into()))), "items[*]");
    let pair = (RunRef("a".into()), RunRef("b".into()));
    refused(draft().payload(&Paired { pair }), "$.pair[*]");
    refused(draft().payload(&vec![report]), "$[*]");
}

#[test]
fn single_references_and_local_names_are_a_payload() {
    for backend in BOTH {
        let home = Home::new(backend);
        let about = home.ledger.append_blocking(Append::of([note("x")])).unwrap().remove(0);
        let single = Single {
            report: ArtifactRef(Digest::content(b"x")),
            about: Some(EnvelopeRef {
                topic: about.topic,
                seq: about.seq,
                id: about.id,
            }),
            rows: vec!["fetch".into(), "summarise".into()],
        };
        home.ledger
            .append_blocking(Append::of([draft().payload(&single).unwrap()]))
            .unwrap();
    }
}

/// One more layer around a schema: how it is named, whether it makes a collection, and the schema.
fn wrapped(layer: &str, inner: &Value) -> Value {
    match layer {
        "property" => json!({"type": "object", "properties": {"p": inner}}),
        "any" => json!({"anyOf": [{"type": "null"}, inner]}),
        "all" => json!({"allOf": [inner]}),
        "if" => json!({"if": {"type": "string"}, "then": inner}),
        "def" => json!({"$ref": "#/$defs/d", "$defs": {"d": inner}}),
        "array" => json!({"type": "array", "items": inner}),
        "tuple" => json!({"type": "array", "prefixItems": [inner]}),
        "contains" => json!({"type": "array", "contains": inner}),
        "map" => json!({"type": "object", "additionalProperties": inner}),
        "pattern" => json!({"type": "object", "patternProperties": {"^x": inner}}),
        other => panic!("no layer `{other}`"),
    }
}

const PLAIN: [&str; 5] = ["property", "any", "all", "if", "def"];
const COLLECTIONS: [&str; 5] = ["array", "tuple", "contains", "map", "pattern"];

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn a_definition_is_refused_at_registration_exactly_if_a_collection_stands_around_a_reference(
        layers in vec(select([PLAIN, COLLECTIONS].concat()), 0..5),
    ) {
        // A `$ref` into `$defs` is read from the root, so only the outermost layer may be one.
        let layers: Vec<&str> = layers.iter().enumerate().map(|(at, layer)| {
            if *layer == "def" && at + 1 < layers.len() { "all" } else { layer }
        }).collect();
        let reference = json!({"type": "string", "x-neuron-ref": "artifact"});
        let schema = layers.iter().fold(reference, |inner, layer| wrapped(layer, &inner));
        let collects = layers.iter().any(|layer| COLLECTIONS.contains(layer));
        let home = Home::new(Backend::Memory);
        let before = (rows(&home.ledger), home.ledger.store().schemas().unwrap());
        let usage = SchemaUse::inline(Json::of(&schema).unwrap()).unwrap();
        // No value: only the definition is judged here.
        let bare = Draft::new(topic(0), Author::cli(), "said").unwrap().json(Json::null(), Some(usage));
        let outcome = home.ledger.append_blocking(Append::of([bare]));
        match outcome {
            Err(error) if error.message().contains("append one envelope for each edge") || error.to_string().contains("append one envelope for each edge") => {
                prop_assert_eq!(error.kind(), ErrorKind::Schema);
                prop_assert_eq!(collects, true, "{}", schema);
            }
            // Allowed, though `null` may break it.
            Err(error) => {
                prop_assert_eq!((error.kind(), collects), (ErrorKind::Schema, false), "{} {}", schema, error);
            }
            Ok(_) => {
                prop_assert_eq!(collects, false, "{}", schema);
                return Ok(());
            }
        }
        prop_assert_eq!((rows(&home.ledger), home.ledger.store().schemas().unwrap()), before);
    }
}
