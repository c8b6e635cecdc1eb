//! The SQL of a program, inside the write transaction.

use std::{cell::RefCell, path::Path, sync::Arc, time::Instant};

use rusqlite::{
    Batch, Connection, ErrorCode, Statement,
    fallible_iterator::FallibleIterator as _,
    types::{ToSqlOutput, Value as Column, ValueRef},
};

use super::{closed::Closed, fault, write::Writer};
use crate::{
    Error, ErrorKind, Result,
    envelope::Prepared,
    limits,
    store::tables::{Parameters, Rows, Tables, Transaction, Value, Work},
};

/// So many steps of SQLite's machine between two looks at the clock: well under a millisecond.
const STEPS_BETWEEN_LOOKS: i32 = 1_000;

/// The connection, while it belongs to the SQL of a program.
struct Opened<'a> {
    connection: &'a Connection,
    path: &'a Path,
    closed: &'a Arc<Closed>,
    deadline: Instant,
    /// Why nothing of this transaction may stand, whatever the program makes of it.
    broken: RefCell<Option<Error>>,
}

impl Writer {
    /// Runs SQL of the program in the transaction. If it fails, the transaction must be rolled back.
    pub(super) fn open_tables(&mut self, work: Work) -> Result<Prepared, Error> {
        let path = self.path.clone();
        let closed = Arc::new(Closed::default());
        let deadline = Instant::now() + limits::TRANSACTION_TIME_MAX;
        let rules = closed.clone();
        let connection = self.guest();
        connection
            .authorizer(Some(move |context: rusqlite::hooks::AuthContext<'_>| {
                rules.rules(context)
            }))
            .and_then(|()| connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(move || Instant::now() > deadline)))
            .map_err(|error| fault::failed(&path, &error))?;
        let opened = Opened {
            connection,
            path: &path,
            closed: &closed,
            deadline,
            broken: RefCell::default(),
        };
        let outcome = work.run(&Transaction::on(&opened));
        let broken = opened.broken().err();
        let open_to_us = connection
            .progress_handler(0, None::<fn() -> bool>)
            .and_then(|()| connection.authorizer(None::<fn(rusqlite::hooks::AuthContext<'_>) -> _>));
        open_to_us.map_err(|error| fault::failed(&path, &error))?;
        if let Some(broken) = broken {
            return Err(broken);
        }
        let prepared = outcome?;
        closed
            .check(connection)
            .map_err(|error| fault::failed(&path, &error))??;
        Ok(prepared)
    }
}

impl Opened<'_> {
    /// Fails once the transaction cannot stand any more.
    fn broken(&self) -> Result<(), Error> {
        if let Some(error) = &*self.broken.borrow() {
            return Err(error.clone());
        }
        if Instant::now() > self.deadline {
            return Err(self.breaks(late()));
        }
        if self.connection.is_autocommit() {
            let why =
                "SQLite has rolled the transaction back (`OR ROLLBACK`, `RAISE(ROLLBACK)`): let a statement fail alone";
            return Err(self.breaks(Error::new(ErrorKind::Conflict, why)));
        }
        Ok(())
    }

    fn breaks(&self, error: Error) -> Error {
        self.broken.borrow_mut().get_or_insert(error).clone()
    }

    fn statement(&self, sql: &str) -> rusqlite::Result<Result<Statement<'_>, Error>> {
        let misuse = |why: &str| Ok(Err(Error::new(ErrorKind::Misuse, format!("{why}: `{}`", shown(sql)))));
        let mut statements = Batch::new(self.connection, sql);
        let Some(statement) = statements.next()? else {
            return misuse("there is no statement in this SQL");
        };
        // What follows may need what this one makes, so it may as well not compile.
        if !matches!(statements.next(), Ok(None)) {
            return misuse("one statement at a time, this SQL has several");
        }
        Ok(Ok(statement))
    }

    fn run_in(&self, sql: &str, parameters: Parameters, row: Rows<'_>) -> rusqlite::Result<Result<u64, Error>> {
        let mut statement = match self.statement(sql)? {
            Ok(statement) => statement,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = bind(&mut statement, parameters)? {
            return Ok(Err(error.context(format!("`{}`", shown(sql)))));
        }
        let names: Vec<String> = statement.column_names().map(String::from).collect();
        let before = self.connection.total_changes();
        let mut rows = statement.raw_query();
        while let Some(next) = rows.next()? {
            let values = (0..names.len()).map(|column| next.get_ref(column).map(owned));
            match values.collect::<rusqlite::Result<Result<Vec<_>, Error>>>()? {
                Ok(values) => {
                    if let Err(error) = row(&names, values) {
                        return Ok(Err(error));
                    }
                }
                Err(error) => return Ok(Err(error)),
            }
        }
        drop(rows);
        // A statement that changes no rows leaves the number of the last one that did.
        let changed = self.connection.total_changes() != before;
        Ok(Ok(if changed { self.connection.changes() } else { 0 }))
    }

    fn refused(&self, error: &rusqlite::Error, sql: &str) -> Error {
        if let Some(refusal) = self.closed.refused() {
            return refusal;
        }
        let said = |kind: ErrorKind, what: &str| {
            Error::new(kind, format!("{what}: {}", message(error))).context(format!("`{}`", shown(sql)))
        };
        match error.sqlite_error_code() {
            Some(ErrorCode::OperationInterrupted) => self.breaks(late()),
            Some(ErrorCode::ConstraintViolation) => said(ErrorKind::Conflict, "a constraint does not hold"),
            Some(ErrorCode::TooBig) => said(ErrorKind::TooLarge, "a value is too large for a column"),
            Some(
                ErrorCode::Unknown
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::ApiMisuse
                | ErrorCode::SchemaChanged
                | ErrorCode::AuthorizationForStatementDenied,
            )
            | None => said(ErrorKind::Misuse, "SQLite does not take it"),
            // The file, not the SQL: nothing of it may be taken for an answer.
            Some(_) => self.breaks(fault::failed(self.path, error)),
        }
    }
}

impl Tables for Opened<'_> {
    fn run(&self, sql: &str, parameters: Parameters, row: Rows<'_>) -> Result<u64, Error> {
        self.broken()?;
        // What the body has got over is no reason for what fails next.
        drop(self.closed.refused());
        let outcome = self.run_in(sql, parameters, row);
        let outcome = outcome.unwrap_or_else(|error| Err(self.refused(&error, sql)));
        self.broken()?;
        outcome
    }
}

fn late() -> Error {
    let max = limits::TRANSACTION_TIME_MAX;
    let why = format!(
        "the transaction took longer than {max:?}, while nobody else could write: do less in one, and no \
                       other work"
    );
    Error::new(ErrorKind::Timeout, why).retryable()
}

/// What SQLite says, without the statement.
fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(_, Some(said)) => said.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}

/// A statement as an error repeats it.
fn shown(sql: &str) -> String {
    let mut words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.len() > limits::QUOTED_BYTES_MAX {
        let end = (0..=limits::QUOTED_BYTES_MAX)
            .rev()
            .find(|end| words.is_char_boundary(*end));
        words.truncate(end.unwrap_or(0));
        words.push('…');
    }
    words
}

fn owned(value: ValueRef<'_>) -> Result<Value, Error> {
    Ok(match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) => match std::str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(error) => {
                return Err(Error::new(
                    ErrorKind::Schema,
                    format!("a column holds text that is none: {error}"),
                ));
            }
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
    })
}

/// Gives a statement its parameters: all that it has, and no other.
fn bind(statement: &mut Statement<'_>, parameters: Parameters) -> rusqlite::Result<Result<(), Error>> {
    let wanted = statement.parameter_count();
    let misuse = |why: String| Ok(Err(Error::new(ErrorKind::Misuse, why)));
    let given = match parameters {
        Parameters::Listed(values) => (1..).zip(values).collect::<Vec<_>>(),
        Parameters::Named(fields) => {
            let mut given = Vec::with_capacity(fields.len());
            for (name, value) in fields {
                let mut place = None;
                for sign in [':', '@', '$'] {
                    place = place.or(statement.parameter_index(&format!("{sign}{name}"))?);
                }
                match place {
                    Some(place) => given.push((place, value)),
                    None => return misuse(format!("it has no parameter `:{name}`")),
                }
            }
            given
        }
    };
    if given.len() != wanted {
        return misuse(format!("it has {wanted} parameters, and {} are given", given.len()));
    }
    for (place, value) in given {
        let column = match value {
            Value::Null => Column::Null,
            Value::Integer(value) => Column::Integer(value),
            Value::Real(value) => Column::Real(value),
            Value::Text(value) => Column::Text(value),
            Value::Blob(value) => Column::Blob(value),
        };
        statement.raw_bind_parameter(place, ToSqlOutput::Owned(column))?;
    }
    Ok(Ok(()))
}
