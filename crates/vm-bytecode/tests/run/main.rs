//! Running bytecode: what each instruction does, what stops a program, and what a host sees of it.
//!
//! One binary, so that linking is paid once. The fixtures and the tables of expected values are in `tests/ops`.
#![expect(clippy::unwrap_used, reason = "a value that is missing ends the test")]

mod asking;
mod backtrace;
mod cases;
mod contexts;
mod document;
mod faults;
mod host;
mod limits;
mod mutation;
mod ops;
mod setup;
