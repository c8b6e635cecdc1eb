//! Numbers as SQLite holds them.

/// SQLite counts in signed numbers; nothing here is ever larger.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// A number that SQLite holds; a negative one is damage, and stands for nothing.
pub(super) fn unsigned(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}
