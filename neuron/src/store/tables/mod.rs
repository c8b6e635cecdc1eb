//! The tables of the program, which stand in the file of the store beside its own.

mod row;
mod value;

use std::fmt;

use serde::{Serialize, de::DeserializeOwned};

pub(crate) use value::{Parameters, Value};

use crate::{Error, ErrorKind, Result, envelope::Prepared, limits};

/// SQL on the tables of the program, in the very commit that completes the call: see [`Cx::transaction`](crate::Cx::transaction).
///
/// What it does becomes durable together with the answer of the call, or not at all. It cannot be committed or rolled back
/// by hand: an error of the body takes everything back.
///
/// ```compile_fail,E0599
/// # use neuron::{Result, Transaction};
/// fn early(tx: &Transaction<'_>) -> Result<()> {
///     tx.commit()?; // there is no such method
///     Ok(())
/// }
/// ```
///
/// Parameters are anything that serialises: a tuple or a list for `?1, ?2, …`, a struct or a map for `:name`, one value by
/// itself, `()` for none. Numbers, text, `bool` (as 0 and 1), options, enums without fields (as their name) and lists of
/// bytes fit a column; anything else is better written as JSON text.
///
/// An error repeats the statement, cut to what fits a line, and never a parameter: what is not for the log is a parameter.
///
/// The tables of the engine are closed to it, and so are `PRAGMA`, `ATTACH`, `ANALYZE`, `REINDEX`, temporary tables and
/// statements that begin or end transactions: [`ErrorKind::Denied`].
pub struct Transaction<'a> {
    tables: &'a dyn Tables,
}

/// Work of the program on its own tables, and the draft that tells of it.
pub(crate) struct Work(Run);

type Run = Box<dyn FnOnce(&Transaction<'_>) -> Result<Prepared, Error> + Send>;

impl Work {
    pub(crate) fn new(work: impl FnOnce(&Transaction<'_>) -> Result<Prepared, Error> + Send + 'static) -> Self {
        Self(Box::new(work))
    }

    pub(crate) fn run(self, tx: &Transaction<'_>) -> Result<Prepared, Error> {
        (self.0)(tx)
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

/// What a store does for a [`Transaction`].
pub(crate) trait Tables {
    /// Runs one statement, gives its rows to `row` with the names of their columns, and counts the rows it has changed.
    fn run(&self, sql: &str, parameters: Parameters, row: Rows<'_>) -> Result<u64, Error>;
}

/// Takes rows, with the names of their columns.
pub(crate) type Rows<'a> = &'a mut dyn FnMut(&[String], Vec<Value>) -> Result<(), Error>;

impl<'a> Transaction<'a> {
    pub(crate) fn on(tables: &'a dyn Tables) -> Self {
        Self { tables }
    }

    /// Runs one statement that gives no rows; how many rows it has inserted, updated or deleted itself.
    ///
    /// ```
    /// # use neuron::{Result, Transaction};
    /// fn pay(tx: &Transaction<'_>, order: u64, cents: i64) -> Result<()> {
    ///     let paid = tx.execute("UPDATE bill SET paid = paid + ?2 WHERE bill = ?1", (order, cents))?;
    ///     if paid == 1 { Ok(()) } else { Err("there is no such bill".into()) }
    /// }
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] for a constraint of a table that does not hold, [`ErrorKind::Denied`] for what is closed,
    /// [`ErrorKind::Misuse`] for SQL that SQLite does not take, parameters that do not fit it, a second statement, or a
    /// statement that gives rows; [`ErrorKind::Timeout`] once
    /// [`TRANSACTION_TIME_MAX`](crate::limits::TRANSACTION_TIME_MAX) is over.
    pub fn execute(&self, sql: &str, parameters: impl Serialize) -> Result<u64, Error> {
        let mut refuse = |_: &[String], _: Vec<Value>| {
            let why = "this statement gives rows: take them with `query`";
            Err(Error::new(ErrorKind::Misuse, why))
        };
        self.tables.run(sql, Parameters::of(&parameters)?, &mut refuse)
    }

    /// Runs one statement and gives its rows: as a struct or map by the names of the columns, as a tuple or list by their
    /// order, or as one value if there is one column.
    ///
    /// ```
    /// # use neuron::{Result, Transaction};
    /// #[derive(serde::Deserialize)]
    /// struct Bill {
    ///     bill: u64,
    ///     paid: Option<i64>,
    /// }
    ///
    /// fn open(tx: &Transaction<'_>) -> Result<Vec<u64>> {
    ///     let bills: Vec<Bill> = tx.query("SELECT bill, paid FROM bill", ())?;
    ///     let open = bills.into_iter().filter(|bill| bill.paid.is_none());
    ///     Ok(open.map(|bill| bill.bill).collect())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`execute`](Self::execute); [`ErrorKind::Schema`] for a row that does not fit `T`, and [`ErrorKind::TooLarge`]
    /// for more than [`TRANSACTION_ROWS_MAX`](crate::limits::TRANSACTION_ROWS_MAX) rows.
    pub fn query<T: DeserializeOwned>(&self, sql: &str, parameters: impl Serialize) -> Result<Vec<T>, Error> {
        let mut rows = Vec::new();
        let mut take = |names: &[String], values| {
            if rows.len() == limits::TRANSACTION_ROWS_MAX {
                let max = limits::TRANSACTION_ROWS_MAX;
                let why = format!("a query gives more than {max} rows: say `LIMIT`, or let SQL count and add");
                return Err(Error::new(ErrorKind::TooLarge, why));
            }
            rows.push(row::read(names, values)?);
            Ok(())
        };
        self.tables.run(sql, Parameters::of(&parameters)?, &mut take)?;
        Ok(rows)
    }

    /// As [`query`](Self::query), for the first row alone; `None` if there is none.
    ///
    /// ```
    /// # use neuron::{Result, Transaction};
    /// fn owed(tx: &Transaction<'_>, bill: u64) -> Result<i64> {
    ///     let owed = tx.query_one("SELECT total - paid FROM bill WHERE bill = ?1", bill)?;
    ///     Ok(owed.unwrap_or(0))
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`query`](Self::query).
    pub fn query_one<T: DeserializeOwned>(&self, sql: &str, parameters: impl Serialize) -> Result<Option<T>, Error> {
        let mut first = None;
        let mut take = |names: &[String], values| {
            if first.is_none() {
                first = Some(row::read(names, values)?);
            }
            Ok(())
        };
        self.tables.run(sql, Parameters::of(&parameters)?, &mut take)?;
        Ok(first)
    }
}

impl fmt::Debug for Transaction<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").finish_non_exhaustive()
    }
}

/// What a store without SQL says.
pub(crate) fn no_tables() -> Error {
    let why = "a transaction runs SQL in the file of the store, and this store is in memory: open one with a path (in a \
               test, a file in a temporary folder)";
    Error::new(ErrorKind::Misuse, why)
}
