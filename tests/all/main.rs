//! The cross-crate tests.
