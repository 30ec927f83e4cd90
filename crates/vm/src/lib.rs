//! The IREE VM's values, refs, buffers, lists, calling conventions, native modules and contexts.
#![deny(unsafe_code)]

pub mod argument_block;
mod buffer;
mod context;
pub mod convention;
mod list;
mod module;
mod native;
mod refs;
mod status;
mod trap;
mod value;

pub use argument_block::{ArgumentBlock, ArgumentReader, ArgumentWriter, Results};
pub use buffer::{Access, BUFFER_ALIGNMENT, Buffer, BufferPool, Bytes, BytesOwner, Word};
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
pub use refs::{BUFFER_TYPE, LIST_TYPE, Object, Ref, RefType};
pub use status::StatusCode;
pub use trap::{Result, Trap, TrapFrame};
pub use value::Value;
