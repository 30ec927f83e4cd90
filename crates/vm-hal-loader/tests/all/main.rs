//! The module through its public interface: a stand-in for a program imports it, and executables that are not native
//! code tell what reaches them.

#![expect(clippy::unwrap_used, reason = "helpers of tests unwrap as tests do")]

mod dispatch;
mod kernels;
mod load;
mod lookup;
mod module;
mod program;
