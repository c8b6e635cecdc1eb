//! `neuron schema`: what payloads are held to.

use neuron::{Json, Ledger, Schema as Definition, SchemaRef};
use serde::Serialize;

use super::{
    console::{Console, Paint},
    find,
    outcome::Outcome,
    show::print_json,
    table::{Cell, Column, Table},
    text::short,
};

/// Arguments of `schema`.
#[derive(Clone, Debug, clap::Args)]
pub struct Schema {
    /// A hash or its first digits; without one, all schemas are listed
    #[arg(value_name = "HASH")]
    hash: Option<String>,
}

#[derive(Serialize)]
struct Told<'a> {
    hash: SchemaRef,
    definition: &'a Json,
}

impl<'a> From<&'a Definition> for Told<'a> {
    fn from(schema: &'a Definition) -> Self {
        Self {
            hash: schema.reference(),
            definition: schema.definition(),
        }
    }
}

impl Schema {
    pub(super) fn run(&self, ledger: &Ledger, console: &mut Console<'_>) -> Outcome {
        let schemas = ledger.store().schemas()?;
        let Some(hash) = &self.hash else {
            if console.is_json() {
                let told: Vec<_> = schemas.iter().map(|schema| Told::from(&**schema)).collect();
                return console.json(&told);
            }
            return list(schemas.iter().map(|schema| &**schema), console);
        };
        let hash = find::hash(
            "schema",
            "schema",
            hash,
            schemas.iter().map(|schema| schema.reference().0),
        )?;
        for schema in schemas.iter().filter(|schema| schema.reference().0 == hash) {
            if console.is_json() {
                console.json(&Told::from(&**schema))?;
            } else {
                let line = console.paint(Paint::Faint, "schema ") + &console.paint(Paint::Strong, &hash.to_string());
                console.line(&line)?;
                print_json(&schema.definition().to_value(), console)?;
            }
        }
        Ok(())
    }
}

fn list<'a>(schemas: impl Iterator<Item = &'a Definition>, console: &mut Console<'_>) -> Outcome {
    let mut table = Table::new([
        Column::Whole("SCHEMA"),
        Column::Whole("TITLE"),
        Column::Text("WHAT IT IS"),
    ]);
    for schema in schemas {
        let definition = schema.definition().to_value();
        let text = |name: &str| {
            definition
                .get(name)
                .and_then(|it| it.as_str())
                .unwrap_or_default()
                .to_owned()
        };
        table.row([
            Cell::painted(short(&schema.reference().to_string()), Paint::Strong),
            text("title").into(),
            Cell::painted(text("description"), Paint::Faint),
        ]);
    }
    table.print(console)
}
