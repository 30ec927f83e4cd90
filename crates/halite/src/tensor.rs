//! Tensors: typed, shaped memory that programs take and return.
//!
//! A tensor shares the memory of a VM buffer, so that passing one into a program or out of it copies nothing. Text and
//! files are in [`crate::text`] and [`crate::npy`].
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::Arc;

use bytemuck::Pod;
use half::{bf16, f16};
use vm::{Buffer, Ref, StatusCode, Trap};
use vm_hal_inline::{BufferView, EncodingType, MAX_RANK};

use crate::ElementType;

/// Typed, shaped memory. Clones share the memory.
///
/// Invariant: the view's buffer holds at least the bytes of its elements, one after another, and an element has at
/// least a bit.
#[derive(Clone)]
pub struct Tensor(Arc<BufferView>);

/// A Rust type whose values are elements of tensors.
///
/// Integers stand for the signless, signed and unsigned element types of their width, `u8` also for truth values.
pub trait Element: Pod + sealed::Sealed {
    /// The type of a tensor made of such values.
    const ELEMENT_TYPE: ElementType;
    /// Types of the same representation, which can be read as such values.
    const READABLE: &'static [ElementType];
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($rust:ty => $first:ident $(, $other:ident)*;)*) => {$(
        impl sealed::Sealed for $rust {}
        impl Element for $rust {
            const ELEMENT_TYPE: ElementType = ElementType::$first;
            const READABLE: &'static [ElementType] = &[ElementType::$first $(, ElementType::$other)*];
        }
    )*};
}

elements! {
    i8 => I8, SI8;
    i16 => I16, SI16;
    i32 => I32, SI32;
    i64 => I64, SI64;
    u8 => UI8, I8, BOOL_8, OPAQUE_8;
    u16 => UI16, I16, OPAQUE_16;
    u32 => UI32, I32, OPAQUE_32;
    u64 => UI64, I64, OPAQUE_64;
    f16 => F16;
    bf16 => BF16;
    f32 => F32;
    f64 => F64;
}

/// Why a tensor cannot be made or read.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The shape asks for more bytes than an address space has.
    #[error("a tensor of {shape:?} {element_type} elements exceeds the address space")]
    TooLarge {
        /// The shape.
        shape: Vec<usize>,
        /// The type of the elements.
        element_type: ElementType,
    },
    /// The shape has too many dimensions.
    #[error("a tensor has at most {MAX_RANK} dimensions, not {rank}")]
    Rank {
        /// Dimensions asked for.
        rank: usize,
    },
    /// The element type has no bits.
    #[error("elements of type {element_type:?} have no size")]
    ElementType {
        /// The type.
        element_type: ElementType,
    },
    /// The data has another length than the shape asks for.
    #[error("a tensor of {shape:?} {element_type} elements takes {expected} bytes, not {found}")]
    ByteLength {
        /// The shape.
        shape: Vec<usize>,
        /// The type of the elements.
        element_type: ElementType,
        /// Bytes that the shape takes.
        expected: usize,
        /// Bytes given.
        found: usize,
    },
    /// The elements are of another type than asked for.
    #[error("the tensor's elements are {found}, not {expected}")]
    OtherElements {
        /// The type asked for.
        expected: ElementType,
        /// The type of the elements.
        found: ElementType,
    },
    /// The memory cannot be had.
    #[error("a tensor of {byte_length} bytes cannot be allocated")]
    Allocation {
        /// Bytes asked for.
        byte_length: usize,
        /// What the allocator said.
        #[source]
        source: Trap,
    },
    /// The memory is read-only.
    #[error("the tensor's memory cannot be written")]
    ReadOnly {
        /// What the buffer said.
        #[source]
        source: Trap,
    },
}

impl TensorError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::TooLarge { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::Rank { .. } | Self::ByteLength { .. } => StatusCode::OUT_OF_RANGE,
            Self::ElementType { .. } | Self::OtherElements { .. } => StatusCode::INVALID_ARGUMENT,
            Self::Allocation { source, .. } | Self::ReadOnly { source } => source.code(),
        }
    }
}

/// Returns the bytes of a tensor, or why there can be none of this shape.
pub(crate) fn checked_byte_length(
    element_type: ElementType,
    shape: &[usize],
) -> Result<usize, TensorError> {
    if shape.len() > MAX_RANK {
        return Err(TensorError::Rank { rank: shape.len() });
    }
    if element_type.bit_count() == 0 {
        return Err(TensorError::ElementType { element_type });
    }
    element_type
        .dense_byte_length(shape)
        .filter(|&length| isize::try_from(length).is_ok())
        .ok_or_else(|| TensorError::TooLarge {
            shape: shape.into(),
            element_type,
        })
}

impl Tensor {
    /// Returns a tensor of zeros.
    ///
    /// # Errors
    /// Fails when the shape is too large, has too many dimensions, or its memory cannot be had.
    pub fn zeros(element_type: ElementType, shape: &[usize]) -> Result<Self, TensorError> {
        Self::with_bytes(element_type, shape, |_| Ok(()))
    }

    /// Returns a tensor of the values of `data`, which are copied.
    ///
    /// # Errors
    /// Fails when `data` has another number of values than the shape, and as [`Tensor::zeros`].
    pub fn from_slice<T: Element>(shape: &[usize], data: &[T]) -> Result<Self, TensorError> {
        Self::from_bytes(T::ELEMENT_TYPE, shape, bytemuck::cast_slice(data))
    }

    /// Returns a tensor of a single value, without dimensions.
    ///
    /// # Errors
    /// Fails when the memory cannot be had.
    pub fn from_scalar<T: Element>(value: T) -> Result<Self, TensorError> {
        Self::from_slice(&[], &[value])
    }

    /// Returns a tensor whose memory is a copy of `bytes`, the elements in little-endian order.
    ///
    /// # Errors
    /// Fails when `bytes` has another length than the shape asks for, and as [`Tensor::zeros`].
    pub fn from_bytes(
        element_type: ElementType,
        shape: &[usize],
        bytes: &[u8],
    ) -> Result<Self, TensorError> {
        let expected = checked_byte_length(element_type, shape)?;
        if bytes.len() != expected {
            return Err(TensorError::ByteLength {
                shape: shape.into(),
                element_type,
                expected,
                found: bytes.len(),
            });
        }
        Self::with_bytes(element_type, shape, |target| {
            target.copy_from_slice(bytes);
            Ok(())
        })
    }

    /// Returns a tensor over the memory of `buffer`, which it shares. A longer buffer is fine.
    ///
    /// # Errors
    /// Fails when the buffer is too short for the shape or the shape has too many dimensions.
    pub fn from_buffer(
        element_type: ElementType,
        shape: &[usize],
        buffer: Arc<Buffer>,
    ) -> Result<Self, TensorError> {
        checked_byte_length(element_type, shape)?;
        Self::from_checked(element_type, shape, buffer)
    }

    /// Returns a tensor over a view of a program, or `None` when the view's elements do not lie densely in its buffer.
    #[must_use]
    pub fn from_view(view: Arc<BufferView>) -> Option<Self> {
        let byte_length = checked_byte_length(view.element_type(), view.shape()).ok()?;
        (view.buffer().length() >= byte_length).then_some(Self(view))
    }

    /// Returns a ref to the tensor as programs know it; nothing is copied.
    pub(crate) fn to_ref(&self) -> Ref {
        Ref::object(Arc::clone(&self.0))
    }

    /// Returns a tensor over a buffer that is long enough for the checked shape.
    fn from_checked(
        element_type: ElementType,
        shape: &[usize],
        buffer: Arc<Buffer>,
    ) -> Result<Self, TensorError> {
        let found = buffer.length();
        let view = BufferView::new(buffer, element_type, EncodingType::DENSE_ROW_MAJOR, shape);
        match view {
            Ok(view) => Ok(Self(Arc::new(view))),
            Err(_) => Err(TensorError::ByteLength {
                shape: shape.into(),
                element_type,
                expected: checked_byte_length(element_type, shape)?,
                found,
            }),
        }
    }

    /// Returns a tensor whose zeroed bytes `fill` has written to. The shape is checked before memory is taken.
    pub(crate) fn with_bytes<E: From<TensorError>>(
        element_type: ElementType,
        shape: &[usize],
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let byte_length = checked_byte_length(element_type, shape)?;
        let mut buffer =
            Buffer::allocate(byte_length as u64, 0).map_err(|source| TensorError::Allocation {
                byte_length,
                source,
            })?;
        if let Some(bytes) = Buffer::exclusive(&mut buffer) {
            fill(bytes)?;
        }
        Ok(Self::from_checked(element_type, shape, buffer)?)
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.0.element_type()
    }

    /// Returns the dimensions, the one that varies slowest first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.0.shape()
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn element_count(&self) -> usize {
        // Elements have at least a bit and lie in memory, so their number fits.
        self.0.element_count().unwrap_or(0)
    }

    /// Returns the number of bytes of the elements.
    #[must_use]
    pub fn byte_length(&self) -> usize {
        self.element_type()
            .storage_byte_length(self.element_count())
            .unwrap_or(0)
    }

    /// Returns the buffer whose memory the tensor shares.
    #[must_use]
    pub fn buffer(&self) -> &Arc<Buffer> {
        self.0.buffer()
    }

    /// Returns a copy of the bytes of the elements.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.byte_length()];
        self.read_bytes(0, &mut bytes);
        bytes
    }

    /// Returns a copy of the elements.
    ///
    /// # Errors
    /// Fails when the elements are not represented as `T`.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, TensorError> {
        self.check_elements::<T>()?;
        let mut values = vec![T::zeroed(); self.element_count()];
        self.read_bytes(0, bytemuck::cast_slice_mut(&mut values));
        Ok(values)
    }

    /// Returns the elements without copying them, or `None` when the memory could be written while the slice lives:
    /// only read-only memory, such as a program's constants, can be borrowed.
    ///
    /// # Errors
    /// Fails when the elements are not represented as `T`.
    pub fn as_slice<T: Element>(&self) -> Result<Option<&[T]>, TensorError> {
        self.check_elements::<T>()?;
        let bytes = self
            .buffer()
            .as_constant()
            .map(|bytes| &bytes[..self.byte_length()]);
        Ok(bytes.and_then(|bytes| bytemuck::try_cast_slice(bytes).ok()))
    }

    /// Copies `data` over the elements; all tensors and values that share the memory see it.
    ///
    /// # Errors
    /// Fails when the elements are not represented as `T`, when there are more or fewer of them than in `data`, or
    /// when the memory is read-only.
    pub fn write_slice<T: Element>(&self, data: &[T]) -> Result<(), TensorError> {
        self.check_elements::<T>()?;
        let bytes: &[u8] = bytemuck::cast_slice(data);
        if bytes.len() != self.byte_length() {
            return Err(TensorError::ByteLength {
                shape: self.shape().into(),
                element_type: self.element_type(),
                expected: self.byte_length(),
                found: bytes.len(),
            });
        }
        self.buffer()
            .write(0, bytes)
            .map_err(|source| TensorError::ReadOnly { source })
    }

    /// Copies bytes of the elements from `offset` on.
    pub(crate) fn read_bytes(&self, offset: usize, target: &mut [u8]) {
        let read = self.buffer().read(offset as u64, target);
        debug_assert!(
            read.is_ok(),
            "the range lies in the elements, and they in the buffer"
        );
    }

    fn check_elements<T: Element>(&self) -> Result<(), TensorError> {
        if T::READABLE.contains(&self.element_type()) {
            return Ok(());
        }
        Err(TensorError::OtherElements {
            expected: T::ELEMENT_TYPE,
            found: self.element_type(),
        })
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor")
            .field("shape", &self.shape())
            .field("element_type", &self.element_type())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_go_in_and_come_out() {
        let tensor = Tensor::from_slice(&[2, 3], &[1f32, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        assert_eq!(tensor.element_type(), ElementType::F32);
        assert_eq!(tensor.element_count(), 6);
        assert_eq!(tensor.byte_length(), 24);
        assert_eq!(tensor.to_vec::<f32>().unwrap()[5], 6.0);
        let error = tensor.to_vec::<i32>().unwrap_err();
        assert_eq!(error.to_string(), "the tensor's elements are f32, not i32");
    }

    #[test]
    fn rank_zero_differs_from_one_element() {
        let scalar = Tensor::from_scalar(5i64).unwrap();
        let vector = Tensor::from_slice(&[1], &[5i64]).unwrap();
        assert!(scalar.shape().is_empty());
        assert_eq!(vector.shape(), [1]);
        assert_eq!(scalar.to_bytes(), vector.to_bytes());
    }

    #[test]
    fn data_of_another_length_is_refused() {
        let error = Tensor::from_slice(&[2, 2], &[1i32, 2, 3]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
        assert_eq!(
            error.to_string(),
            "a tensor of [2, 2] i32 elements takes 16 bytes, not 12"
        );
    }

    #[test]
    fn a_shape_beyond_the_address_space_is_refused_before_memory_is_taken() {
        for shape in [
            &[1 << 32, 1 << 32][..],
            &[274_177, 67_280_421_310_721],
            &[usize::MAX],
        ] {
            let error = Tensor::zeros(ElementType::F32, shape).unwrap_err();
            assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
        }
        let error = Tensor::zeros(ElementType::I8, &[1 << 62]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
    }

    #[test]
    fn too_many_dimensions_are_refused() {
        let error = Tensor::zeros(ElementType::I8, &[1; MAX_RANK + 1]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
        assert!(Tensor::zeros(ElementType::I8, &[1; MAX_RANK]).is_ok());
    }

    #[test]
    fn clones_share_memory() {
        let tensor = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
        let other = tensor.clone();
        tensor.write_slice(&[7, 8]).unwrap();
        assert_eq!(other.to_vec::<i32>().unwrap(), [7, 8]);
        assert!(tensor.as_slice::<i32>().unwrap().is_none());
        assert!(tensor.write_slice(&[7]).is_err());
        assert!(tensor.write_slice(&[7.0f32, 8.0]).is_err());
    }

    #[test]
    fn read_only_memory_is_borrowed() {
        let owner: Arc<dyn vm::BytesOwner> = Arc::new(vec![1u8, 2, 3]);
        let buffer = Buffer::constant(owner, 0..3, vm::Access::HOST_CONSTANT).unwrap();
        let tensor = Tensor::from_buffer(ElementType::UI8, &[3], buffer).unwrap();
        assert_eq!(tensor.as_slice::<u8>().unwrap(), Some(&[1, 2, 3][..]));
        let error = tensor.write_slice(&[0u8; 3]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::PERMISSION_DENIED);
    }

    #[test]
    fn a_tensor_is_a_ref_and_back() {
        let tensor = Tensor::from_slice(&[2], &[1i32, 2]).unwrap();
        let view = tensor.to_ref();
        let view = view
            .as_object::<BufferView>(&vm_hal_inline::BUFFER_VIEW_TYPE)
            .unwrap();
        let again = Tensor::from_view(Arc::new(view.clone())).unwrap();
        assert!(Arc::ptr_eq(again.buffer(), tensor.buffer()));
    }

    #[test]
    fn a_view_whose_elements_are_not_in_its_buffer_is_no_tensor() {
        let buffer = Buffer::allocate(4, 0).unwrap();
        let view = BufferView::new(buffer, ElementType::F32, EncodingType::OPAQUE, &[2]).unwrap();
        assert!(Tensor::from_view(Arc::new(view)).is_none());
    }

    #[test]
    fn truth_values_read_as_bytes() {
        let tensor = Tensor::from_bytes(ElementType::BOOL_8, &[2], &[1, 0]).unwrap();
        assert_eq!(tensor.to_vec::<u8>().unwrap(), [1, 0]);
        assert!(tensor.to_vec::<i8>().is_err());
    }

    #[test]
    fn narrow_elements_are_packed() {
        let tensor = Tensor::from_bytes(ElementType::I4, &[3], &[0x21, 0x03]).unwrap();
        assert_eq!(tensor.byte_length(), 2);
    }

    #[test]
    fn tensors_move_between_threads() {
        fn check<T: Send + Sync>() {}
        check::<Tensor>();
    }
}
