//! One call of an imported function: its parameter block and the memory it may touch.
//!
//! This is the one place where a kernel's pointers become Rust references. What can be checked is
//! checked here: NULL, alignment, arithmetic, and that no reference of the call aliases another.
//! What cannot be checked is how far the memory reaches; the plugin promises that when it exports
//! the function ([`export_plugin!`](crate::export_plugin!)).

use core::cell::Cell;
use core::slice;

use crate::rows::{RowShape, Rows, RowsMut};
use crate::views::{Access, Span, Views};
use crate::{ConstPtr, MutPtr, Plain, StatusCode};

/// A call of an imported function, from a kernel.
///
/// `P` is the parameter block ([`parameter_block!`](crate::parameter_block!)). Views of memory
/// (slices, rows, cells) last until the call returns. Two views that overlap are refused unless
/// both are read only or both are cells, so a function that may run in place takes its operands as
/// cells. At most [`MAX_VIEWS`](crate::MAX_VIEWS) views can be held.
///
/// Invariant: `params` is the caller's block, exclusively borrowed for `'call`; every view handed
/// out is recorded in `views`, as is the block itself.
#[derive(Debug)]
pub struct Call<'call, P> {
    params: &'call mut P,
    views: Views,
}

impl<'call, P: Plain> Call<'call, P> {
    /// Starts a call.
    ///
    /// # Errors
    ///
    /// OUT_OF_RANGE if the block reaches past the address space, which no valid reference does.
    ///
    /// # Safety
    ///
    /// For `'call`, every view that the callee takes through the methods below addresses
    /// initialized memory of one allocation, readable and (from a [`MutPtr`]) writable; nobody
    /// else writes memory that is viewed, or reads memory that is viewed writable.
    pub(crate) unsafe fn new(params: &'call mut P) -> Result<Self, StatusCode> {
        let mut views = Views::new();
        let byte_length = size_of::<P>();
        if byte_length > 0 {
            let start = (&raw const *params).addr();
            views.claim(Span::new(start, byte_length, Access::Exclusive)?)?;
        }
        Ok(Self { params, views })
    }

    /// Returns the parameter block. Results in it are undefined until written.
    #[must_use]
    pub fn params(&self) -> &P {
        self.params
    }

    /// Returns the parameter block for writing results.
    #[must_use]
    pub fn params_mut(&mut self) -> &mut P {
        self.params
    }

    /// Views `len` elements, `offset` elements after `pointer`, for reading.
    ///
    /// # Errors
    ///
    /// * INVALID_ARGUMENT: the pointer is NULL or not aligned for `T`, and `len` is not 0.
    /// * OUT_OF_RANGE: the extent exceeds the address space.
    /// * FAILED_PRECONDITION: another view overlaps and is not read only.
    /// * RESOURCE_EXHAUSTED: the call holds too many views.
    pub fn slice<T: Plain>(
        &mut self,
        pointer: ConstPtr<T>,
        offset: usize,
        len: usize,
    ) -> Result<&'call [T], StatusCode> {
        if len == 0 {
            return Ok(&[]);
        }
        let first = self.claim(pointer.0, offset, len, Access::Shared)?;
        // SAFETY: `claim` checked that `first` is aligned, not NULL, and the start of `len`
        // elements within the address space that no writable view overlaps; that the memory is
        // there is the promise made at `Call::new`.
        Ok(unsafe { slice::from_raw_parts(first, len) })
    }

    /// Views `len` elements, `offset` elements after `pointer`, for reading and writing.
    ///
    /// # Errors
    ///
    /// As [`Call::slice`]; any overlap with another view is FAILED_PRECONDITION.
    pub fn slice_mut<T: Plain>(
        &mut self,
        pointer: MutPtr<T>,
        offset: usize,
        len: usize,
    ) -> Result<&'call mut [T], StatusCode> {
        if len == 0 {
            return Ok(&mut []);
        }
        let first = self.claim(pointer.0.cast_const(), offset, len, Access::Exclusive)?;
        // SAFETY: as in `slice`, and no other view overlaps; the memory is writable because the
        // pointer is a `MutPtr`, by the promise made at `Call::new`.
        Ok(unsafe { slice::from_raw_parts_mut(first.cast_mut(), len) })
    }

    /// Views `len` elements, `offset` elements after `pointer`, as cells: readable, writable, and
    /// free to overlap other cells of this call.
    ///
    /// # Errors
    ///
    /// As [`Call::slice`]; an overlap with a view that is not of cells is FAILED_PRECONDITION.
    pub fn cells<T: Plain>(
        &mut self,
        pointer: MutPtr<T>,
        offset: usize,
        len: usize,
    ) -> Result<&'call [Cell<T>], StatusCode> {
        if len == 0 {
            return Ok(&[]);
        }
        let first = self.claim(pointer.0.cast_const(), offset, len, Access::Cells)?;
        // SAFETY: as in `slice_mut`, except that other cells may overlap. A `Cell` has the layout
        // of its content and lets shared references write; `&[Cell<T>]` stays on this thread.
        Ok(unsafe { slice::from_raw_parts(first.cast::<Cell<T>>(), len) })
    }

    /// Views equally spaced rows for reading; the first starts `offset` elements after `pointer`.
    ///
    /// # Errors
    ///
    /// As [`Call::slice`], for the extent from the first to the last element of all rows.
    pub fn rows<T: Plain>(
        &mut self,
        pointer: ConstPtr<T>,
        offset: usize,
        shape: RowShape,
    ) -> Result<Rows<'call, T>, StatusCode> {
        let extent = shape.extent()?;
        if extent == 0 {
            return Ok(Rows::empty(shape));
        }
        let first = self.claim(pointer.0, offset, extent, Access::Shared)?;
        // SAFETY: as in `slice`, for the extent of all rows.
        Ok(unsafe { Rows::new(first, shape) })
    }

    /// Views equally spaced rows for reading and writing; the first starts `offset` elements after
    /// `pointer`. The memory between the rows is not touched and may belong to others.
    ///
    /// # Errors
    ///
    /// As [`Call::slice_mut`], for the extent from the first to the last element of all rows.
    /// INVALID_ARGUMENT also if rows overlap each other.
    pub fn rows_mut<T: Plain>(
        &mut self,
        pointer: MutPtr<T>,
        offset: usize,
        shape: RowShape,
    ) -> Result<RowsMut<'call, T>, StatusCode> {
        if shape.row_count > 1 && shape.row_stride < shape.row_length {
            return Err(StatusCode::INVALID_ARGUMENT);
        }
        let extent = shape.extent()?;
        if extent == 0 {
            return Ok(RowsMut::empty(shape));
        }
        let first = self.claim(pointer.0.cast_const(), offset, extent, Access::Exclusive)?;
        // SAFETY: as in `slice_mut`, for each row; the rows do not overlap, as checked above.
        Ok(unsafe { RowsMut::new(first.cast_mut(), shape) })
    }

    /// Checks and records the extent of `len` elements, which is not 0, and returns its start.
    fn claim<T>(
        &mut self,
        pointer: *const T,
        offset: usize,
        len: usize,
        access: Access,
    ) -> Result<*const T, StatusCode> {
        if pointer.is_null() || !pointer.is_aligned() {
            return Err(StatusCode::INVALID_ARGUMENT);
        }
        let byte_offset = offset
            .checked_mul(size_of::<T>())
            .ok_or(StatusCode::OUT_OF_RANGE)?;
        let byte_length = len
            .checked_mul(size_of::<T>())
            .ok_or(StatusCode::OUT_OF_RANGE)?;
        let start = pointer
            .addr()
            .checked_add(byte_offset)
            .ok_or(StatusCode::OUT_OF_RANGE)?;
        if byte_length > 0 {
            self.views.claim(Span::new(start, byte_length, access)?)?;
        }
        Ok(pointer.wrapping_add(offset))
    }
}
