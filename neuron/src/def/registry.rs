use std::collections::BTreeMap;

use super::Entry;
use crate::{Error, ErrorKind, Json, Result, SchemaRef, on::Handler, plan::PlanEntry, scope::Code};

/// The definitions and plans that a program knows by name. A name on the log leads back to code through it.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: BTreeMap<(&'static str, &'static str), &'static Entry>,
    plans: BTreeMap<&'static str, &'static PlanEntry>,
    handlers: BTreeMap<&'static str, &'static Handler>,
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
        let known = *self.entries.entry((meta.kind, meta.name)).or_insert(entry);
        unique(
            meta.kind,
            meta.name,
            (known.meta.file, known.meta.line),
            (meta.file, meta.line),
        )
    }

    /// Adds a plan; the same one twice is once.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming both places if another plan has the name.
    pub fn register_plan(&mut self, plan: &'static PlanEntry) -> Result<(), Error> {
        let known = *self.plans.entry(plan.name()).or_insert(plan);
        unique("plan", plan.name(), known.place(), plan.place())
    }

    /// Adds a handler; the same one twice is once.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] naming both places if another handler has the name; what is wrong with its pattern, a type
    /// or a count.
    pub fn register_handler(&mut self, handler: &'static Handler) -> Result<(), Error> {
        handler.check()?;
        let meta = handler.meta();
        let known = self.handlers.entry(meta.name).or_insert(handler).meta();
        unique("handler", meta.name, (known.file, known.line), (meta.file, meta.line))
    }

    /// The definition of a kind (`step`, `agent`, `orchestrator`) and name.
    pub fn get(&self, kind: &str, name: &str) -> Option<&'static Entry> {
        // The key holds static text, so it is looked for by its order.
        let found = self
            .entries
            .range::<(&str, &str), _>((kind, name)..=(kind, name))
            .next();
        found.map(|(_, entry)| *entry)
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
    fn args_schema(&self, step: &str) -> Option<SchemaRef> {
        self.get("step", step).map(|entry| entry.form().args_schema())
    }

    fn identity(&self, step: &str, args: &Json) -> Result<Json, Error> {
        self.find("step", step)?.identity(args)
    }
}

fn place((file, line): (&str, u32)) -> String {
    format!("{file}:{line}")
}

fn unique(kind: &str, name: &str, known: (&str, u32), new: (&str, u32)) -> Result<(), Error> {
    if known == new {
        return Ok(());
    }
    let message = format!(
        "two definitions of the {kind} `{name}`: {} and {}; rename one, or give it `name = \"…\"`",
        place(known),
        place(new)
    );
    Err(Error::new(ErrorKind::Misuse, message))
}
