//! Executables of IREE's local CPU runtime: loaders, loaded executables and dispatchers.
//!
//! An *executable* is what the compiler makes of a part of a program: a file with *functions*
//! (kernels) in some format. A *loader* turns the file into an [`Executable`]; a *dispatch* names a
//! function, a number of *workgroups*, constants and *bindings*; a *dispatcher* runs the workgroups.
//!
//! ```text
//! ExecutableParams ──► LoaderRegistry ──► dyn ExecutableLoader ──► dyn Executable
//!                                                                     │ export, lookup
//!                         constants, bindings, workgroup count ──► Dispatch (checked)
//!                                                                     │
//!                                     dyn Dispatcher (inline, pool) ──┴──► Executable::run
//! ```
//!
//! The one rule to know: native code is trusted **once**, by making a [`Trust`]; everything after is
//! safe to call. `README.md` has an example from file to result.
//!
//! # Modules
//!
//! | items | what they are |
//! |---|---|
//! | [`ExecutableLoader`], [`LoaderRegistry`], [`ExecutableParams`], [`ExecutableData`], [`LoadError`] | loading |
//! | [`EmbeddedElfLoader`], [`SystemLibraryLoader`], [`StaticLibraryLoader`], [`Trust`] | the native loaders |
//! | [`Executable`], [`ExportInfo`], [`LookupError`] | what was loaded |
//! | [`Dispatch`], [`Binding`], [`Grid`], [`DispatchError`] | a request to run a function |
//! | [`Dispatcher`], [`InlineDispatcher`], [`PoolDispatcher`], [`Worker`], [`Denormals`] | running it |
//! | [`DispatchSite`], [`DispatchRequest`], [`DispatchRequestError`], [`ExecutableHandle`] | running many like it |
//!
//! # Adding a format
//!
//! Implement [`ExecutableLoader`] and [`Executable`] in another crate; both are safe traits. In
//! [`Executable::run`], walk the workgroups with [`Grid::try_for_each`] and take memory from the
//! [`Worker`]. [`Binding::owner`] leads back to the object behind a binding.
//!
//! # Versions
//!
//! Executable library ABI 0.5 and 0.6 (`docs/abi.md`, section 8) are read into one form by `library`.
//! Past it no code asks for a version.
//!
//! # Features
//!
//! `tracing` adds the spans `load_executable`, `dispatch` and, for what a worker of a pool does of one, `work`,
//! of the [`tracing`](https://docs.rs/tracing) crate.

#![deny(unsafe_code)]

mod binding;
mod data;
mod dispatch;
mod dispatcher;
mod executable;
mod export;
mod grid;
mod library;
mod loader;
mod native;
mod pool;
mod processor;
mod sys;
mod trust;
mod worker;

pub use binding::{BINDING_ALIGNMENT, Binding};
pub use data::ExecutableData;
pub use dispatch::{Dispatch, DispatchError};
pub use dispatcher::{Dispatcher, InlineDispatcher};
pub use executable::{Executable, LookupError};
pub use export::{ExportAttributes, ExportInfo, SourceLocation};
pub use grid::Grid;
/// The status codes that loaders and executables report, named here for those of other crates.
pub use hal_abi::StatusCode;
pub use library::LibraryError;
pub use loader::{
    Decline, EmbeddedElfLoader, ExecutableLoader, ExecutableParams, LoadError, LoaderRegistry,
    StaticLibraryLoader, SystemLibraryLoader,
};
pub use native::{
    Denormals, DispatchRequest, DispatchRequestError, DispatchSite, ExecutableHandle,
};
pub use pool::PoolDispatcher;
pub use trust::Trust;
pub use worker::Worker;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
