//! The commands for tools, `inspect`, `check`, `plugin`, `exec`, `bench`, `compile` and `completions`: what they print,
//! where, and with which exit status.
//!
//! Expected texts are in `expected/`; `HALITE_RENEW=1` makes the tests write them.

#![expect(clippy::unwrap_used, reason = "helpers of tests may panic")]
#![expect(clippy::print_stdout, reason = "tests say why they do nothing")]

mod bench;
mod check;
mod compile;
mod completions;
mod exec;
mod inspect;
mod plugin;
mod support;
