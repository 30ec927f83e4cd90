//! Tests of the crate through its public interface, with kernels in Rust and kernels that a compiler
//! made.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

mod dispatches;
mod fixtures;
mod kernels;
mod loaders;
mod pools;
mod sites;
mod support;
