use std::{collections::BTreeMap, fmt, sync::Arc};

use serde_json::Value;

use super::{Encoded, Entry};
use crate::{Error, ErrorKind, Json, Result, SchemaRef, on::Handler, plan::PlanEntry, scope::Code};

/// The definitions and plans that a program knows by name. A name on the log leads back to code through it.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: BTreeMap<(&'static str, &'static str), &'static Entry>,
    plans: BTreeMap<&'static str, &'static PlanEntry>,
    handlers: BTreeMap<&'static str, &'static Handler>,
    /// Where each name that is taken was given, by kind; for a former name also who has it today.
    names: BTreeMap<(&'static str, &'static str), Taken>,
    upcasts: BTreeMap<(&'static str, &'static str), ArgsUpcast>,
}

/// Brings recorded arguments of one definition to the present form.
#[derive(Clone)]
struct ArgsUpcast(Arc<dyn Fn(Value) -> Result<Value, Error> + Send + Sync>);

impl fmt::Debug for ArgsUpcast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ArgsUpcast")
    }
}

/// Who has a name.
#[derive(Clone, Copy, Debug)]
struct Taken {
    /// The present name of the definition.
    by: &'static str,
    at: (&'static str, u32),
}

impl Registry {
    /// A registry of nothing, to be filled by hand.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that is linked into the program.
    ///
    /// # Errors
    /// As [`register`](Self::register).
    pub fn linked() -> Result<Self, Error> {
        let mut registry = Self::new();
        for entry in inventory::iter::<Entry> {
            registry.register(entry)?;
        }
        for plan in inventory::iter::<PlanEntry> {
            registry.register_plan(plan)?;
        }
        for handler in inventory::iter::<Handler> {
            registry.register_handler(handler)?;
        }
        Ok(registry)
    }

    /// Adds a definition; the same one twice is once.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming both places if another definition of the kind has the name, or if its `resolve`
    /// names a step of other types.
    pub fn register(&mut self, entry: &'static Entry) -> Result<(), Error> {
        let meta = &entry.meta;
        if let Some(step) = meta.resolve.filter(|_| !entry.is_resolvable()) {
            let (name, asked) = (meta.name, step.name);
            let at = place((meta.file, meta.line));
            let message = format!(
                "`{asked}` cannot find out whether `{name}` ({at}) has happened: it takes the same arguments and gives \
                 an `Option` of the same output"
            );
            return Err(Error::new(ErrorKind::Misuse, message));
        }
        self.take(meta.kind, meta.name, meta.was, (meta.file, meta.line))?;
        self.entries.entry((meta.kind, meta.name)).or_insert(entry);
        Ok(())
    }

    /// Adds a plan; the same one twice is once.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming both places if another plan has the name.
    pub fn register_plan(&mut self, plan: &'static PlanEntry) -> Result<(), Error> {
        self.take("plan", plan.name(), plan.former_names(), plan.place())?;
        self.plans.entry(plan.name()).or_insert(plan);
        Ok(())
    }

    /// Takes the name of a definition, and those it had before, unless another one has or had one of them.
    fn take(
        &mut self,
        kind: &'static str,
        name: &'static str,
        was: &'static [&'static str],
        at: (&'static str, u32),
    ) -> Result<(), Error> {
        for &one in [name].iter().chain(was) {
            let known = *self.names.entry((kind, one)).or_insert(Taken { by: name, at });
            if known.by != name || known.at != at {
                return Err(taken(kind, one, known, Taken { by: name, at }));
            }
        }
        Ok(())
    }

    /// Adds a handler; the same one twice is once.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming both places if another handler has the name; what is wrong with its pattern, a type
    /// or a count.
    pub fn register_handler(&mut self, handler: &'static Handler) -> Result<(), Error> {
        handler.check()?;
        let meta = handler.meta();
        self.take("handler", meta.name, &[], (meta.file, meta.line))?;
        self.handlers.entry(meta.name).or_insert(handler);
        Ok(())
    }

    /// The definition of a kind (`step`, `agent`, `orchestrator`) and name: the one it has today, or one that it had
    /// before.
    pub fn get(&self, kind: &str, name: &str) -> Option<&'static Entry> {
        // The keys hold static text, so they are looked for by their order.
        let mut names = self.names.range::<(&str, &str), _>((kind, name)..=(kind, name));
        let present = names.next()?.1.by;
        let found = self
            .entries
            .range::<(&str, &str), _>((kind, present)..=(kind, present))
            .next();
        found.map(|(_, entry)| *entry)
    }

    /// Says how recorded arguments of a definition become those that it takes today, where the present types do not
    /// read them. They come as an object with one field per parameter.
    ///
    /// ```standalone_crate
    /// # use neuron::{Cx, Result, def::Registry, step};
    /// /// Once it took the whole name.
    /// #[step]
    /// async fn greet(_cx: &Cx, first: String, last: String) -> Result<String> {
    ///     Ok(format!("Dear {first} {last}"))
    /// }
    /// # fn main() -> Result<()> {
    /// let mut registry = Registry::linked()?;
    /// registry.upcast_args("step", "greet", |old| {
    ///     let name = old["name"].as_str().unwrap_or_default();
    ///     let (first, last) = name.split_once(' ').unwrap_or((name, ""));
    ///     Ok(serde_json::json!({ "first": first, "last": last }))
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if no definition has the name; [`ErrorKind::Misuse`] if it has such a function already.
    pub fn upcast_args(
        &mut self,
        kind: &str,
        name: &str,
        upcast: impl Fn(Value) -> Result<Value, Error> + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let meta = self.find(kind, name)?.meta();
        let known = self
            .upcasts
            .insert((meta.kind, meta.name), ArgsUpcast(Arc::new(upcast)));
        if known.is_none() {
            return Ok(());
        }
        let why = format!("the arguments of the {kind} `{name}` are upcast by two functions: make one of them");
        Err(Error::new(ErrorKind::Misuse, why))
    }

    /// Recorded arguments of a definition by its present types; upcast if these do not read them.
    ///
    /// # Errors
    /// [`ErrorKind::Schema`] naming the parameter that does not decode, or what the function says that upcasts them.
    pub fn normalise(&self, entry: &Entry, args: &Json) -> Result<Encoded, Error> {
        entry.normalise(args).or_else(|error| {
            self.upcast(entry, args)
                .map_or(Err(error), |args| entry.normalise(&args?))
        })
    }

    /// What recorded arguments are by the present types, as far as they tell one call from another.
    ///
    /// # Errors
    /// As [`Registry::normalise`].
    pub fn identity_of(&self, entry: &Entry, args: &Json) -> Result<Json, Error> {
        entry.identity(args).or_else(|error| {
            self.upcast(entry, args)
                .map_or(Err(error), |args| entry.identity(&args?))
        })
    }

    /// What the registered function makes of recorded arguments, if there is one.
    fn upcast(&self, entry: &Entry, args: &Json) -> Option<Result<Json, Error>> {
        let upcast = self.upcasts.get(&(entry.meta().kind, entry.meta().name))?;
        Some((upcast.0)(args.to_value()).and_then(|args| Json::of(&args)))
    }

    /// The definition of a kind and name.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] saying how code gets registered.
    pub fn find(&self, kind: &str, name: &str) -> Result<&'static Entry, Error> {
        self.get(kind, name).ok_or_else(|| {
            let message = format!(
                "this program registers no {kind} `{name}`: use its crate (`use the_crate as _;` links it), or register it by hand"
            );
            Error::new(ErrorKind::NotFound, message)
        })
    }

    /// All definitions, by kind and name.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.entries.values().copied()
    }

    /// All handlers, by name.
    pub fn handlers(&self) -> impl Iterator<Item = &'static Handler> {
        self.handlers.values().copied()
    }

    /// All plans, by name.
    pub fn plans(&self) -> impl Iterator<Item = &'static PlanEntry> {
        self.plans.values().copied()
    }
}

impl Code for Registry {
    fn present_name(&self, step: &str) -> Option<&'static str> {
        self.get("step", step).map(|entry| entry.meta().name)
    }

    fn args_schema(&self, step: &str) -> Option<SchemaRef> {
        self.get("step", step).map(|entry| entry.form().args_schema())
    }

    fn identity(&self, step: &str, args: &Json) -> Result<Json, Error> {
        self.identity_of(self.find("step", step)?, args)
    }
}

fn place((file, line): (&str, u32)) -> String {
    format!("{file}:{line}")
}

/// Why a name cannot be taken. A definition that is met again at the same place is the same one.
fn taken(kind: &str, name: &str, known: Taken, new: Taken) -> Error {
    let (first, second) = (place(known.at), place(new.at));
    let message = match (known.by == name, new.by == name) {
        (true, true) => format!(
            "two definitions of the {kind} `{name}`: {first} and {second}; rename one, or give it `name = \"…\"`"
        ),
        (false, false) => format!(
            "two definitions were the {kind} `{name}`: `{}` ({first}) and `{}` ({second}); what was recorded under \
             `{name}` belongs to one of them: take `was = \"{name}\"` from the other",
            known.by, new.by
        ),
        (present, _) => {
            let ((now, here), (then, there)) = if present {
                ((known.by, first), (new.by, second))
            } else {
                ((new.by, second), (known.by, first))
            };
            format!(
                "the {kind} `{then}` ({there}) says that it was `{now}`, and `{now}` is still there ({here}): take \
                 `was = \"{name}\"` away, or rename that one"
            )
        }
    };
    Error::new(ErrorKind::Misuse, message)
}
