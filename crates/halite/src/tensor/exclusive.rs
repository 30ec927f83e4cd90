//! Tensors that nobody shares: their elements can be borrowed.
#![forbid(unsafe_code)]

use core::fmt;
use std::sync::Arc;

use vm::Buffer;

use super::check_elements;
use crate::{Element, ElementType, Tensor, TensorError};

/// A tensor whose memory nobody else has, so that its elements can be borrowed: read and written in place.
///
/// It comes from [`Tensor::into_exclusive`] and becomes a [`Tensor`] again with `into`.
///
/// # Examples
/// ```
/// use halite::Tensor;
///
/// let tensor = Tensor::from_slice(&[3], &[1f32, 2.0, 3.0])?;
/// let mut own = tensor.into_exclusive().expect("there are no clones");
/// own.as_mut_slice::<f32>()?[1] = 5.0;
/// assert_eq!(Tensor::from(own).to_vec::<f32>()?, [1.0, 5.0, 3.0]);
/// # Ok::<(), halite::TensorError>(())
/// ```
pub struct ExclusiveTensor {
    element_type: ElementType,
    shape: Vec<usize>,
    byte_length: usize,
    /// Holds the elements; no other reference to it exists.
    buffer: Arc<Buffer>,
}

impl Tensor {
    /// Returns the tensor as one whose elements can be borrowed, or itself when others share its memory: clones, the
    /// session's state, or a larger buffer that it is part of. Nothing is copied.
    ///
    /// # Errors
    /// Returns the tensor when it is shared or read-only.
    pub fn into_exclusive(self) -> Result<ExclusiveTensor, Self> {
        let element_type = self.element_type();
        let byte_length = self.byte_length();
        let view = match Arc::try_unwrap(self.0) {
            Ok(view) => view,
            Err(shared) => return Err(Self(shared)),
        };
        let shape = view.shape().to_vec();
        let mut buffer = Arc::clone(view.buffer());
        // The view was the one that shared the buffer with this function.
        drop(view);
        let tensor = |buffer| ExclusiveTensor {
            element_type,
            shape,
            byte_length,
            buffer,
        };
        if buffer.access().is_mutable() && Buffer::exclusive(&mut buffer).is_some() {
            return Ok(tensor(buffer));
        }
        Err(tensor(buffer).into())
    }
}

impl ExclusiveTensor {
    /// Returns the elements, for reading and writing.
    ///
    /// # Errors
    /// Fails when the elements are not represented as `T`.
    pub fn as_mut_slice<T: Element>(&mut self) -> Result<&mut [T], TensorError> {
        check_elements::<T>(self.element_type)?;
        // The buffer is the tensor's own and holds its elements, so there are bytes.
        let bytes = Buffer::exclusive(&mut self.buffer)
            .and_then(|bytes| bytes.get_mut(..self.byte_length))
            .unwrap_or_default();
        Ok(bytemuck::cast_slice_mut(bytes))
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the dimensions, the one that varies slowest first.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
}

impl From<ExclusiveTensor> for Tensor {
    fn from(tensor: ExclusiveTensor) -> Self {
        let ExclusiveTensor {
            element_type,
            shape,
            buffer,
            ..
        } = tensor;
        Self::from_checked(element_type, &shape, buffer)
            .expect("it was a tensor of this shape over this buffer")
    }
}

impl fmt::Debug for ExclusiveTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExclusiveTensor")
            .field("shape", &self.shape)
            .field("element_type", &self.element_type)
            .finish_non_exhaustive()
    }
}
