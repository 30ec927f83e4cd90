//! Hostile input and hostile machines: fuzz inputs once more, mutants of real files, memory that runs out.
//!
//! One program, apart from the other cross-crate tests for its allocator, which counts and refuses.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print as tests do"
)]

mod memory;
mod mutants;
mod native;
mod replay;

use halite_tests::memory::Watched;

#[global_allocator]
static ALLOCATOR: Watched = Watched;
