//! The IREE VM's values, refs, buffers, lists, calling conventions, native modules and contexts.
//!
//! The VM without bytecode: what values are, how calls pass them, how modules are linked. `vm-bytecode` adds modules
//! that are read from files; nothing here knows of files, bytecode or HAL.
//!
//! * [`Value`], [`Ref`], [`Buffer`], [`List`]: what programs compute with. `buffer/memory.rs` is the one room of `unsafe`
//!   code; shared bytes are only accessed atomically.
//! * [`CallingConvention`] and [`argument_block`]: how a call's values lie in words.
//! * [`Module`], [`Instance`], [`NativeModule`]: what a context links, and how to write one in Rust.
//! * [`Context`], [`PreparedCall`], [`CallSite`], [`Invocation`]: modules with their state, calls, limits.
//! * [`Trap`]: the error, with a status code and the frames it passed through.
//!
//! # Examples
//! ```
//! use vm::{Context, NativeModule, Value};
//!
//! let math = NativeModule::builder("math", 0)
//!     .function("add", |_: &(), a: i32, b: i32| Ok((a.wrapping_add(b),)))
//!     .build()?;
//! let context = Context::builder().module(math).build()?;
//! let add = context.lookup("math", "add")?;
//! let results = context.invoke(&add, [Value::I32(40), Value::I32(2)])?;
//! assert!(matches!(results[..], [Value::I32(42)]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! `tracing` adds the spans `link` and `invoke` of the [`tracing`](https://docs.rs/tracing) crate.
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod argument_block;
mod buffer;
mod call_site;
mod context;
pub mod convention;
mod list;
mod module;
mod native;
mod prepared;
mod refs;
mod status;
mod trap;
mod value;

pub use argument_block::{ArgumentBlock, ArgumentReader, ArgumentWriter, Results};
pub use buffer::{Access, BUFFER_ALIGNMENT, Buffer, BufferPool, Bytes, BytesOwner, Word};
pub use call_site::{CallShape, CallSite};
pub use context::{
    Context, ContextBuilder, Function, InterruptHandle, Invocation, InvocationOptions,
    MAX_CALL_DEPTH, Tracer,
};
pub use convention::{Atom, CallingConvention, ConventionError, Item};
pub use list::{Element, ElementType, List, MAX_LIST_LENGTH};
pub use module::{
    Call, Dependency, Export, Import, ImportTarget, Instance, Linkage, Module, RefTypes, Signal,
};
pub use native::{
    Argument, NativeModule, NativeModuleBuilder, NativeModuleError, ReturnValue, ReturnValues,
    TypedFunction,
};
pub use prepared::PreparedCall;
pub use refs::{BUFFER_TYPE, LIST_TYPE, Object, Ref, RefType};
pub use status::StatusCode;
pub use trap::{Result, Trap, TrapFrame};
pub use value::Value;
