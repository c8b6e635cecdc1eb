//! What is wrong is refused with a typed error that says what, where, and what to do; nothing is half-written, and the
//! store goes on.

mod disk;
mod drafts;
mod opening;
