//! Schemas, through their public surface.
#![allow(clippy::unwrap_used, dead_code, reason = "a test may; its types are only described")]

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use neuron::{
    ArtifactRef, BodyContract, Digest, EnvelopeRef, Error, ErrorKind, ItemRef, Json, RunRef, SCHEMA_CONTEXT, Schema,
    SchemaRef, SchemaUse, limits,
    schema::{self, Bundle, Upcasters, Validator, check_references},
};
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

fn schema(definition: &Value) -> Result<Schema, Error> {
    Schema::new(Json::of(definition).unwrap())
}

#[allow(clippy::unnecessary_wraps, reason = "a registry may fail")]
fn none(_: &SchemaRef) -> Result<Option<Arc<Schema>>, Error> {
    Ok(None)
}

fn reference<T: JsonSchema>() -> SchemaRef {
    Bundle::of::<T>().unwrap().root().reference()
}

fn bare<T: JsonSchema>() -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(object) => {
                object.retain(|key, _| key != "title" && key != "description");
                object.values_mut().for_each(strip);
            }
            Value::Array(list) => list.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut value = Bundle::of::<T>().unwrap().root().definition().to_value();
    strip(&mut value);
    value
}

mod told {
    //! The same types twice: told about, and not.
    pub(super) mod once {
        #[derive(schemars::JsonSchema)]
        pub(crate) struct Page {
            pub(crate) url: String,
            pub(crate) state: State,
            pub(crate) body: Option<Body>,
        }
        #[derive(schemars::JsonSchema)]
        pub(crate) enum State {
            New,
            Seen,
            Gone { why: String },
            Absent,
        }
        #[derive(schemars::JsonSchema)]
        pub(crate) enum Body {
            Text,
            Html,
        }
    }
    pub(super) mod twice {
        /// # A page
        ///
        /// Of the web.
        #[derive(schemars::JsonSchema)]
        pub(crate) struct Page {
            /// Where it is.
            #[schemars(example = "https://example.org")]
            pub(crate) url: String,
            /// What became of it.
            pub(crate) state: State,
            /// What it says.
            pub(crate) body: Option<Body>,
        }
        /// What can become of a page.
        #[derive(schemars::JsonSchema)]
        pub(crate) enum State {
            /// Nobody looked.
            New,
            Seen,
            /// It is no more.
            Gone {
                /// The reason.
                why: String,
            },
            Absent,
        }
        /// The body.
        #[derive(schemars::JsonSchema)]
        pub(crate) enum Body {
            /// Plain.
            Text,
            /// Marked up.
            Html,
        }
    }
}

#[test]
fn editing_a_doc_comment_changes_no_hash() {
    assert_eq!(reference::<told::once::Page>(), reference::<told::twice::Page>());
    assert_eq!(reference::<told::once::State>(), reference::<told::twice::State>());
    assert_eq!(reference::<told::once::Body>(), reference::<told::twice::Body>());
    let told = Bundle::of::<told::twice::Page>().unwrap();
    assert!(
        told.root().definition().as_str().contains("Where it is."),
        "but the comment is kept"
    );
    for (kept, text) in [
        (true, "\"Seen\""),
        (true, "{\"Gone\":{\"why\":\"x\"}}"),
        (true, "\"New\""),
        (false, "\"Other\""),
    ] {
        let state = Bundle::of::<told::twice::State>().unwrap();
        let checked = Validator::new(state.root(), &none)
            .unwrap()
            .check(&Json::parse(text).unwrap());
        assert_eq!(checked.is_ok(), kept, "{text}");
    }
}

#[test]
fn the_hash_is_of_the_canonical_definition_without_annotations() {
    let told = schema(&json!({
        "title": "T", "description": "d", "$comment": "c", "examples": [1], "type": "object",
        "properties": { "title": { "type": "string", "title": "t" }, "description": true },
        "default": { "title": "kept" }, "const": { "description": "kept" }, "enum": [{ "$comment": "kept" }],
        "items": { "examples": [] }, "x-other": { "title": "kept" },
    }))
    .unwrap();
    let text = r#"{"const":{"description":"kept"},"default":{"title":"kept"},"enum":[{"$comment":"kept"}],"items":{},"properties":{"description":true,"title":{"type":"string"}},"type":"object","x-other":{"title":"kept"}}"#;
    assert_eq!(
        told.reference(),
        SchemaRef(Digest::derive(SCHEMA_CONTEXT, text.as_bytes()))
    );
    assert_eq!(
        told.reference().to_string().parse::<SchemaRef>().unwrap(),
        told.reference()
    );
    assert_eq!(told.reference().uri(), format!("neuron:schema:{}", told.reference()));
}

#[derive(JsonSchema)]
struct Leaf {
    n: u8,
}
#[derive(JsonSchema)]
struct Branch {
    left: Leaf,
    right: Leaf,
}
#[derive(JsonSchema)]
struct Root {
    branches: Vec<Branch>,
    leaf: Option<Leaf>,
}

#[test]
fn nested_types_are_schemas_of_their_own_each_once_and_before_what_names_them() {
    let bundle = Bundle::of::<Root>().unwrap();
    let members: Vec<_> = bundle.members().iter().map(|member| member.reference()).collect();
    assert_eq!(
        members,
        [reference::<Leaf>(), reference::<Branch>(), reference::<Root>()]
    );
    assert_eq!(
        bundle.root().dependencies().into_iter().collect::<BTreeSet<_>>(),
        members[..2].iter().copied().collect()
    );
    assert_eq!(Bundle::of::<Branch>().unwrap().members().len(), 2);
    assert_eq!(
        bare::<Branch>()["properties"]["left"],
        json!({ "$ref": reference::<Leaf>().uri() })
    );
    assert_eq!(bundle.get(&members[0]).unwrap().reference(), members[0]);
}

#[derive(JsonSchema)]
struct Tree {
    children: Vec<Tree>,
    leaf: Leaf,
}
#[derive(JsonSchema)]
struct Even {
    next: Option<Box<Odd>>,
}
#[derive(JsonSchema)]
struct Odd {
    next: Option<Box<Even>>,
    leaf: Leaf,
}
#[derive(JsonSchema)]
struct Both {
    even: Even,
    odd: Odd,
    tree: Tree,
}

#[test]
fn a_recursive_type_is_one_definition_and_so_is_a_recursive_group() {
    let tree = Bundle::of::<Tree>().unwrap();
    assert_eq!(tree.members().len(), 2);
    assert_eq!(
        bare::<Tree>()["properties"]["children"]["items"],
        json!({ "$ref": "#" })
    );

    let both = Bundle::of::<Both>().unwrap();
    let group = both
        .members()
        .iter()
        .find(|m| m.definition().to_value().get("$defs").is_some())
        .unwrap();
    assert_eq!(both.members().len(), 4, "leaf, tree, the group, the root");
    assert!(both.members().iter().any(|m| m.reference() == reference::<Tree>()));
    let place = |place: u8| json!({ "$ref": format!("{}#/$defs/{place}", group.reference().uri()) });
    assert_eq!(
        (bare::<Even>(), bare::<Odd>()),
        (place(0), place(1)),
        "as a root it is a place in the group"
    );
    assert_eq!(bare::<Both>()["properties"]["even"], place(0));

    let validator = Validator::new(both.root(), &|r| Ok(both.get(r).cloned())).unwrap();
    let value = |deep: Value| {
        json!({
            "even": { "next": { "next": { "next": { "leaf": deep } }, "leaf": { "n": 1 } } },
            "odd": { "leaf": { "n": 1 } },
            "tree": { "children": [{ "children": [], "leaf": { "n": 1 } }], "leaf": { "n": 1 } },
        })
    };
    validator.check(&Json::of(&value(json!({ "n": 1 }))).unwrap()).unwrap();
    assert!(
        validator
            .check(&Json::of(&value(json!({ "n": "x" }))).unwrap())
            .is_err()
    );
}

#[test]
fn a_definition_that_is_no_schema_or_has_another_name_is_refused() {
    let refused = |definition: Value, with: &str| {
        let error = schema(&definition).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema);
        assert!(error.to_string().contains(with), "{error}");
    };
    refused(json!("x"), "an object, `true` or `false`");
    refused(
        json!({ "properties": { "a": { "type": "text" } } }),
        "`$.properties.a.type`",
    );
    refused(
        json!({ "items": { "$id": "urn:x" } }),
        "`$.items`: `$id` is not allowed",
    );
    refused(
        json!({ "anyOf": [{ "$ref": "https://example.org/x" }] }),
        "`$.anyOf`: `$ref` to `https://example.org/x`",
    );
    refused(json!({ "$ref": "#/$defs/absent" }), "leads nowhere");
    refused(json!({ "$ref": "neuron:schema:12" }), "leads nowhere");
    let wide = json!({ "const": "x".repeat(limits::RECORD_BYTES_MAX) });
    assert_eq!(schema(&wide).unwrap_err().kind(), ErrorKind::TooLarge);
}

fn refused<T: JsonSchema + 'static>(path: &str) {
    let error = schema::of::<T>().unwrap_err();
    let text = error.to_string();
    assert_eq!(error.kind(), ErrorKind::Schema);
    assert!(text.contains(&format!("`{path}` is a reference")), "{path}: {text}");
    assert!(text.contains("append one envelope for each edge"), "{text}");
}

#[derive(JsonSchema)]
struct One<T> {
    to: T,
}
#[derive(JsonSchema)]
enum Either<T> {
    Nothing,
    Tuple(u8, One<T>),
    Named { inner: T },
}
#[derive(JsonSchema)]
#[serde(tag = "type")]
enum Tagged<T> {
    A(One<T>),
}
#[derive(JsonSchema)]
#[serde(untagged)]
enum Untagged<T> {
    A(T),
    B(One<T>),
}
#[derive(JsonSchema)]
struct Flat<T> {
    #[serde(flatten)]
    rest: T,
}
#[derive(JsonSchema)]
struct Looped {
    next: Option<Box<Looped>>,
    runs: One<Vec<RunRef>>,
}

#[test]
fn a_collection_of_references_is_refused_wherever_it_hides() {
    refused::<Vec<EnvelopeRef>>("$[*]");
    refused::<[ArtifactRef; 2]>("$[*]");
    refused::<(u8, RunRef)>("$[*]");
    refused::<BTreeSet<ItemRef>>("$[*]");
    refused::<One<Vec<ArtifactRef>>>("$.to[*]");
    refused::<One<Option<Vec<Option<RunRef>>>>>("$.to[*]");
    refused::<One<Vec<Vec<ItemRef>>>>("$.to[*][*]");
    refused::<One<HashMap<String, EnvelopeRef>>>("$.to.*");
    refused::<One<BTreeMap<u8, EnvelopeRef>>>("$.to.*");
    refused::<One<BTreeMap<ArtifactRef, u8>>>("$.to.*");
    refused::<One<BTreeMap<RunRef, u8>>>("$.to.*");
    refused::<Vec<One<RunRef>>>("$[*].to");
    refused::<One<One<Vec<One<EnvelopeRef>>>>>("$.to.to[*].to");
    refused::<Either<Vec<RunRef>>>("$.Tuple[*].to[*]");
    refused::<One<Vec<Either<RunRef>>>>("$.to[*].Tuple[*].to");
    refused::<Tagged<Vec<RunRef>>>("$.to[*]");
    refused::<Untagged<Vec<RunRef>>>("$[*]");
    refused::<Flat<HashMap<String, RunRef>>>("$.*");
    refused::<Flat<One<Vec<RunRef>>>>("$.to[*]");
    refused::<Looped>("$.runs.to[*]");
    refused::<Vec<Looped>>("$[*].runs.to[*]");
}

#[test]
fn one_reference_is_no_collection_and_names_are_no_references() {
    schema::of::<One<EnvelopeRef>>().unwrap();
    schema::of::<One<One<Option<RunRef>>>>().unwrap();
    schema::of::<Untagged<ItemRef>>().unwrap();
    schema::of::<One<Vec<String>>>().unwrap();
    schema::of::<One<BTreeMap<Digest, Vec<Tree>>>>().unwrap();
    schema::of::<Json>().unwrap();
    schema::of::<()>().unwrap();
}

#[test]
fn a_hand_written_collection_of_references_is_refused_through_every_keyword() {
    let mark = json!({ "x-neuron-ref": "run" });
    for (word, held, path) in [
        ("items", mark.clone(), "$[*]"),
        ("prefixItems", json!([true, mark]), "$[*]"),
        ("contains", mark.clone(), "$[*]"),
        ("unevaluatedItems", mark.clone(), "$[*]"),
        ("additionalProperties", mark.clone(), "$.*"),
        ("unevaluatedProperties", mark.clone(), "$.*"),
        ("patternProperties", json!({ "^a": mark }), "$.*"),
        ("propertyNames", mark.clone(), "$.*"),
        (
            "items",
            json!({ "allOf": [{ "oneOf": [{ "$ref": "#/$defs/a" }] }] }),
            "$[*]",
        ),
        ("items", json!({ "if": { "then": { "else": mark } } }), "$[*]"),
        ("dependentSchemas", json!({ "a": { "items": mark } }), "$[*]"),
        (
            "properties",
            json!({ "a b": { "items": { "properties": { "c": mark } } } }),
            "$[\"a b\"][*].c",
        ),
    ] {
        let schema = schema(&json!({ word: held, "$defs": { "a": mark } })).unwrap();
        let error = check_references(&schema, &none).unwrap_err();
        assert!(
            error.message().starts_with(&format!("`{path}` is a reference (run)")),
            "{word}: {error}"
        );
    }
    let other = Arc::new(schema(&json!({ "$defs": { "x/y": mark } })).unwrap());
    let uri = format!("{}#/$defs/x~1y", other.reference().uri());
    let list = schema(&json!({ "items": { "$ref": uri } })).unwrap();
    assert!(
        check_references(&list, &|_| Ok(Some(other.clone())))
            .unwrap_err()
            .message()
            .contains("`$[*]`")
    );
    assert!(
        check_references(&list, &none)
            .unwrap_err()
            .message()
            .contains("is not registered")
    );
    let data = schema(&json!({ "const": { "items": { "x-neuron-ref": "run" } } })).unwrap();
    check_references(&data, &none).unwrap();
}

#[test]
fn the_schemas_of_a_type_are_made_once() {
    assert!(Arc::ptr_eq(
        &schema::of::<Root>().unwrap(),
        &schema::of::<Root>().unwrap()
    ));
}

#[test]
fn a_value_that_breaks_its_schema_names_path_expectation_and_schema() {
    let usage = schema::of::<Root>().unwrap();
    let resolve = |reference: &SchemaRef| usage.resolve(reference, &none);
    let validator = Validator::of(&usage.reference(), &resolve).unwrap();
    let check = |text: &str| validator.check(&Json::parse(text).unwrap());
    check(r#"{"branches":[{"left":{"n":1},"right":{"n":255}}],"leaf":null}"#).unwrap();
    let broken = |text: &str, parts: &[&str]| {
        let error = check(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Schema);
        for part in parts {
            assert!(error.message().contains(part), "{error}");
        }
        assert!(error.message().contains(&usage.reference().to_string()), "{error}");
    };
    broken(
        r#"{"branches":[{"left":{"n":1},"right":{"n":"x"}}]}"#,
        &["`$.branches[0].right.n`", "\"x\"", "integer"],
    );
    broken(
        r#"{"branches":[{"left":{"n":1},"right":{"n":256}}]}"#,
        &["`$.branches[0].right.n`", "255"],
    );
    broken("{}", &["`$`", "\"branches\"", "required"]);
    broken(r#"{"branches":[1,2]}"#, &["`$.branches[0]`", "1 more"]);
    let long = format!(r#"{{"branches":"{}"}}"#, "x".repeat(10_000));
    assert!(
        check(&long).unwrap_err().message().len() < 400,
        "a large value is not repeated"
    );
    assert!(
        Arc::ptr_eq(&validator, &Validator::of(&usage.reference(), &none).unwrap()),
        "compiled once"
    );
    let lost = schema(&json!({ "$ref": SchemaRef(Digest::ZERO).uri() })).unwrap();
    assert!(
        Validator::new(&lost, &none)
            .unwrap_err()
            .to_string()
            .contains("is not registered")
    );
}

#[test]
fn a_small_inline_definition_stands_for_the_same_hash() {
    let definition = Json::parse(r#"{"type":"integer","description":"n"}"#).unwrap();
    let usage = SchemaUse::inline(definition.clone()).unwrap();
    assert_eq!(usage.reference(), Schema::new(definition.clone()).unwrap().reference());
    assert_eq!(
        (usage.members().len(), SchemaUse::Ref(usage.reference()).members().len()),
        (1, 0)
    );
    let read: SchemaUse = definition.decode().unwrap();
    assert_eq!(read.reference(), usage.reference());
    assert_eq!(Json::of(&read).unwrap(), definition);
    let by_hash = Json::of(&SchemaUse::Ref(usage.reference())).unwrap();
    assert_eq!(by_hash.decode::<SchemaUse>().unwrap().reference(), usage.reference());
    let padded = |bytes: usize| Json::of(&json!({ "const": "x".repeat(bytes - 12) })).unwrap();
    let most = padded(limits::INLINE_SCHEMA_BYTES_MAX);
    assert_eq!(most.len(), limits::INLINE_SCHEMA_BYTES_MAX);
    SchemaUse::inline(most).unwrap();
    let error = SchemaUse::inline(padded(limits::INLINE_SCHEMA_BYTES_MAX + 1)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct V1 {
    name: String,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct V2 {
    first: String,
}
#[derive(Serialize, Deserialize, JsonSchema)]
struct V3 {
    first: String,
    length: u8,
}

#[test]
fn an_old_value_takes_as_many_upcasters_as_it_needs() {
    let mut upcasters = Upcasters::default();
    upcasters.register(|old: V1| Ok(V2 { first: old.name })).unwrap();
    upcasters
        .register(|old: V2| {
            let length = old
                .first
                .len()
                .try_into()
                .map_err(|_| Error::terminal("too long a name"))?;
            Ok(V3 {
                first: old.first,
                length,
            })
        })
        .unwrap();
    let (one, two, three) = (reference::<V1>(), reference::<V2>(), reference::<V3>());
    let up = |value, from, to| upcasters.upcast(value, from, to);
    assert_eq!(
        up(json!({ "name": "Ada" }), one, three).unwrap(),
        json!({ "first": "Ada", "length": 3 })
    );
    assert_eq!(
        up(json!({ "first": "Ada" }), two, three).unwrap(),
        json!({ "first": "Ada", "length": 3 })
    );
    assert_eq!(up(json!(1), three, three).unwrap(), json!(1));
    let error = up(json!({ "first": "" }), two, one).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReplayDecode);
    assert!(
        error
            .message()
            .ends_with(&format!("the way ends at {three}; register one")),
        "{error}"
    );
    let failed = up(json!({ "name": "x".repeat(256) }), one, three).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::ReplayDecode);
    assert!(failed.to_string().ends_with("too long a name"), "{failed}");
    assert!(
        failed.to_string().contains(&format!("from schema {two} to {three}")),
        "{failed}"
    );
}

#[test]
fn upcasters_that_would_go_in_a_circle_or_fork_are_refused() {
    let mut upcasters = Upcasters::default();
    let [a, b, c] = [1, 2, 3].map(|n| SchemaRef(Digest::content(&[n])));
    upcasters.register_between(a, b, Ok).unwrap();
    upcasters.register_between(b, c, Ok).unwrap();
    for (from, to) in [(c, a), (c, c), (a, c)] {
        assert_eq!(
            upcasters.register_between(from, to, Ok).unwrap_err().kind(),
            ErrorKind::Misuse
        );
    }
}

#[test]
fn a_body_contract_is_a_schema_that_says_the_same() {
    let contracts = [
        BodyContract::default(),
        BodyContract::new(["report"]),
        BodyContract::new(["report", "log"]).allow(["note"]),
        BodyContract::new(["report"]).allow(<[&str; 0]>::default()),
    ];
    let bodies: [&[Option<&str>]; 7] = [
        &[],
        &[None],
        &[Some("report")],
        &[Some("report"), None],
        &[Some("log"), Some("report"), Some("report")],
        &[Some("log"), Some("report"), Some("note")],
        &[Some("note"), Some("report")],
    ];
    let mut hashes = BTreeSet::new();
    for contract in contracts {
        let schema = contract.schema().unwrap();
        assert!(hashes.insert(schema.reference()), "each has its own hash");
        assert_eq!(BodyContract::from_schema(&schema).unwrap(), contract);
        let validator = Validator::new(&schema, &none).unwrap();
        for kinds in bodies {
            let artifacts = kinds.iter().map(|kind| match kind {
                Some(kind) => json!({ "ref": "r", "kind": kind }),
                None => json!({ "ref": "r" }),
            });
            let body = Json::of(&json!({ "type": "t", "artifacts": artifacts.collect::<Value>() })).unwrap();
            let (direct, by_schema) = (contract.check(kinds.iter().copied()), validator.check(&body));
            assert_eq!(direct.is_ok(), by_schema.is_ok(), "{contract:?} {kinds:?}");
        }
    }
    let contract = BodyContract::new(["report"]).allow(["log"]);
    let missing = contract.check([Some("log")]).unwrap_err();
    assert_eq!(
        missing.message(),
        "`$.artifacts` has none of kind `report`, which the body contract requires"
    );
    let alien = contract.check([Some("report"), Some("x")]).unwrap_err();
    assert!(alien.message().starts_with("`$.artifacts[1]` has kind `x`"), "{alien}");
    assert!(BodyContract::from_schema(&Schema::plane0()).is_err());
}

#[test]
fn plane_0_says_what_an_envelope_is_and_how_its_id_comes_about() {
    let root = Schema::plane0();
    assert_eq!(
        Schema::new(root.definition().clone()).unwrap(),
        root,
        "it is a schema like any other"
    );
    assert_eq!(
        root.reference().to_string(),
        "17067c03b5b3a2dc651c07b671e4fb0f6b13033167839de50bd5144e2a2b0719",
        "a store with another root opens read-only: amend the format loudly"
    );
    for (from, to) in [
        ("event-bus-envelope-v1", "event-bus-envelope-v2"),
        ("blake3-derive-key", "sha256"),
    ] {
        let other = Json::parse(&root.definition().as_str().replace(from, to)).unwrap();
        assert_ne!(Schema::new(other).unwrap().reference(), root.reference());
    }
    let validator = Validator::new(&root, &none).unwrap();
    let hash = "0".repeat(64);
    let full = json!({
        "topic": "a.b", "seq": 12, "parentSeq": 11, "id": hash, "author": "x", "at": 1_790_000_000_000_u64,
        "headers": [{ "key": "k", "value": null, "author": "x", "at": 0, "schema": hash }],
        "body": { "type": "t", "payloadJSON": {}, "payloadSchema": hash, "schema": hash,
                  "artifacts": [{ "ref": "r", "hash": hash, "kind": "k" }] },
    });
    let check = |value: &Value| validator.check(&Json::of(value).unwrap());
    check(&full).unwrap();
    check(&json!({ "topic": "t", "seq": 1, "author": "x", "at": 0, "headers": [], "body": { "type": "t", "artifacts": [] } }))
        .unwrap();
    for pointer in [
        "/topic",
        "/seq",
        "/author",
        "/at",
        "/headers",
        "/body",
        "/body/type",
        "/body/artifacts",
    ] {
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        let mut less = full.clone();
        less.pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(key)
            .unwrap();
        assert!(check(&less).unwrap_err().message().contains("required"), "{pointer}");
    }
    for pointer in [
        "/parentSeq",
        "/id",
        "/headers/0/schema",
        "/body/payloadSchema",
        "/body/schema",
        "/body/artifacts/0/kind",
    ] {
        let mut null = full.clone();
        *null.pointer_mut(pointer).unwrap() = Value::Null;
        assert!(check(&null).is_err(), "{pointer} is omitted, never null");
    }
    for pointer in ["", "/headers/0", "/body", "/body/artifacts/0"] {
        let mut more = full.clone();
        more.pointer_mut(pointer).unwrap()["other"] = json!(1);
        assert!(check(&more).is_err(), "{pointer} has no other fields");
    }
}

/// Definitions with annotations strewn in, and the same without.
fn definition() -> impl Strategy<Value = (Value, Value)> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        "(string|integer|null)".prop_map(|name| json!({ "type": name })),
        any::<i8>().prop_map(|n| json!({ "const": { "title": n } })),
    ]
    .prop_map(|schema| (schema.clone(), schema));
    leaf.prop_recursive(3, 24, 4, |inner| {
        let named = proptest::collection::btree_map("(title|examples|a|b)", inner.clone(), 0..4);
        let notes = proptest::collection::btree_map("(title|description|\\$comment)", "[a-z]{0,3}", 0..3);
        let word = prop_oneof![Just("items"), Just("not"), Just("additionalProperties")];
        (word, inner, named, notes).prop_map(|(word, (told, bare), named, notes)| {
            let (all, plain): (BTreeMap<_, _>, BTreeMap<_, _>) = named
                .into_iter()
                .map(|(key, (told, bare))| ((key.clone(), told), (key, bare)))
                .unzip();
            let mut told = json!({ word: told, "properties": all });
            for (key, note) in notes {
                told[key] = note.into();
            }
            (told, json!({ word: bare, "properties": plain }))
        })
    })
}

proptest! {
    #[test]
    fn hashes_are_equal_exactly_where_definitions_without_annotations_are(
        (told, bare) in definition(), (other, plain) in definition(),
    ) {
        let hash = |definition: &Value| schema(definition).unwrap().reference();
        prop_assert_eq!(hash(&told), hash(&bare));
        prop_assert_eq!(hash(&told) == hash(&other), Json::of(&bare).unwrap() == Json::of(&plain).unwrap());
        let derived = SchemaRef(Digest::derive(SCHEMA_CONTEXT, Json::of(&bare).unwrap().as_str().as_bytes()));
        prop_assert_eq!(hash(&told), derived);
    }
}
