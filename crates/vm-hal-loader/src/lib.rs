//! The `hal_loader` VM module: loading executables and dispatching their functions.
//!
//! A program compiled for the inline execution model carries its kernels as executables. It asks this module whether
//! a format is supported, loads the executable, looks functions up by name and dispatches them on its buffers
//! (`docs/vm.md`, section "The hal_loader module"). [`module()`] builds it from a list of loaders and a dispatcher of
//! [`hal_local`]; a [`vm::Context`] links it.
//!
//! Compilers before IREE 3.12 pass a function as an ordinal, later ones as a 64-bit id that they look up first. The
//! module serves both: it exports `executable.dispatch` once for each calling convention, and the importer's
//! convention chooses.
//!
//! The module holds no `unsafe` code: whoever makes a loader of native code has promised what is needed
//! ([`hal_local::Trust`]).
//!
//! # Examples
//! ```
//! use std::sync::Arc;
//! use hal_local::{InlineDispatcher, LoaderRegistry};
//! use vm::{Access, Buffer, Context, Value};
//!
//! let loaders = LoaderRegistry::new();
//! let module = vm_hal_loader::module(loaders, Arc::new(InlineDispatcher::new()));
//! let context = Context::builder().module(module).build()?;
//!
//! let query = context.lookup("hal_loader", "executable.query_support")?;
//! let format = Buffer::copied_from(b"embedded-elf-pdp_11", Access::HOST)?;
//! let results = context.invoke(&query, [Value::Ref(format.into())])?;
//! assert!(matches!(results[..], [Value::I32(0)]));
//! # Ok::<(), vm::Trap>(())
//! ```
#![forbid(unsafe_code)]

mod bindings;
mod dispatch;
mod executable;
mod failure;
mod functions;
mod module;
mod site;

pub use dispatch::{
    BindingArgument, DispatchAbi, DispatchArguments, DispatchArgumentsError, MAX_BINDINGS,
    parse_dispatch,
};
pub use executable::{EXECUTABLE_TYPE, HalExecutable};
pub use module::module;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
