//! Every bound of this crate, each with its reason. Reaching one is an error or a recorded drop, never silence.

use std::time::Duration;

/// Bytes of one stored record. A larger value belongs in an artifact, which streams.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
/// Bytes above which a payload value that the engine writes is stored as an artifact of kind `payload`.
pub const INLINE_VALUE_BYTES_MAX: usize = 64 << 10;
/// Bytes of one artifact chunk: small enough to be read whole, large enough that a manifest stays short.
pub const CHUNK_BYTES_MAX: usize = 256 << 10;
/// Bytes of an artifact written between two commit groups, so that a large one does not stall small appends.
pub const ARTIFACT_SLICE_BYTES_MAX: usize = 4 << 20;
/// Bytes of a schema definition given inline in a draft.
pub const INLINE_SCHEMA_BYTES_MAX: usize = 1 << 10;
/// Bytes of a topic name.
pub const TOPIC_BYTES_MAX: usize = 256;
/// Bytes of one id inside a topic name (run, token, conversation, project, request).
pub const SEGMENT_BYTES_MAX: usize = 96;
/// Bytes of the id of a telos region or zone: what a telos fleet accepts, so that every scope here is one there.
pub const SCOPE_ID_BYTES_MAX: usize = 128;
/// Bytes of a birth header `key`, an idempotency key, an owned name.
pub const KEY_BYTES_MAX: usize = 256;
/// Bytes of the name of an update.
pub const UPDATE_NAME_BYTES_MAX: usize = 240;
/// Bytes of an envelope type and of an author.
pub const NAME_BYTES_MAX: usize = 128;
/// Headers of one envelope, birth headers included.
pub const HEADERS_MAX: usize = 64;
/// Envelopes of one batch: it must fit one commit group.
pub const BATCH_MAX: usize = 10_000;
/// Batches that may wait for a commit; further appends wait for room.
pub const QUEUE_MAX: usize = 65_536;
/// Groups that one append commits, its own included, before it hands the lead to a thread: under load that never ends
/// nobody's append lasts for ever.
pub const LED_GROUPS_MAX: u32 = 32;
/// Of so many lone appends of tasks one lets the others go first, to see whether there are any; once there are, each
/// does, until so many commits in a row held one batch. It costs about a microsecond, and a group shares one sync.
pub const COMPANY_LOOK: u32 = 16;
/// Envelopes of one commit group, so that a group stays short on the disk.
pub const GROUP_MAX: usize = 4_096;
/// How long a deferred append may wait for a commit to ride on.
pub const DEFERRED_DELAY_MAX: Duration = Duration::from_millis(100);
/// How long a commit waits for another process that holds the store.
pub const STORE_WAIT_MAX: Duration = Duration::from_secs(10);
/// How long a process may take the store again and again while another waits for it: long enough that changing hands
/// costs little, short enough that ten processes each get it several times in a quarter of a second.
pub const TURN_MAX: Duration = Duration::from_millis(5);
/// How long whoever is next may leave a free store untaken before it is passed over: it is dead or stopped.
pub const PASSED_OVER_AFTER: Duration = Duration::from_millis(20);
/// How long the last handle that goes waits for another process that opens or closes the store at the same moment.
pub const CLOSE_WAIT_MAX: Duration = Duration::from_secs(1);
/// How often foreign commits are looked for.
pub const FOREIGN_POLL: Duration = Duration::from_millis(25);
/// Envelopes read in one page; no read transaction outlives one.
pub const PAGE_MAX: usize = 512;
/// Ids read in one page, where nothing else of an envelope is wanted.
pub const ID_PAGE_MAX: usize = 8_192;
/// Threads that read and examine a log at the same time; more would wait for the one that chains what they found.
pub const VERIFIERS_MAX: usize = 4;
/// Pages of one such thread that wait for the chain.
pub const VERIFIED_PAGES_MAX: usize = 4;
/// Bytes of the records of one page, so that a page of large records stays small in memory.
pub const PAGE_BYTES_MAX: usize = 4 << 20;
/// Envelopes that a page may pass over in search of those of its pattern; then it ends early and says where to go on.
pub const PASSED_OVER_MAX: usize = 65_536;
/// Envelopes of a range that is walked for a pattern, however many topics the store has: a few milliseconds.
pub const WALKED_MAX: usize = 8_192;
/// Read connections that one process keeps open.
pub const READERS_MAX: usize = 4;
/// Patterns for which a read connection remembers the topics they select; all are forgotten when full.
pub const CACHED_PATTERNS_MAX: usize = 16;
/// Bytes of the write-ahead log above which it is moved into the store: long enough that overwriting it is the rule.
pub const WAL_BYTES_MAX: u64 = 16 << 20;
/// Bytes of one line of an export: the largest record or schema, or a chunk, with what stands around it.
pub const EXPORT_LINE_BYTES_MAX: usize = RECORD_BYTES_MAX + (64 << 10);
/// Pages that a backup copies between two words on how far it has come.
pub const BACKUP_STEP_PAGES: i32 = 1_024;
/// Bytes of the write-ahead log from which on whoever appends waits until it is moved, unless a reader holds it: the disk
/// does not keep up.
pub const WAL_RUN_AHEAD_BYTES_MAX: u64 = 4 * WAL_BYTES_MAX;
/// Bytes of the write-ahead log that the writer moves itself, between two commits: a moment's work.
pub const WAL_REST_BYTES_MAX: u64 = 1 << 20;
/// Bytes that the file of the write-ahead log keeps when it begins anew; what a reader has made it grow beyond is cut.
pub const WAL_KEPT_BYTES_MAX: u64 = 64 << 20;
/// How often it is looked whether a reader that holds the write-ahead log has ended.
pub const WAL_LOOK: Duration = Duration::from_secs(1);
/// How long a reader waits for another process that recovers or closes the file.
pub const READ_WAIT_MAX: Duration = Duration::from_secs(5);
/// How often a reading that met the file as another process was closing or recovering it is tried again, a little later
/// each time, before what it met is believed.
pub const READ_AGAIN_MAX: u32 = 5;
/// Envelopes in one run of the index of ids, which is written in one transaction and read whole: one megabyte.
pub const ID_INDEX_BATCH_MAX: usize = 65_536;
/// How long the side file is waited for while another process writes to it; then the store is read without it.
pub const SIDE_WAIT_MAX: Duration = Duration::from_millis(250);
/// Envelopes folded since the last snapshot of a fold before another one is written: some ten milliseconds of work.
pub const SNAPSHOT_EVERY: u64 = 4_096;
/// Bytes of a state that take as long to write and to read back as one envelope takes to be folded. A large state is put
/// aside after so much longer a way, so that snapshots never cost more than they save.
pub const SNAPSHOT_BYTES_PER_ENVELOPE: u64 = 64;
/// Bytes of a state that is put aside; a larger one is folded from the log each time.
pub const SNAPSHOT_BYTES_MAX: usize = 32 << 20;
/// Snapshots kept for one store; the one that lies furthest back gives way.
pub const SNAPSHOTS_MAX: usize = 64;
/// Bytes of all snapshots of one store; those that lie furthest back give way.
pub const SNAPSHOTS_BYTES_MAX: usize = 128 << 20;
/// Envelopes that an id is looked up to by its first digits; more are not told apart, more digits are asked for.
pub const ID_MATCHES_MAX: usize = 16;
/// Topics of a pattern that are merged one by one; the rows of more are picked out of the whole log.
pub const MERGED_TOPICS_MAX: usize = 32;
/// Bytes of a value that an error repeats; a larger one is told by its path alone.
pub const QUOTED_BYTES_MAX: usize = 256;
/// Recent envelopes kept in memory for live subscriptions; one that lags further reads the file.
pub const RING_MAX: usize = 4_096;
/// Bytes of the records of those envelopes; the oldest go first.
pub const RING_BYTES_MAX: usize = 32 << 20;
/// Envelopes that wait for one ephemeral subscriber; more are dropped and counted.
pub const EPHEMERAL_QUEUE_MAX: usize = 1_024;
/// Bytes of the records of those envelopes.
pub const EPHEMERAL_QUEUE_BYTES_MAX: usize = 16 << 20;
/// Ephemeral topics whose `seq` a bus counts without gaps; in one that was not published to for longer it jumps ahead.
pub const EPHEMERAL_TOPICS_MAX: usize = 16_384;
/// Values that a bus retains for subscribers that come later; of more, the oldest are let go of, with a warning.
pub const RETAINED_MAX: usize = 16_384;
/// Bytes of the records of those values.
pub const RETAINED_BYTES_MAX: usize = 64 << 20;
/// Topics by which losses on the way to another process are told apart; those of more are told to every listener.
pub const LOST_TOPICS_MAX: usize = 256;
/// Other processes that one sends ephemeral topics to, and that it listens to: each costs a connection and a queue.
pub const BRIDGE_PEERS_MAX: usize = 128;
/// Bytes handed to the socket of another process at once, so that many small envelopes share one write.
pub const BRIDGE_WRITE_BYTES: usize = 64 << 10;
/// How long one that connects may take to say who it is.
pub const BRIDGE_HELLO_WAIT: Duration = Duration::from_secs(30);
/// The wait before another process is tried again that could not be reached, doubled each time.
pub const BRIDGE_RETRY_MIN: Duration = Duration::from_millis(100);
/// The longest such wait.
pub const BRIDGE_RETRY_MAX: Duration = Duration::from_secs(10);
/// How long a process that leaves waits for others to take what it published last; one that reads takes no part of it.
pub const BRIDGE_LINGER_MAX: Duration = Duration::from_millis(100);
/// How often a socket is opened anew when the folder for it goes away at the same moment.
pub const BRIDGE_ATTEMPTS_MAX: usize = 8;
/// Topics, keys and interned names whose heads are cached; the cache is emptied when full.
pub const CACHED_HEADS_MAX: usize = 100_000;
/// Compiled schemas kept in memory; emptied when full.
pub const CACHED_VALIDATORS_MAX: usize = 1_024;
/// The wait before the second attempt of a step that names none: long enough for a busy service, short to a person.
pub const BACKOFF_MIN: Duration = Duration::from_millis(100);
/// How often a body that waits for a moment on the log looks at the clock of the wall: after a machine was suspended, its
/// timers fire at most so late. Of ten thousand sleeping bodies two thousand look each second, each for a moment.
pub const CLOCK_LOOK: Duration = Duration::from_secs(5);
/// The longest wait between two attempts of a step, unless its failure asks for a longer one.
pub const BACKOFF_MAX: Duration = Duration::from_mins(1);
/// How deep steps that run alone are polled by the body that awaits them, without a task of their own; beyond it each
/// gets one, so that recursion cannot exhaust the stack.
pub const LONE_DEPTH_MAX: usize = 8;
/// Polls of a body that keeps waking itself before other tasks get a turn.
pub const BODY_POLLS_MAX: u32 = 128;
/// Turns that a body is given when it is only rehearsed: one that still wakes itself after them awaits what is not on the
/// log, and is told so.
pub const REHEARSAL_TURNS_MAX: u64 = 20_000;
/// Depth of JSON, written or read: as deep as `serde_json` decodes, and far from exhausting the stack.
pub const JSON_DEPTH_MAX: usize = 127;
/// Bytes of the filter of a wait, which stands on the log and is compared with each envelope of its topics.
pub const FILTER_BYTES_MAX: usize = 64 << 10;
/// Starts without an end after which a step is in doubt: it may be the one that kills the process.
pub const STARTS_WITHOUT_END_MAX: u32 = 3;
/// How long a step that is cancelled, and has asked to be told, may clean up; then it is dropped.
pub const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// How long a transaction on the tables of the program may take: nobody else writes to the store meanwhile.
pub const TRANSACTION_TIME_MAX: Duration = Duration::from_secs(1);
/// Rows that one query of a transaction gives.
pub const TRANSACTION_ROWS_MAX: usize = 100_000;
/// Bytes of a question to a person; what is longer is read as an artifact.
pub const QUESTION_BYTES_MAX: usize = 4 << 10;
/// A hung owner is taken over after three polls of a third of this.
pub const OWNER_TTL: Duration = Duration::from_secs(9);
/// Signals that the driver of a run takes in before what follows from them is appended.
pub const SIGNALS_AT_ONCE_MAX: usize = 1_024;
/// How often whoever waits for an owned name looks whether its owner has died.
pub const OWNER_LOOK: Duration = Duration::from_millis(100);
/// How often a serving process looks for unfinished runs.
pub const SERVE_POLL: Duration = Duration::from_secs(1);
/// How long a serving process leaves a run alone at most that it has taken up and could not bring to its end, and a message
/// whose run is pinned to another build.
pub const RETAKE_WAIT_MAX: Duration = Duration::from_mins(1);
/// How long the handlers of a build that is drained may work on what they have in hand; then it is handed back.
pub const DRAIN_GRACE: Duration = Duration::from_secs(30);
/// Unfinished runs recovered at once.
pub const RECOVERED_AT_ONCE_MAX: usize = 64;
/// Acknowledgements of a consumer that may wait to be recorded, and so messages that a crash hands out once more.
pub const CONSUMER_ACKS_MAX: usize = 256;
/// How long an acknowledgement of a consumer may wait to be recorded.
pub const CONSUMER_ACK_DELAY_MAX: Duration = Duration::from_secs(1);
/// Messages of a consumer that are handed out or wait to be tried again, together.
pub const CONSUMER_IN_FLIGHT_MAX: u32 = 1_024;
/// Messages that a consumer keeps in view from the first that is not settled on; it reads no further meanwhile.
pub const CONSUMER_WINDOW_MAX: usize = 4_096;
/// Waits in the schedule of a consumer; the last one repeats.
pub const CONSUMER_SCHEDULE_MAX: usize = 32;
/// Parked messages of a consumer, past which it hands out nothing more: something is wrong with more than a message.
pub const CONSUMER_PARKED_MAX: usize = 100_000;
/// Redriven messages of a consumer that wait to be handed out.
pub const CONSUMER_REDRIVEN_MAX: usize = 2_048;
/// Messages that wait for a consumer which are counted one by one; more are told as at least so many.
pub const CONSUMER_LAG_MAX: u64 = 10_000;
/// Bytes of the reason why a message was tried again or parked; a longer one is cut, and says so.
pub const CONSUMER_REASON_BYTES_MAX: usize = 1_024;
/// For how long, by its paused clock, a run under a crash matrix may do nothing before it counts as stuck: longer than any
/// timer of a test.
pub const TEST_STUCK_AFTER: Duration = Duration::from_hours(24 * 365 * 10);

const _: () = {
    assert!(
        INLINE_VALUE_BYTES_MAX < RECORD_BYTES_MAX,
        "an inline value fits a record"
    );
    assert!(FILTER_BYTES_MAX < RECORD_BYTES_MAX, "a filter fits a record");
    assert!(
        CHUNK_BYTES_MAX <= ARTIFACT_SLICE_BYTES_MAX,
        "a slice holds at least one chunk"
    );
    assert!(
        CHUNK_BYTES_MAX.div_ceil(3) * 4 < EXPORT_LINE_BYTES_MAX,
        "a chunk fits a line of an export"
    );
    assert!(GROUP_MAX <= QUEUE_MAX, "a group is taken from the queue");
    assert!(
        SNAPSHOT_EVERY <= WALKED_MAX as u64,
        "what lies behind a small snapshot is walked, however many topics there are"
    );
    assert!(
        SNAPSHOT_BYTES_MAX <= SNAPSHOTS_BYTES_MAX,
        "one snapshot of each allowed size fits"
    );
    assert!(
        PAGE_MAX <= RING_MAX,
        "a page that was just committed is still in the ring"
    );
    assert!(
        CONSUMER_WINDOW_MAX + CONSUMER_REDRIVEN_MAX < BATCH_MAX,
        "all that a consumer has to record fits one batch"
    );
};
