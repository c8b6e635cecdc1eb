use std::{any::Any, cell::Cell};

use crate::{Error, ErrorKind};

thread_local! {
    /// The scope whose body this thread is polling; 0 if none.
    static CURRENT: Cell<u64> = const { Cell::new(0) };
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// How many lone steps this thread is polling inside each other.
pub(super) fn depth() -> usize {
    DEPTH.get()
}

/// While it lives, this thread polls a lone step.
pub(super) struct Deeper(());

impl Deeper {
    pub(super) fn enter() -> Self {
        DEPTH.set(DEPTH.get() + 1);
        Self(())
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// The scope whose body this thread is polling; 0 if none.
pub(super) fn current() -> u64 {
    CURRENT.get()
}

/// Whether this thread is polling a body. A body starts no run: agents spawn threads, never agents.
pub fn inside() -> bool {
    CURRENT.get() != 0
}

/// While it lives, this thread polls the body of a scope.
pub(super) struct Inside(u64);

impl Inside {
    pub(super) fn enter(tag: u64) -> Self {
        Self(CURRENT.replace(tag))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// What a panic says, as an error.
pub fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Error::new(
        ErrorKind::Panicked,
        format!("panicked: {}", text.unwrap_or("(no message)")),
    )
}
