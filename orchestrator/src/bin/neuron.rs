//! The stock binary.
fn main() {}
