//! The IREE VM's values, refs, buffers, lists, calling conventions, native modules and contexts.
#![deny(unsafe_code)]

pub mod convention;
mod status;
mod trap;

pub use convention::{Atom, CallingConvention, ConventionError, Item};
pub use status::StatusCode;
pub use trap::{Result, Trap, TrapFrame};
