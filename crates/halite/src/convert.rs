//! Conversion between an application's values and the VM's.
#![forbid(unsafe_code)]

use std::sync::Arc;

use vm::{Ref, Value as VmValue};
use vm_hal_inline::HAL_BUFFER_TYPE;

use crate::{Tensor, Value};

impl Value {
    /// Returns the value of a program as an application sees it. Nothing is copied.
    #[must_use]
    #[inline]
    pub fn from_vm(value: VmValue) -> Self {
        match value {
            VmValue::I32(value) => Self::I32(value),
            VmValue::I64(value) => Self::I64(value),
            VmValue::F32(value) => Self::F32(value),
            VmValue::F64(value) => Self::F64(value),
            VmValue::Ref(Ref::Object(object)) => match Tensor::from_object(object) {
                Ok(tensor) => Self::Tensor(tensor),
                Err(object) => Self::Opaque(Ref::Object(object)),
            },
            VmValue::Ref(reference) => Self::from_plain_ref(reference),
        }
    }

    /// Returns a ref that names no tensor as an application sees it.
    #[inline(never)]
    fn from_plain_ref(reference: Ref) -> Self {
        match reference {
            Ref::Null => Self::Null,
            Ref::Buffer(buffer) => Self::Buffer(buffer),
            Ref::List(list) => Self::List(list),
            Ref::Aliased(ref_type, buffer) if *ref_type == HAL_BUFFER_TYPE => Self::Storage(buffer),
            Ref::Aliased(..) | Ref::Object(_) => Self::Opaque(reference),
        }
    }

    /// Returns the value as a program takes it. Nothing is copied.
    #[must_use]
    pub fn to_vm(&self) -> VmValue {
        match self {
            Self::I32(value) => VmValue::I32(*value),
            Self::I64(value) => VmValue::I64(*value),
            Self::F32(value) => VmValue::F32(*value),
            Self::F64(value) => VmValue::F64(*value),
            Self::Null => VmValue::Ref(Ref::Null),
            Self::Tensor(tensor) => VmValue::Ref(tensor.to_ref()),
            Self::Storage(buffer) => {
                VmValue::Ref(Ref::Aliased(&HAL_BUFFER_TYPE, Arc::clone(buffer)))
            }
            Self::Buffer(buffer) => VmValue::Ref(Ref::Buffer(Arc::clone(buffer))),
            Self::List(list) => VmValue::Ref(Ref::List(Arc::clone(list))),
            Self::Opaque(reference) => VmValue::Ref(reference.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use vm::Buffer;
    use vm_hal_inline::{BufferView, ElementType, EncodingType};

    use super::*;

    #[test]
    fn a_tensor_passes_through_a_program_without_a_copy() {
        let tensor = Tensor::from_slice(&[2], &[1f32, 2.0]).unwrap();
        let back = Value::from_vm(Value::Tensor(tensor.clone()).to_vm());
        let back = back.as_tensor().unwrap();
        assert!(Arc::ptr_eq(back.buffer(), tensor.buffer()));
    }

    #[test]
    fn a_view_that_is_no_tensor_stays_opaque() {
        let buffer = Buffer::allocate(4, 0).unwrap();
        let view = BufferView::new(buffer, ElementType::F32, EncodingType::OPAQUE, &[2]).unwrap();
        let value = Value::from_vm(VmValue::Ref(view.into()));
        assert!(matches!(value, Value::Opaque(_)));
        assert_eq!(value.type_name(), "hal.buffer_view");
    }

    #[test]
    fn buffers_keep_their_kind() {
        let buffer = Buffer::allocate(4, 0).unwrap();
        for value in [Value::Storage(Arc::clone(&buffer)), Value::Buffer(buffer)] {
            assert_eq!(Value::from_vm(value.to_vm()).type_name(), value.type_name());
        }
    }
}
