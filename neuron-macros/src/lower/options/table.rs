//! The table of all options: the one place that says which kind takes which, and how it is written.

use proc_macro2::Ident;
use quote::ToTokens;

use crate::{errors::Errors, lower::kind::Kind};

/// One option.
pub(super) struct Spec {
    pub(super) name: &'static str,
    /// How it is written, for messages.
    form: &'static str,
    kinds: &'static [Kind],
    /// Whether it may be given more than once.
    pub(super) repeatable: bool,
}

const STEP: &[Kind] = &[Kind::Step];
const AGENT: &[Kind] = &[Kind::Agent];
const HANDLER: &[Kind] = &[Kind::Handler];
const WORK: &[Kind] = &[Kind::Step, Kind::Agent];
const REPLAYED: &[Kind] = &[Kind::Agent, Kind::Orchestrator];
const TRIED: &[Kind] = &[Kind::Step, Kind::Handler];
const DEFINED: &[Kind] = &[Kind::Step, Kind::Agent, Kind::Orchestrator, Kind::Plan];
const ALL: &[Kind] = &[Kind::Step, Kind::Agent, Kind::Orchestrator, Kind::Plan, Kind::Handler];

const fn single(name: &'static str, form: &'static str, kinds: &'static [Kind]) -> Spec {
    Spec {
        name,
        form,
        kinds,
        repeatable: false,
    }
}

const fn repeatable(name: &'static str, form: &'static str, kinds: &'static [Kind]) -> Spec {
    Spec {
        name,
        form,
        kinds,
        repeatable: true,
    }
}

const OPTIONS: [Spec; 17] = [
    single("name", "`name = \"…\"`", ALL),
    repeatable("was", "`was = \"…\"`, the name it had before", DEFINED),
    single("plan", "`plan = path::of::a_plan`", AGENT),
    repeatable("uses", "`uses(\"net\")` or `uses(\"gpu\", 2)`", WORK),
    repeatable("owns", "`owns(\"index.db\")`", WORK),
    single(
        "estimate",
        "`estimate(tokens = 2000, seconds = 30, tool_calls = 1)`, each of them optional",
        WORK,
    ),
    single(
        "retry",
        "`retry(3)` or `retry(3, backoff = \"200ms\", on = path::of::a_function)`, of which both names may be left out",
        TRIED,
    ),
    single("timeout", "`timeout = \"30s\"`", TRIED),
    single("once", "`once`, without a value", STEP),
    single("share", "`share`, without a value", STEP),
    single("resolve", "`resolve = path::of::a_step`", STEP),
    repeatable("ignore", "`ignore(parameter)`", STEP),
    repeatable("kind", "`kind(\"order.placed\")`", HANDLER),
    single("from", "`from = start` or `from = now`", HANDLER),
    single("in_flight", "`in_flight = 8`", HANDLER),
    single("allow", "`allow(unrecorded)`", REPLAYED),
    single("crate", "`crate = path::to::neuron`", ALL),
];

/// The option called `name`, if `kind` takes it.
pub(super) fn find(kind: Kind, name: &Ident, errors: &mut Errors) -> Option<&'static Spec> {
    let known = OPTIONS.iter().find(|spec| name == spec.name);
    match known {
        Some(spec) if spec.kinds.contains(&kind) => return Some(spec),
        Some(spec) => errors.on(name, format!("`{name}` belongs on {}; {}", homes(spec), accepted(kind))),
        None => {
            let meant = nearest(kind, &name.to_string()).map(|meant| format!("did you mean `{meant}`? "));
            let meant = meant.unwrap_or_default();
            errors.on(name, format!("there is no option `{name}`; {meant}{}", accepted(kind)));
        }
    }
    None
}

impl Spec {
    /// Says how the option is written, at what was written instead.
    pub(super) fn form_error(&self, instead: &impl ToTokens) -> syn::Error {
        syn::Error::new_spanned(instead, format!("`{}` is written {}", self.name, self.form))
    }
}

/// How much a word is like an option that was meant: `retries` is like `retry`, `colour` like nothing.
const ALIKE: f64 = 0.85;

/// The option of this kind that was probably meant.
fn nearest(kind: Kind, name: &str) -> Option<&'static str> {
    let name = name.to_lowercase();
    let of_kind = OPTIONS.iter().filter(|spec| spec.kinds.contains(&kind));
    let alike = of_kind.map(|spec| (strsim::jaro_winkler(&name, spec.name), spec.name));
    let (alike, nearest) = alike.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (alike >= ALIKE).then_some(nearest)
}

fn homes(spec: &Spec) -> String {
    let attributes: Vec<_> = spec
        .kinds
        .iter()
        .map(|kind| format!("`#[{}]`", kind.attribute()))
        .collect();
    attributes.join(" or ")
}

fn accepted(kind: Kind) -> String {
    let names: Vec<_> = OPTIONS
        .iter()
        .filter(|spec| spec.kinds.contains(&kind))
        .map(|spec| spec.name)
        .collect();
    format!("{} takes `{}`", kind.a(), names.join("`, `"))
}
