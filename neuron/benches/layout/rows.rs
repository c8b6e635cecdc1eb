//! The envelopes that are written: real columns, a canonical record of about 600 bytes, a spread as in use.

use std::fmt::Write as _;

/// Types of the log; the first ones are the frequent ones.
const TYPES: u64 = 20;
/// Envelopes of a topic's life: 3 million make 2,000 topics and those still alive.
const TOPIC_ROWS: u64 = 1_500;
/// Topics of one run.
pub(crate) const RUN_TOPICS: i64 = 5;
const RECORD_BYTES: usize = 600;

/// One envelope as the writer hands it to the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) pos: i64,
    pub(crate) topic: i64,
    pub(crate) seq: i64,
    pub(crate) kind: i64,
    pub(crate) at: i64,
    pub(crate) cause: Option<i64>,
    pub(crate) key: Option<String>,
    pub(crate) idempotency: Option<String>,
    pub(crate) run: i64,
    pub(crate) id: [u8; 32],
    pub(crate) record: String,
}

/// An endless, reproducible log.
#[derive(Debug)]
pub(crate) struct Source {
    live: u64,
    random: u64,
    pos: i64,
    heads: Vec<i64>,
}

impl Source {
    /// A log of which `live` topics are written at the same time; each is left after its share, a new one follows.
    pub(crate) fn new(live: u64) -> Self {
        Self {
            live,
            random: 7,
            pos: 0,
            heads: Vec::new(),
        }
    }

    /// The last position given out.
    pub(crate) fn pos(&self) -> i64 {
        self.pos
    }

    /// Topics written so far.
    pub(crate) fn topics(&self) -> i64 {
        i64::try_from(self.heads.len()).unwrap_or(i64::MAX) - 1
    }

    pub(crate) fn group(&mut self, rows: usize) -> Vec<Row> {
        (0..rows).map(|_| self.row()).collect()
    }

    /// What a lone sequential step writes: its start and its end, in the topic of a run that began after all others.
    pub(crate) fn step(&mut self) -> Vec<Row> {
        let first = self.pos.unsigned_abs() / TOPIC_ROWS;
        let topic = signed(first + self.live) + 1;
        let mut rows = vec![self.row_of(topic), self.row_of(topic)];
        for (row, kind) in rows.iter_mut().zip(1..) {
            row.kind = kind;
            row.key = None;
            row.idempotency = None;
        }
        rows[0].cause = None;
        rows[1].cause = Some(rows[0].pos);
        rows
    }

    fn row(&mut self) -> Row {
        let first = self.pos.unsigned_abs() / TOPIC_ROWS;
        let topic = signed(first + self.below(self.live)) + 1;
        self.row_of(topic)
    }

    fn row_of(&mut self, topic: i64) -> Row {
        self.pos += 1;
        let slot = usize::try_from(topic).unwrap_or(0);
        if self.heads.len() <= slot {
            self.heads.resize(slot + 1, 0);
        }
        self.heads[slot] += 1;
        let seq = self.heads[slot];
        let (pos, at) = (self.pos, 1_790_000_000_000 + self.pos / 4);
        let kind = signed(self.below(TYPES).min(self.below(TYPES))) + 1;
        let back = signed(self.below(1_000)) + 1;
        let cause = (self.below(10) < 3 && back < pos).then_some(pos - back);
        let key = (self.below(10) == 0).then(|| format!("item-{}", self.below(50)));
        let idempotency = (self.below(20) == 0).then(|| format!("{:032x}", self.next()));
        let id = self.id();
        let record = self.record(topic, seq, kind, at, key.as_deref());
        Row {
            pos,
            topic,
            seq,
            kind,
            at,
            cause,
            key,
            idempotency,
            run: (topic - 1) / RUN_TOPICS + 1,
            id,
            record,
        }
    }

    fn id(&mut self) -> [u8; 32] {
        let mut id = [0; 32];
        for part in id.chunks_exact_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes());
        }
        id
    }

    fn record(&mut self, topic: i64, seq: i64, kind: i64, at: i64, key: Option<&str>) -> String {
        let author = format!("researcher-{topic:016}");
        let mut text = String::with_capacity(RECORD_BYTES + 64);
        let _ = write!(
            text,
            r#"{{"at":{at},"author":"{author}","body":{{"artifacts":[],"payloadJSON":{{"key":"{:032x}{:032x}#1","output":""#,
            self.next(),
            self.next()
        );
        let tail = tail(topic, seq, kind, at, key, &author);
        while text.len() + tail.len() < RECORD_BYTES {
            let _ = write!(text, "{:012x} ", self.next() >> 16);
        }
        text.push_str(&tail);
        text
    }

    /// Evenly enough distributed for a bench.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// `SplitMix64`.
    fn next(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

fn tail(topic: i64, seq: i64, kind: i64, at: i64, key: Option<&str>, author: &str) -> String {
    let key = key.map_or_else(String::new, |key| {
        format!(r#"{{"at":{at},"author":"{author}","key":"key","value":"{key}"}},"#)
    });
    format!(
        r#""}},"payloadSchema":"{topic:064x}","type":"step.kind-{kind}"}},"headers":[{key}{{"at":{at},"author":"meter","key":"tokens-in","value":812}}],"parentSeq":{},"seq":{seq},"topic":"agent.{author}.steps"}}"#,
        seq - 1
    )
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
