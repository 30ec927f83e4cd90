//! Values: what functions take and return, as an application sees them.
//!
//! How they become the VM's values and back is in [`crate::convert`].
#![forbid(unsafe_code)]

use std::sync::Arc;

use vm::{Buffer, List, Ref};

use crate::Tensor;

/// An argument or a result of a function.
///
/// Clones of refs share what they name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A 32-bit integer; narrower integers and truth values are widened to it.
    I32(i32),
    /// A 64-bit integer; indices are of this type.
    I64(i64),
    /// A 32-bit float.
    F32(f32),
    /// A 64-bit float.
    F64(f64),
    /// A ref to nothing.
    Null,
    /// A tensor, which programs know as a `hal.buffer_view`.
    Tensor(Tensor),
    /// Memory without type and shape, which programs know as a `hal.buffer`.
    Storage(Arc<Buffer>),
    /// A `vm.buffer`.
    Buffer(Arc<Buffer>),
    /// A list.
    List(Arc<List>),
    /// A ref of another type: only the program knows what it is.
    Opaque(Ref),
}

impl Value {
    /// Returns the name of the value's type as IREE's tools print it.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::I32(_) => "i32",
            Self::I64(_) => "i64",
            Self::F32(_) => "f32",
            Self::F64(_) => "f64",
            Self::Null => "empty",
            Self::Tensor(_) => "hal.buffer_view",
            Self::Storage(_) => "hal.buffer",
            Self::Buffer(_) => "vm.buffer",
            Self::List(_) => "vm.list",
            Self::Opaque(reference) => reference.ref_type().map_or("empty", |name| name.name()),
        }
    }

    /// Returns what the value is, for messages: `tensor<4xf32>`, or the name of its type.
    pub(crate) fn kind(&self) -> String {
        match self {
            Self::Tensor(tensor) => {
                let dimensions = tensor.shape().iter().map(|size| format!("{size}x"));
                let dimensions: String = dimensions.collect();
                format!("tensor<{dimensions}{}>", tensor.element_type())
            }
            Self::Null => "null".into(),
            other => other.type_name().into(),
        }
    }

    /// Returns the tensor, or `None` for any other value.
    #[must_use]
    pub fn as_tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }
}

impl TryFrom<Value> for Tensor {
    type Error = Value;

    /// Returns the tensor, or the value when it is none.
    fn try_from(value: Value) -> Result<Self, Value> {
        match value {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(other),
        }
    }
}

macro_rules! from {
    ($($type:ty => $variant:ident),* $(,)?) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        }
    )*};
}

from! {
    i32 => I32,
    i64 => I64,
    f32 => F32,
    f64 => F64,
    Tensor => Tensor,
    Arc<List> => List,
}
