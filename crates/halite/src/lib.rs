//! Runs programs compiled by IREE on the CPU: sessions, tensors, text and npy input and output.
#![deny(unsafe_code)]

pub mod compare;
mod convert;
mod minifloat;
pub mod npy;
mod tensor;
pub mod text;
mod value;

pub use tensor::{Element, Tensor, TensorError};
pub use value::Value;
pub use vm::StatusCode;
pub use vm_hal_inline::{
    ElementType, EncodingType, MAX_RANK, NumericalType, ParseElementTypeError,
};
