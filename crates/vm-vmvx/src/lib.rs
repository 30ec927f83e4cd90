//! The loader of portable bytecode kernels and the `vmvx` VM module they import.
//!
//! Modules compiled with IREE's `vmvx` backend carry their kernels as VM bytecode. [`VmvxLoader`] loads them as
//! executables like any other, so that a model runs without one byte of foreign machine code; kernels of programs that
//! were compiled with microkernels call the functions of [`vmvx_module`].
//!
//! What this mode guarantees and costs is in `docs/vmvx.md`.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod executable;
mod kernels;
mod loader;
mod module;
mod span;

pub use loader::VmvxLoader;
pub use module::vmvx_module;
