//! The layout of the file. Every table is of the store of record: it refuses UPDATE, DELETE and replacing INSERT.

use std::fmt::Write as _;

/// Marks a SQLite file as a store (`neur` in ASCII).
pub(super) const APPLICATION: i64 = 0x6e65_7572;
/// The format this program reads and writes, kept in `user_version`.
pub(super) const FORMAT: i64 = 2;

/// Tables and indexes. `pos` is the rowid, so every index ends in it; no index stands on a hash of an envelope, which
/// would make appends several times slower and slower still with size.
const TABLES: &str = "
CREATE TABLE topic (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE type (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE schema (
    place INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    definition TEXT NOT NULL
) STRICT;
CREATE TABLE envelope (
    pos INTEGER PRIMARY KEY CHECK (pos > 0),
    topic INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    type INTEGER NOT NULL,
    at INTEGER NOT NULL,
    cause INTEGER CHECK (cause < pos),
    key TEXT,
    idempotency TEXT,
    id BLOB NOT NULL,
    record TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX envelope_seq ON envelope (topic, seq);
CREATE INDEX envelope_type ON envelope (type);
CREATE INDEX envelope_cause ON envelope (cause) WHERE cause IS NOT NULL;
CREATE INDEX envelope_key ON envelope (topic, key) WHERE key IS NOT NULL;
CREATE UNIQUE INDEX envelope_idempotency ON envelope (idempotency) WHERE idempotency IS NOT NULL;
CREATE TABLE chunk (hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32), bytes BLOB NOT NULL) STRICT;
CREATE TABLE manifest (
    hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
    bytes INTEGER NOT NULL,
    chunks BLOB NOT NULL CHECK (length(chunks) % 32 = 0)
) STRICT;
";

/// Each table, and when an INSERT into it would replace or skip a row.
const GUARDED: [(&str, &str); 6] = [
    (
        "topic",
        "EXISTS (SELECT 1 FROM topic WHERE id = NEW.id OR name = NEW.name)",
    ),
    (
        "type",
        "EXISTS (SELECT 1 FROM type WHERE id = NEW.id OR name = NEW.name)",
    ),
    (
        "schema",
        "NEW.place <> (SELECT ifnull(max(place), 0) + 1 FROM schema)
         OR EXISTS (SELECT 1 FROM schema WHERE hash = NEW.hash)",
    ),
    (
        "envelope",
        "NEW.pos NOT IN (-1, (SELECT ifnull(max(pos), 0) + 1 FROM envelope))
         OR NEW.seq <> (SELECT ifnull(max(seq), 0) + 1 FROM envelope WHERE topic = NEW.topic)
         OR (NEW.idempotency IS NOT NULL AND EXISTS (SELECT 1 FROM envelope WHERE idempotency = NEW.idempotency))",
    ),
    (
        "chunk",
        "EXISTS (SELECT 1 FROM chunk WHERE hash = NEW.hash OR rowid = NEW.rowid)",
    ),
    (
        "manifest",
        "EXISTS (SELECT 1 FROM manifest WHERE hash = NEW.hash OR rowid = NEW.rowid)",
    ),
];

/// What an archive has besides: what it holds of which store, and the hash of that text.
const ARCHIVE: &str = "
CREATE TABLE archive (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    hash BLOB NOT NULL CHECK (length(hash) = 32),
    manifest TEXT NOT NULL
) STRICT;
";

/// What kind of file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// A store, to which rows come.
    Store,
    /// A sealed archive, to which none comes. It bears the marks of a store, so that every program that reads one reads
    /// it, and the guards of its tables tell whoever writes.
    Archive,
}

/// Marks, tables and indexes of an empty SQLite file.
pub(super) fn tables(form: Form) -> String {
    let archive = if form == Form::Archive { ARCHIVE } else { "" };
    format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {FORMAT};{TABLES}{archive}")
}

/// The triggers that refuse change.
pub(super) fn guards(form: Form) -> String {
    let mut text = String::new();
    for (table, taken) in GUARDED {
        unchanging(&mut text, table);
        // SQLite keeps a journal of every page that an insert touches if a trigger may abort it, if a check calls a
        // function, or if the insert names its rowid. The log, written row by row, needs none and so has none of these. A
        // rowid that is left to SQLite is the next one, and a trigger sees -1.
        let how = if table == "envelope" { "FAIL" } else { "ABORT" };
        let _ = match form {
            Form::Store => writeln!(
                text,
                "CREATE TRIGGER {table}_next BEFORE INSERT ON {table} WHEN {taken}
                 BEGIN SELECT RAISE({how}, '{table} is append only: this is not its next row'); END;"
            ),
            Form::Archive => sealed(&mut text, table),
        };
    }
    if form == Form::Archive {
        unchanging(&mut text, "archive");
        // Writing to a string cannot fail.
        let _ = sealed(&mut text, "archive");
    }
    text
}

fn unchanging(text: &mut String, table: &str) {
    for verb in ["UPDATE", "DELETE"] {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table}
             BEGIN SELECT RAISE(ABORT, '{table} is append only: nothing in it is changed or removed'); END;"
        );
    }
}

fn sealed(text: &mut String, table: &str) -> std::fmt::Result {
    writeln!(
        text,
        "CREATE TRIGGER {table}_sealed BEFORE INSERT ON {table}
         BEGIN SELECT RAISE(ABORT, 'this is a sealed archive: nothing is appended to it'); END;"
    )
}
