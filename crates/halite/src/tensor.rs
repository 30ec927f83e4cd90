//! Tensors: typed, shaped memory that programs take and return.
//!
//! A tensor shares the memory of a VM buffer, so that passing one into a program or out of it copies nothing. Text and
//! files are in [`crate::text`] and [`crate::npy`].
#![forbid(unsafe_code)]

mod exclusive;

use core::any::Any;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use vm::{Access, BUFFER_ALIGNMENT, Buffer, BytesOwner, Object, Ref, StatusCode, Trap};
use vm_hal_inline::{BufferView, EncodingType, MAX_RANK};

use crate::{Element, ElementType};

pub use exclusive::ExclusiveTensor;

/// Typed, shaped memory. Clones share the memory.
///
/// Invariant: the view's buffer holds at least the bytes of its elements, one after another, and an element has at
/// least a bit.
#[derive(Clone)]
pub struct Tensor(Arc<BufferView>);

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

/// Returns whether the elements of a view lie densely in its buffer.
#[inline]
fn is_dense(view: &BufferView) -> bool {
    // A view that says so was checked when it was made.
    view.encoding_type() == EncodingType::DENSE_ROW_MAJOR || is_long_enough(view)
}

#[cold]
fn is_long_enough(view: &BufferView) -> bool {
    checked_byte_length(view.element_type(), view.shape())
        .is_ok_and(|length| length <= view.buffer().length())
}

/// Checks that the elements of a tensor of this shape take `found` bytes.
fn check_length(
    element_type: ElementType,
    shape: &[usize],
    found: usize,
) -> Result<(), TensorError> {
    let expected = checked_byte_length(element_type, shape)?;
    if found == expected {
        return Ok(());
    }
    Err(TensorError::ByteLength {
        shape: shape.into(),
        element_type,
        expected,
        found,
    })
}

/// The bytes of an owner of elements of type `T`.
struct BytesOf<T, O> {
    owner: O,
    element: PhantomData<fn() -> T>,
}

impl<T: Element, O: AsRef<[T]>> AsRef<[u8]> for BytesOf<T, O> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(self.owner.as_ref())
    }
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

    /// Returns a tensor of truth values.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn from_bools(shape: &[usize], data: &[bool]) -> Result<Self, TensorError> {
        Self::from_bytes(ElementType::BOOL_8, shape, bytemuck::cast_slice(data))
    }

    /// Returns a tensor whose elements, zeros at first, `fill` writes in place.
    ///
    /// # Errors
    /// As [`Tensor::zeros`].
    ///
    /// # Examples
    /// ```
    /// use halite::Tensor;
    ///
    /// let squares = Tensor::with_elements(&[4], |elements: &mut [i64]| {
    ///     (0..).zip(elements).for_each(|(n, element)| *element = n * n);
    /// })?;
    /// assert_eq!(squares.to_vec::<i64>()?, [0, 1, 4, 9]);
    /// # Ok::<(), halite::TensorError>(())
    /// ```
    pub fn with_elements<T: Element>(
        shape: &[usize],
        fill: impl FnOnce(&mut [T]),
    ) -> Result<Self, TensorError> {
        Self::with_bytes(T::ELEMENT_TYPE, shape, |bytes| {
            fill(bytemuck::cast_slice_mut(bytes));
            Ok(())
        })
    }

    /// Returns a read-only tensor over the elements of `owner`, which it keeps: nothing is copied when they begin at a
    /// multiple of [`BUFFER_ALIGNMENT`] bytes, as kernels need it, else they are copied once.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    ///
    /// # Examples
    /// ```
    /// use halite::Tensor;
    ///
    /// #[repr(align(64))]
    /// struct Weights([f32; 4]);
    ///
    /// impl AsRef<[f32]> for Weights {
    ///     fn as_ref(&self) -> &[f32] {
    ///         &self.0
    ///     }
    /// }
    ///
    /// static WEIGHTS: Weights = Weights([1.0, 2.0, 3.0, 4.0]);
    /// let tensor = Tensor::from_owner(&[2, 2], &WEIGHTS)?;
    /// assert!(std::ptr::eq(tensor.as_slice()?.unwrap(), &WEIGHTS.0));
    /// # Ok::<(), halite::TensorError>(())
    /// ```
    pub fn from_owner<T: Element>(
        shape: &[usize],
        owner: impl AsRef<[T]> + Send + Sync + 'static,
    ) -> Result<Self, TensorError> {
        let owner: Arc<dyn BytesOwner> = Arc::new(BytesOf {
            owner,
            element: PhantomData::<fn() -> T>,
        });
        let bytes = owner.bytes();
        let length = bytes.len();
        if !bytes.as_ptr().addr().is_multiple_of(BUFFER_ALIGNMENT) {
            return Self::from_bytes(T::ELEMENT_TYPE, shape, bytes);
        }
        check_length(T::ELEMENT_TYPE, shape, length)?;
        let buffer =
            Buffer::constant(owner, 0..length, Access::HOST_CONSTANT).map_err(|source| {
                TensorError::Allocation {
                    byte_length: length,
                    source,
                }
            })?;
        Self::from_checked(T::ELEMENT_TYPE, shape, buffer)
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
        check_length(element_type, shape, bytes.len())?;
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
        is_dense(&view).then_some(Self(view))
    }

    /// Returns a tensor over an object of a program, or the object when it is no view of one.
    #[inline]
    pub(crate) fn from_object(object: Arc<dyn Object>) -> Result<Self, Arc<dyn Object>> {
        let any: &dyn Any = &*object;
        if !any.downcast_ref().is_some_and(is_dense) {
            return Err(object);
        }
        let any: Arc<dyn Any + Send + Sync> = object;
        match any.downcast() {
            Ok(view) => Ok(Self(view)),
            Err(_) => unreachable!("the object is a view"),
        }
    }

    /// Returns a ref to the tensor as programs know it; nothing is copied.
    #[inline]
    pub(crate) fn to_ref(&self) -> Ref {
        Arc::clone(&self.0).into_ref()
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
    #[inline]
    pub fn element_type(&self) -> ElementType {
        self.0.element_type()
    }

    /// Returns the dimensions, the one that varies slowest first.
    #[must_use]
    #[inline]
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

    /// Returns a copy of truth values: of 8-bit integers, whether they are not zero.
    ///
    /// # Errors
    /// Fails when the elements are neither truth values nor 8-bit integers.
    pub fn to_bools(&self) -> Result<Vec<bool>, TensorError> {
        let values = self.to_vec::<u8>()?;
        Ok(values.into_iter().map(|value| value != 0).collect())
    }

    /// Returns the elements without copying them, or `None` when the memory could be written while the slice lives:
    /// only read-only memory, such as a program's constants, can be borrowed.
    ///
    /// To read a result without a copy, take it for yourself with [`Tensor::into_exclusive`].
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
        check_elements::<T>(self.element_type())
    }
}

fn check_elements<T: Element>(found: ElementType) -> Result<(), TensorError> {
    if T::READABLE.contains(&found) {
        return Ok(());
    }
    Err(TensorError::OtherElements {
        expected: T::ELEMENT_TYPE,
        found,
    })
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
mod tests;
