//! Buffer views: a buffer with the element type, the encoding and the shape of the tensor in it.

use core::fmt;
use std::sync::Arc;

use vm::{Buffer, Object, Ref, RefType, StatusCode, Trap};

use crate::shape::{Shape, Spelled};
use crate::{ElementType, EncodingType};

/// The type of refs to a [`BufferView`].
pub static BUFFER_VIEW_TYPE: RefType = RefType::new("hal.buffer_view");

/// The most dimensions a view may have.
pub const MAX_RANK: usize = 128;

/// A tensor in a buffer.
///
/// Immutable, though the bytes of its buffer are not. Threads may share it.
///
/// Invariant: the rank is at most [`MAX_RANK`]; if the encoding is [`EncodingType::DENSE_ROW_MAJOR`], all elements lie
/// in the buffer.
#[derive(Clone)]
pub struct BufferView {
    buffer: Arc<Buffer>,
    element_type: ElementType,
    encoding_type: EncodingType,
    shape: Shape,
}

/// Why a buffer view cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BufferViewError {
    /// There are more dimensions than [`MAX_RANK`].
    #[error("a buffer view of rank {rank} exceeds the limit of {MAX_RANK} dimensions")]
    Rank {
        /// Number of dimensions asked for.
        rank: usize,
    },
    /// A dimension does not fit the address space.
    #[error("buffer view dimension {index} is {dimension}, which exceeds the address space")]
    Dimension {
        /// Position of the dimension.
        index: usize,
        /// Its size.
        dimension: u64,
    },
    /// The element type has no size, so a shape says nothing.
    #[error(
        "opaque element types cannot be indexed: the element type {element_type:?} has no size"
    )]
    Unsized {
        /// The element type.
        element_type: ElementType,
    },
    /// The number of bytes does not fit the address space.
    #[error(
        "the byte length of a buffer view of shape `{shape}` and type {element_type} overflows"
    )]
    Overflow {
        /// The shape, spelled.
        shape: String,
        /// The element type.
        element_type: ElementType,
    },
    /// The elements take more bytes than there are.
    #[error("buffer view byte length {required} exceeds backing buffer byte length {available}")]
    TooLarge {
        /// Bytes the elements take.
        required: usize,
        /// Bytes of the buffer.
        available: usize,
    },
}

impl BufferViewError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Unsized { .. } => StatusCode::INVALID_ARGUMENT,
            Self::Rank { .. }
            | Self::Dimension { .. }
            | Self::Overflow { .. }
            | Self::TooLarge { .. } => StatusCode::OUT_OF_RANGE,
        }
    }
}

impl From<BufferViewError> for Trap {
    #[cold]
    fn from(error: BufferViewError) -> Self {
        Self::new(error.status_code(), error.to_string())
    }
}

impl BufferView {
    /// Returns a view of the whole of `buffer`; take a [`Buffer::subspan`] first for a part of it.
    ///
    /// A dense view must fit its buffer. Compilers never ask for one that does not; runtimes before IREE 3.13 accepted
    /// it and failed where the tensor was read. Other encodings have no size that is known here and are not checked.
    ///
    /// # Errors
    /// Fails when there are too many dimensions or a dense view does not fit the buffer.
    ///
    /// # Examples
    /// ```
    /// use vm::{Access, Buffer};
    /// use vm_hal_inline::{BufferView, ElementType, EncodingType};
    ///
    /// let buffer = Buffer::copied_from(&[0; 24], Access::HOST)?;
    /// let view = BufferView::new(buffer, ElementType::F32, EncodingType::DENSE_ROW_MAJOR, &[2, 3])?;
    /// assert_eq!((view.shape(), view.element_count()), (&[2, 3][..], Some(6)));
    /// # Ok::<(), vm::Trap>(())
    /// ```
    pub fn new(
        buffer: Arc<Buffer>,
        element_type: ElementType,
        encoding_type: EncodingType,
        shape: &[usize],
    ) -> Result<Self, BufferViewError> {
        check_rank(shape.len())?;
        let view = Self {
            buffer,
            element_type,
            encoding_type,
            shape: Shape::new(shape, |dimension| *dimension),
        };
        view.check_size()?;
        Ok(view)
    }

    /// Returns a view as [`BufferView::new`]; the rank was checked.
    #[inline(always)]
    pub(crate) fn with_shape(
        buffer: Arc<Buffer>,
        element_type: ElementType,
        encoding_type: EncodingType,
        shape: Shape,
    ) -> Result<Arc<Self>, BufferViewError> {
        // Checked where it stays, so that it is not moved there afterwards.
        let view = Arc::new(Self {
            buffer,
            element_type,
            encoding_type,
            shape,
        });
        view.check_size()?;
        Ok(view)
    }

    /// Checks that the elements lie in the buffer, if they are dense.
    #[inline(always)]
    fn check_size(&self) -> Result<(), BufferViewError> {
        let length = self.buffer.length();
        let required = || self.element_type.dense_byte_length(&self.shape);
        if self.encoding_type != EncodingType::DENSE_ROW_MAJOR
            || self.element_type.bit_count() != 0
                && required().is_some_and(|required| required <= length)
        {
            return Ok(());
        }
        Err(self.size_error())
    }

    /// Returns why the elements do not lie in the buffer.
    #[cold]
    fn size_error(&self) -> BufferViewError {
        let element_type = self.element_type;
        if element_type.bit_count() == 0 {
            return BufferViewError::Unsized { element_type };
        }
        match element_type.dense_byte_length(&self.shape) {
            Some(required) => BufferViewError::TooLarge {
                required,
                available: self.buffer.length(),
            },
            None => BufferViewError::Overflow {
                shape: Spelled(&self.shape).to_string(),
                element_type,
            },
        }
    }

    /// Returns a ref to the view.
    ///
    /// One function for all crates, so that all refs made here name the type by the same address, which is what
    /// [`Ref::as_object`] looks at first.
    #[must_use]
    #[inline(never)]
    pub fn into_ref(self: Arc<Self>) -> Ref {
        Ref::object(self)
    }

    /// Returns the buffer.
    #[must_use]
    #[inline]
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.buffer
    }

    /// Returns the type of the elements.
    #[must_use]
    #[inline]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns how the elements lie in the buffer.
    #[must_use]
    #[inline]
    pub fn encoding_type(&self) -> EncodingType {
        self.encoding_type
    }

    /// Returns the dimensions, outermost first; none for a scalar.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Returns the number of elements, or `None` when it does not fit the address space, which a dense view excludes
    /// unless its elements take no bytes.
    #[must_use]
    pub fn element_count(&self) -> Option<usize> {
        if self.shape.contains(&0) {
            return Some(0);
        }
        self.shape
            .iter()
            .try_fold(1usize, |count, dimension| count.checked_mul(*dimension))
    }

    /// Returns the bytes that the elements take in the buffer, from its start, or `None` when the encoding is not dense.
    #[must_use]
    pub fn dense_byte_length(&self) -> Option<usize> {
        if self.encoding_type != EncodingType::DENSE_ROW_MAJOR {
            return None;
        }
        self.element_type.dense_byte_length(&self.shape)
    }
}

impl Object for BufferView {
    #[inline]
    fn ref_type(&self) -> &'static RefType {
        &BUFFER_VIEW_TYPE
    }
}

impl From<BufferView> for Ref {
    fn from(view: BufferView) -> Self {
        Arc::new(view).into_ref()
    }
}

impl fmt::Debug for BufferView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferView")
            .field("shape", &self.shape)
            .field("element_type", &self.element_type)
            .field("encoding_type", &self.encoding_type)
            .field("buffer", &self.buffer)
            .finish()
    }
}

/// Checks that a view may have this many dimensions.
#[inline]
pub(crate) fn check_rank(rank: usize) -> Result<(), BufferViewError> {
    if rank > MAX_RANK {
        return Err(BufferViewError::Rank { rank });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENSE: EncodingType = EncodingType::DENSE_ROW_MAJOR;

    fn new(
        element_type: ElementType,
        encoding_type: EncodingType,
        shape: &[usize],
    ) -> Result<BufferView, BufferViewError> {
        BufferView::new(
            Buffer::allocate(100, 0).unwrap(),
            element_type,
            encoding_type,
            shape,
        )
    }

    #[test]
    fn a_dense_view_fits_its_buffer() {
        assert_eq!(
            new(ElementType::F32, DENSE, &[5, 5])
                .unwrap()
                .element_count(),
            Some(25)
        );
        let error = new(ElementType::F32, DENSE, &[26]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "buffer view byte length 104 exceeds backing buffer byte length 100"
        );
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }

    #[test]
    fn packed_elements_are_counted_in_bits() {
        assert!(new(ElementType::I4, DENSE, &[200]).is_ok());
        assert!(matches!(
            new(ElementType::I4, DENSE, &[201]),
            Err(BufferViewError::TooLarge {
                required: 101,
                available: 100
            })
        ));
    }

    #[test]
    fn an_encoding_without_a_known_size_is_not_checked() {
        let view = new(ElementType::F32, EncodingType::OPAQUE, &[usize::MAX, 2]).unwrap();
        assert_eq!(
            (view.element_count(), view.dense_byte_length()),
            (None, None)
        );
    }

    #[test]
    fn e1_shapes_that_overflow_are_refused() {
        for shape in [
            &[usize::MAX][..],
            &[1 << (usize::BITS / 2); 2],
            &[usize::MAX / 4 + 2],
        ] {
            let error = new(ElementType::F32, DENSE, shape).unwrap_err();
            assert!(matches!(error, BufferViewError::Overflow { .. }), "{error}");
        }
        let empty = new(ElementType::F32, DENSE, &[usize::MAX, 3, 0]).unwrap();
        assert_eq!(
            (empty.element_count(), empty.dense_byte_length()),
            (Some(0), Some(0))
        );
    }

    #[test]
    fn an_element_type_without_a_size_is_refused() {
        let error = new(ElementType::from_raw(0), DENSE, &[0]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
        assert_eq!(
            error.to_string(),
            "opaque element types cannot be indexed: the element type *0 (0x00000000) has no size"
        );
    }

    #[test]
    fn the_rank_is_limited() {
        assert_eq!(
            new(ElementType::I8, DENSE, &[1; MAX_RANK])
                .unwrap()
                .shape()
                .len(),
            128
        );
        let error = new(ElementType::I8, DENSE, &[1; MAX_RANK + 1]).unwrap_err();
        assert_eq!(
            (error.status_code(), error),
            (
                StatusCode::OUT_OF_RANGE,
                BufferViewError::Rank { rank: 129 }
            )
        );
    }

    #[test]
    fn a_view_of_a_common_rank_is_small() {
        assert!(size_of::<BufferView>() <= 80);
    }

    #[test]
    fn a_view_can_be_shared_between_threads() {
        fn check<T: Send + Sync>() {}
        check::<BufferView>();
    }
}
