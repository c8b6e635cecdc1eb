//! Telos.
