//! The `hal_inline` VM module: buffers and buffer views for programs that run where their memory is.
//!
//! A program compiled for the inline execution model allocates its memory and describes its tensors through the 15
//! functions of this module (`docs/vm.md`, section "The hal_inline module"). [`module()`] builds it; a
//! [`vm::Context`] links it.
//!
//! A `hal.buffer` is no object of its own but a [`vm::Buffer`] under another type ([`HAL_BUFFER_TYPE`]): the storage of
//! a buffer is the buffer. A `hal.buffer_view` is a [`BufferView`]: a buffer with the [`ElementType`], the
//! [`EncodingType`] and the shape of the tensor in it.
//!
//! # Examples
//! ```
//! use vm::{Context, Value};
//!
//! let context = Context::builder().module(vm_hal_inline::module(None)).build()?;
//! let allocate = context.lookup("hal_inline", "buffer.allocate")?;
//! let [hal_buffer, storage] = &context.invoke(&allocate, [Value::I32(64), Value::I64(16)])?[..] else {
//!     unreachable!("buffer.allocate has two results");
//! };
//!
//! // Both refs name the same memory.
//! let (Value::Ref(hal_buffer), Value::Ref(storage)) = (hal_buffer, storage) else {
//!     unreachable!("both are refs");
//! };
//! storage.as_buffer()?.store::<u32>(0, 7)?;
//! assert_eq!(hal_buffer.as_aliased(&vm_hal_inline::HAL_BUFFER_TYPE)?.load::<u32>(0)?, 7);
//! # Ok::<(), vm::Trap>(())
//! ```
#![forbid(unsafe_code)]

mod buffer;
mod buffer_view;
mod device;
mod element;
mod module;
mod shape;
mod view_functions;

/// Runs the examples of the readme.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

pub use buffer::{HAL_BUFFER_TYPE, hal_buffer};
pub use buffer_view::{BUFFER_VIEW_TYPE, BufferView, BufferViewError, MAX_RANK};
pub use element::{ElementType, EncodingType, NumericalType, ParseElementTypeError};
pub use module::{TraceSink, module};
