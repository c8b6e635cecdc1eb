//! The layouts that compete: one base, and each change to it alone.

/// Where the record and the order of the table lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rows by `pos`, the record in them.
    Rowid,
    /// As `Rowid`, with `pos` spelt out in the indexes, which end in it anyway.
    Spelt,
    /// Rows by `pos`, the record in a second table.
    Split,
    /// Rows by (topic, seq), no rowid.
    Clustered,
}

/// What stands between an insert and the rows before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// Nothing: only UPDATE and DELETE are refused.
    None,
    /// A row that is there already is refused.
    Exists,
    /// Anything but the next `pos` and the next `seq` of the topic is refused.
    Gapless,
}

/// Who moves the write-ahead log into the file, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wal {
    /// `SQLite`, inside a commit, every 1,000 pages.
    Auto,
    /// The committer, after a commit that leaves more bytes than this.
    Passive(u64),
}

/// What is indexed beside the order of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexes {
    /// Topic and seq, type, cause, topic and key, idempotency key.
    Design,
    /// Only what an append looks up: types and causes are left to a file of their own.
    NoQueries,
    /// As `Design`, and the run.
    WithRun,
    /// As `Design`, and the id, unique.
    WithId,
}

/// One layout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    pub(crate) guard: Guard,
    pub(crate) wal: Wal,
    pub(crate) page: u32,
    pub(crate) cache_kib: u32,
    pub(crate) indexes: Indexes,
    /// Whether the columns carry CHECK constraints.
    pub(crate) checks: bool,
}

const BASE: Candidate = Candidate {
    name: "base",
    shape: Shape::Rowid,
    guard: Guard::Gapless,
    wal: Wal::Passive(16 << 20),
    page: 4096,
    cache_kib: 64 << 10,
    indexes: Indexes::Design,
    checks: true,
};

/// Every layout, the base first.
pub(crate) const ALL: &[Candidate] = &[
    BASE,
    Candidate {
        name: "guard-none",
        guard: Guard::None,
        ..BASE
    },
    Candidate {
        name: "guard-exists",
        guard: Guard::Exists,
        ..BASE
    },
    Candidate {
        name: "checks-none",
        checks: false,
        ..BASE
    },
    Candidate {
        name: "page-8k",
        page: 8192,
        ..BASE
    },
    Candidate {
        name: "page-16k",
        page: 16384,
        ..BASE
    },
    Candidate {
        name: "wal-auto",
        wal: Wal::Auto,
        ..BASE
    },
    Candidate {
        name: "wal-4m",
        wal: Wal::Passive(4 << 20),
        ..BASE
    },
    Candidate {
        name: "wal-64m",
        wal: Wal::Passive(64 << 20),
        ..BASE
    },
    Candidate {
        name: "cache-2m",
        cache_kib: 2 << 10,
        ..BASE
    },
    Candidate {
        name: "cache-16m",
        cache_kib: 16 << 10,
        ..BASE
    },
    Candidate {
        name: "spelt",
        shape: Shape::Spelt,
        ..BASE
    },
    Candidate {
        name: "split",
        shape: Shape::Split,
        ..BASE
    },
    Candidate {
        name: "clustered",
        shape: Shape::Clustered,
        ..BASE
    },
    Candidate {
        name: "no-query",
        indexes: Indexes::NoQueries,
        ..BASE
    },
    Candidate {
        name: "lean-2k",
        indexes: Indexes::NoQueries,
        page: 2048,
        ..BASE
    },
    Candidate {
        name: "page-1k",
        page: 1024,
        ..BASE
    },
    Candidate {
        name: "page-2k",
        page: 2048,
        ..BASE
    },
    Candidate {
        name: "run-index",
        indexes: Indexes::WithRun,
        ..BASE
    },
    Candidate {
        name: "id-index",
        indexes: Indexes::WithId,
        ..BASE
    },
];

impl Candidate {
    /// Tables, indexes and triggers.
    pub(crate) fn ddl(&self) -> String {
        [self.tables(), self.indexes(), self.triggers()].concat()
    }

    fn tables(&self) -> String {
        let check = |text: &'static str| if self.checks { text } else { "" };
        let (pos, end) = match self.shape {
            Shape::Clustered => (
                "pos INTEGER NOT NULL UNIQUE",
                ", PRIMARY KEY (topic, seq)) STRICT, WITHOUT ROWID;",
            ),
            _ => ("pos INTEGER PRIMARY KEY", ") STRICT;"),
        };
        let run = if self.indexes == Indexes::WithRun {
            ", run INTEGER"
        } else {
            ""
        };
        let record = if self.shape == Shape::Split {
            ""
        } else {
            ", record TEXT NOT NULL"
        };
        let second = match self.shape {
            Shape::Split => "CREATE TABLE record (pos INTEGER PRIMARY KEY, record TEXT NOT NULL) STRICT;",
            _ => "",
        };
        format!(
            "CREATE TABLE envelope ({pos}, topic INTEGER NOT NULL, seq INTEGER NOT NULL, type INTEGER NOT NULL,
             at INTEGER NOT NULL, cause INTEGER {}, key TEXT, idempotency TEXT {run},
             id BLOB NOT NULL {}{record}{end}{second}",
            check("CHECK (cause < pos)"),
            check("CHECK (length(id) = 32)"),
        )
    }

    fn indexes(&self) -> String {
        let pos = if matches!(self.shape, Shape::Spelt | Shape::Clustered) {
            ", pos"
        } else {
            ""
        };
        let sequence = match self.shape {
            Shape::Clustered => "",
            _ => "CREATE UNIQUE INDEX envelope_seq ON envelope (topic, seq);",
        };
        let id = if self.indexes == Indexes::WithId {
            "CREATE UNIQUE INDEX envelope_id ON envelope (id);"
        } else {
            ""
        };
        let run = if self.indexes == Indexes::WithRun {
            "CREATE INDEX envelope_run ON envelope (run) WHERE run IS NOT NULL;"
        } else {
            ""
        };
        let query = if self.indexes == Indexes::NoQueries {
            String::new()
        } else {
            format!(
                "CREATE INDEX envelope_type ON envelope (type{pos});
                 CREATE INDEX envelope_cause ON envelope (cause{pos}) WHERE cause IS NOT NULL;"
            )
        };
        format!(
            "{sequence}{id}{run}{query}
             CREATE INDEX envelope_key ON envelope (topic, key{pos}) WHERE key IS NOT NULL;
             CREATE UNIQUE INDEX envelope_idempotency ON envelope (idempotency) WHERE idempotency IS NOT NULL;"
        )
    }

    fn triggers(&self) -> String {
        let tables: &[&str] = match self.shape {
            Shape::Split => &["envelope", "record"],
            _ => &["envelope"],
        };
        let refuse = |table: &&str| {
            format!(
                "CREATE TRIGGER {table}_update BEFORE UPDATE ON {table} BEGIN SELECT RAISE(ABORT, 'append only'); END;
                 CREATE TRIGGER {table}_delete BEFORE DELETE ON {table} BEGIN SELECT RAISE(ABORT, 'append only'); END;"
            )
        };
        let guard = |(table, condition): &(&str, &str)| {
            format!(
                "CREATE TRIGGER {table}_insert BEFORE INSERT ON {table} WHEN {condition}
                 BEGIN SELECT RAISE(ABORT, 'not the next row'); END;"
            )
        };
        let refusals = tables.iter().map(refuse);
        refusals.chain(self.guards().iter().map(guard)).collect()
    }

    fn guards(&self) -> Vec<(&'static str, &'static str)> {
        let envelope = match self.guard {
            Guard::None => return Vec::new(),
            Guard::Exists => {
                "EXISTS (SELECT 1 FROM envelope WHERE pos = NEW.pos)
                 OR EXISTS (SELECT 1 FROM envelope WHERE topic = NEW.topic AND seq = NEW.seq)
                 OR (NEW.idempotency IS NOT NULL
                     AND EXISTS (SELECT 1 FROM envelope WHERE idempotency = NEW.idempotency))"
            }
            Guard::Gapless => {
                "NEW.pos <> (SELECT ifnull(max(pos), 0) + 1 FROM envelope)
                 OR NEW.seq <> (SELECT ifnull(max(seq), 0) + 1 FROM envelope WHERE topic = NEW.topic)
                 OR (NEW.idempotency IS NOT NULL
                     AND EXISTS (SELECT 1 FROM envelope WHERE idempotency = NEW.idempotency))"
            }
        };
        let record = "NEW.pos <> (SELECT ifnull(max(pos), 0) + 1 FROM record)";
        match self.shape {
            Shape::Split => vec![("envelope", envelope), ("record", record)],
            _ => vec![("envelope", envelope)],
        }
    }
}
