//! The `repr(C)` types that cross IREE's executable plugin and executable library boundaries.
//!
//! This crate holds the plugin ABI 0.1 and the executable library ABI 0.5 and 0.6: structs with the
//! exact C layout, the integer codes and flags they carry, and the two symbol names by which a
//! loader finds them. It holds no code that acts on them: nothing here dereferences a pointer,
//! allocates or calls a function, so the crate is `no_std` and free of `unsafe`.
//!
//! The one rule to know: **every value here is foreign**. Codes, kinds and flags are open integer
//! newtypes, function pointers that C may leave NULL are `Option`s, and pointers are raw. Turn them
//! into checked types of your own once, at the edge.
//!
//! # Map
//!
//! | items | what they describe |
//! |---|---|
//! | [`StatusCode`], [`Status`] | the result of a call across the boundary |
//! | [`StringView`], [`StringPair`], [`Allocator`] | values passed along |
//! | [`PluginHeader`], [`PluginV0`], [`ResolveParams`] | a plugin, from query to unload |
//! | [`ImportFn`], [`ImportThunkFn`] | a function a plugin supplies, and how kernels reach it |
//! | [`Environment`], [`DispatchState`], [`WorkgroupState`], [`DispatchFn`] | a kernel call |
//! | [`processor`] | the CPU feature bits in [`Environment::processor`] |
//! | [`library`] | the tables of an executable library, per version |
//!
//! Every struct has its size, alignment and field offsets asserted at compile time, for 64-bit and
//! 32-bit targets ([`assert_layout!`]); `tests/header.rs` compares them with what a C compiler
//! makes of `include/halite_plugin.h`. The contract behind the layouts (who calls what, when, on
//! which thread, and who owns the result) is `docs/abi.md`.
//!
//! # Examples
//!
//! ```
//! use hal_abi::{Status, StatusCode};
//!
//! // A pointer-sized foreign status: zero is OK, the low five bits are the code.
//! let status = Status(5);
//! assert!(!status.is_ok());
//! assert_eq!(status.code(), StatusCode::NOT_FOUND);
//! assert_eq!(status.code().to_string(), "NOT_FOUND");
//! ```

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod allocator;
mod dispatch;
mod import;
mod layout;
pub mod library;
mod plugin;
pub mod processor;
mod sanitizer;
mod status;
mod string;

pub use allocator::{AllocParams, Allocator, AllocatorCommand, AllocatorCtlFn};
pub use dispatch::{
    DispatchFn, DispatchState, Environment, LOCAL_MEMORY_PAGE_SIZE, MAX_BINDINGS, MAX_CONSTANTS,
    WorkgroupState,
};
pub use import::{ImportFn, ImportThunkFn, OPTIONAL_IMPORT_PREFIX};
pub use plugin::{
    PLUGIN_QUERY_SYMBOL, PLUGIN_VERSION_0_1, PluginEnvironment, PluginFeatures, PluginHeader,
    PluginLoadFn, PluginQueryFn, PluginResolveFn, PluginUnloadFn, PluginV0, Resolution,
    ResolveParams,
};
pub use processor::Processor;
pub use sanitizer::SanitizerKind;
pub use status::{Status, StatusCode};
pub use string::{StringPair, StringView};

/// Runs the example of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
