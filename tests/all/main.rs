//! The cross-crate tests, in one program so that linking is paid once.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print as tests do"
)]

mod fixtures;
mod isolate;
mod manifest;
mod plugins;
mod programs;
mod soak;
