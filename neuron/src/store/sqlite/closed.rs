//! What is closed to the SQL of a program: the tables of the store, and all that would change the file behind its back.

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use rusqlite::{
    Connection,
    hooks::{AuthAction, AuthContext, Authorization},
};

use super::{ddl::Form, layout};
use crate::{Error, ErrorKind, Result};

/// What a statement was refused for, and whether one has changed the schema.
#[derive(Debug, Default)]
pub(super) struct Closed {
    refusal: Mutex<Option<String>>,
    altered: AtomicBool,
}

impl Closed {
    /// Whether SQLite may do this, and why not.
    pub(super) fn rules(self: &Arc<Self>, context: AuthContext<'_>) -> Authorization {
        match self.rule(&context) {
            Ok(()) => Authorization::Allow,
            Err(why) => {
                let mut refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
                refusal.get_or_insert(why);
                Authorization::Deny
            }
        }
    }

    /// Why the last statement was refused, if it was.
    pub(super) fn refused(&self) -> Option<Error> {
        let refusal = self.refusal.lock().unwrap_or_else(PoisonError::into_inner).take();
        refusal.map(|why| Error::new(ErrorKind::Denied, why))
    }

    fn rule(&self, context: &AuthContext<'_>) -> Result<(), String> {
        use AuthAction::{
            AlterTable, Analyze, Attach, CreateIndex, CreateTable, CreateTrigger, CreateView, CreateVtable, Delete,
            Detach, DropIndex, DropTable, DropTrigger, DropView, DropVtable, Function, Insert, Pragma, Read, Recursive,
            Reindex, Savepoint, Select, Transaction, Update,
        };
        match context.action {
            Function { function_name } if function_name.eq_ignore_ascii_case("load_extension") => closed("extensions"),
            // A text index asks for `data_version`: whether somebody else has written.
            Select
            | Recursive
            | Function { .. }
            | Pragma {
                pragma_name: "data_version",
                pragma_value: None,
            } => Ok(()),
            Insert { table_name } | Update { table_name, .. } if is_statistic(table_name) => closed("statistics"),
            Read { table_name, .. } | Insert { table_name } | Update { table_name, .. } | Delete { table_name } => {
                open(table_name)
            }
            CreateTable { table_name: name }
            | DropTable { table_name: name }
            | AlterTable { table_name: name, .. }
            | CreateView { view_name: name }
            | DropView { view_name: name }
            | CreateVtable { table_name: name, .. }
            | DropVtable { table_name: name, .. } => self.alters(&[name]),
            CreateIndex {
                index_name: name,
                table_name,
            }
            | DropIndex {
                index_name: name,
                table_name,
            }
            | CreateTrigger {
                trigger_name: name,
                table_name,
            }
            | DropTrigger {
                trigger_name: name,
                table_name,
            } => self.alters(&[name, table_name]),
            Pragma { pragma_name, .. } => closed(&format!("`PRAGMA {pragma_name}`")),
            Transaction { .. } | Savepoint { .. } => {
                Err("the call itself begins and ends the transaction: return an error to take everything back".into())
            }
            Attach { .. } | Detach { .. } => closed("other files"),
            Analyze { .. } => closed("statistics"),
            // Making an index fills it.
            Reindex { index_name } => open(table_of(index_name)),
            _ => closed("temporary tables, views and triggers"),
        }
    }

    fn alters(&self, names: &[&str]) -> Result<(), String> {
        self.altered.store(true, Ordering::Relaxed);
        names.iter().try_for_each(|name| open(name))
    }

    /// Whether the schema, if it was changed, still leaves everything of the store alone.
    pub(super) fn check(&self, connection: &Connection) -> rusqlite::Result<Result<(), Error>> {
        if !self.altered.load(Ordering::Relaxed) {
            return Ok(Ok(()));
        }
        let refused = |sql: &str| -> rusqlite::Result<Option<String>> {
            let mut statement = connection.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                let (name, refers): (String, Option<String>) = (row.get(0)?, row.get(1)?);
                let is_ours = match &refers {
                    Some(table) => is_of_a_store(table),
                    None => only_of_an_archive(&name),
                };
                if is_ours {
                    return Ok(Some(refers.map_or_else(
                        || taken(&name),
                        |table| {
                            format!("`{name}` refers to `{table}`, which belongs to the store: keep a copy of its key")
                        },
                    )));
                }
            }
            Ok(None)
        };
        let renamed = refused("SELECT name, NULL FROM sqlite_schema")?;
        let refers = refused(
            "SELECT part.name, key.\"table\" FROM sqlite_schema AS part JOIN pragma_foreign_key_list(part.name) AS key
             WHERE part.type = 'table'",
        )?;
        Ok(match renamed.or(refers) {
            Some(why) => Err(Error::new(ErrorKind::Denied, why)),
            None => Ok(()),
        })
    }
}

fn closed(what: &str) -> Result<(), String> {
    Err(format!(
        "closed to a transaction, which works on the tables of the program alone: {what}"
    ))
}

fn open(name: &str) -> Result<(), String> {
    if is_of_a_store(name) { Err(taken(name)) } else { Ok(()) }
}

fn taken(name: &str) -> String {
    format!(
        "`{name}` belongs to the store: read the log with the query verbs, and give tables of your own another name"
    )
}

/// The table of an index that SQLite makes for a constraint; any other index stands for itself.
fn table_of(index: &str) -> &str {
    let made = index.strip_prefix("sqlite_autoindex_");
    made.and_then(|rest| rest.rsplit_once('_'))
        .map_or(index, |(table, _)| table)
}

fn is_statistic(table: &str) -> bool {
    table
        .get(..11)
        .is_some_and(|start| start.eq_ignore_ascii_case("sqlite_stat"))
}

fn is_of_a_store(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    names().0.contains(&name) || names().1.contains(&name)
}

fn only_of_an_archive(name: &str) -> bool {
    names().1.contains(&name.to_ascii_lowercase())
}

/// What every store has, and what only an archive has besides.
fn names() -> &'static (BTreeSet<String>, BTreeSet<String>) {
    static NAMES: OnceLock<(BTreeSet<String>, BTreeSet<String>)> = OnceLock::new();
    NAMES.get_or_init(|| {
        let of = |form| {
            let parts = layout::made(form).unwrap_or_default();
            parts
                .into_iter()
                .map(|part| part.name.to_ascii_lowercase())
                .collect::<BTreeSet<_>>()
        };
        let (store, archive) = (of(Form::Store), of(Form::Archive));
        let besides = archive.difference(&store).cloned().collect();
        (store, besides)
    })
}
