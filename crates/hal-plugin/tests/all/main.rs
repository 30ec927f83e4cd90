//! Tests of the whole crate through its public interface, with providers written in Rust, plugins
//! linked in, and plugins built by the C compiler.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may panic, and says on stdout what it skips"
)]

mod c_plugins;
mod embedded;
mod flat_memory;
mod manager;
mod oracle;
mod plugin;
mod probe;
mod providers;
mod resolve;
mod reuse;
mod snapshots;
mod system;
