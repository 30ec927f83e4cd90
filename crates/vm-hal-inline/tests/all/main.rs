//! The module through its public interface, called as programs call it.
#![expect(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod buffers;
mod device;
mod program;
mod trace;
mod views;
