//! What the file is made of, against what this program makes: tables, indexes, and the triggers that refuse change.

use std::{collections::BTreeMap, fmt};

use rusqlite::Connection;

use super::ddl::{self, Form};

/// One table, index or trigger.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Part {
    /// `table`, `index` or `trigger`.
    pub(crate) kind: String,
    pub(crate) name: String,
}

/// How a part is not as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Missing,
    Altered,
    /// Nobody of this program made it.
    Foreign,
}

/// A part that is not as it was made, and the text that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Drift {
    pub(crate) part: Part,
    pub(crate) how: How,
    pub(crate) made_by: Option<String>,
}

impl Drift {
    /// Whether putting it right changes nothing of what is stored.
    pub(crate) fn is_mendable(&self) -> bool {
        self.part.kind != "table"
    }

    /// Whether it is what refuses to change or remove what stands.
    pub(crate) fn keeps_the_past(&self) -> bool {
        self.part.kind == "trigger" && self.made_by.is_some() && self.part.name.contains("_no_")
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Part { kind, name } = &self.part;
        match self.how {
            How::Missing => write!(f, "{kind} `{name}` is missing"),
            How::Altered => write!(f, "{kind} `{name}` is not as it was made"),
            How::Foreign => write!(f, "{kind} `{name}` is none of a store's"),
        }
    }
}

/// Whether a file is a store or an archive, by its tables and guards; one of these alone is enough to be an archive.
pub(super) fn form(connection: &Connection) -> rusqlite::Result<Form> {
    let sealed: bool = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name IN ('archive', 'envelope_sealed'))",
        [],
        |row| row.get(0),
    )?;
    Ok(if sealed { Form::Archive } else { Form::Store })
}

/// Everything that is not as it was made. Tables of the user are none of its business; what hangs on ours is.
pub(super) fn drift(connection: &Connection) -> rusqlite::Result<Vec<Drift>> {
    let (made, mut found) = (model(form(connection)?)?, parts(connection)?);
    let mut drift = Vec::new();
    for (part, (_, text)) in &made {
        let how = match found.remove(part) {
            None => How::Missing,
            Some((_, there)) if there != *text => How::Altered,
            Some(_) => continue,
        };
        drift.push(Drift {
            part: part.clone(),
            how,
            made_by: Some(text.clone()),
        });
    }
    let ours = |table: &str| made.keys().any(|part| part.kind == "table" && part.name == table);
    let foreign = found
        .into_iter()
        .filter(|(part, (table, _))| part.kind != "table" && ours(table));
    drift.extend(foreign.map(|(part, _)| Drift {
        part,
        how: How::Foreign,
        made_by: None,
    }));
    Ok(drift)
}

/// What a file of this form is made of.
pub(super) fn made(form: Form) -> rusqlite::Result<Vec<Part>> {
    Ok(model(form)?.into_keys().collect())
}

/// Each part of a file of this form.
fn model(form: Form) -> rusqlite::Result<BTreeMap<Part, (String, String)>> {
    let model = Connection::open_in_memory()?;
    model.execute_batch(&ddl::tables(form))?;
    model.execute_batch(&ddl::guards(form))?;
    parts(&model)
}

/// Each part with its table and its text.
fn parts(connection: &Connection) -> rusqlite::Result<BTreeMap<Part, (String, String)>> {
    let mut statement =
        connection.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL")?;
    let rows = statement.query_map([], |row| {
        let part = Part {
            kind: row.get(0)?,
            name: row.get(1)?,
        };
        Ok((part, (row.get(2)?, row.get(3)?)))
    })?;
    rows.collect()
}
