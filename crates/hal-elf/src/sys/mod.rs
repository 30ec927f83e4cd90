//! The operating system and the processor: pages, their protection, and instruction caches.
//!
//! The only folder with `cfg` on systems and the only one that asks the system for anything.

#[cfg(unix)]
mod cache;
#[cfg(unix)]
#[path = "unix.rs"]
mod host;
#[cfg(not(unix))]
#[path = "unsupported.rs"]
mod host;

pub(crate) use host::{Mapping, WritableMapping, page_size};
