//! Tests of the `vmvx` module and of portable executables, through the interfaces programs use.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod executable;
mod exports;
