//! Equally spaced rows of a matrix, whose gaps may belong to somebody else.

use core::marker::PhantomData;
use core::slice;

use crate::StatusCode;

/// The shape of equally spaced rows; all numbers count elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowShape {
    /// The number of rows.
    pub row_count: usize,
    /// The number of elements in a row.
    pub row_length: usize,
    /// The distance from the start of a row to the start of the next.
    pub row_stride: usize,
}

impl RowShape {
    /// Returns the number of elements from the first to the last of all rows, gaps included.
    pub(crate) fn extent(self) -> Result<usize, StatusCode> {
        let Some(last_row) = self.row_count.checked_sub(1) else {
            return Ok(0);
        };
        if self.row_length == 0 {
            return Ok(0);
        }
        last_row
            .checked_mul(self.row_stride)
            .and_then(|start| start.checked_add(self.row_length))
            .ok_or(StatusCode::OUT_OF_RANGE)
    }

    /// Returns where row `index` starts.
    fn start(self, index: usize) -> Option<usize> {
        // The product is within the extent, which did not overflow.
        (index < self.row_count).then(|| index.wrapping_mul(self.row_stride))
    }
}

/// Rows for reading.
///
/// Invariant: `first` is the start of a readable extent of `shape`, unless that is empty.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'call, T> {
    first: *const T,
    shape: RowShape,
    memory: PhantomData<&'call [T]>,
}

impl<'call, T> Rows<'call, T> {
    /// Rows without elements.
    pub(crate) fn empty(shape: RowShape) -> Self {
        Self {
            first: core::ptr::dangling(),
            shape,
            memory: PhantomData,
        }
    }

    /// Rows from `first` on.
    ///
    /// # Safety
    ///
    /// Each row is aligned, initialized, readable memory for `'call`, which nobody writes.
    pub(crate) unsafe fn new(first: *const T, shape: RowShape) -> Self {
        Self {
            first,
            shape,
            memory: PhantomData,
        }
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> RowShape {
        self.shape
    }

    /// Returns a row, or `None` past the last.
    #[must_use]
    pub fn row(&self, index: usize) -> Option<&'call [T]> {
        let start = self.shape.start(index)?;
        if self.shape.row_length == 0 {
            return Some(&[]);
        }
        let row = self.first.wrapping_add(start);
        // SAFETY: the row lies within the extent, by the invariant of the type.
        Some(unsafe { slice::from_raw_parts(row, self.shape.row_length) })
    }

    /// Returns the rows in order.
    pub fn iter(&self) -> impl Iterator<Item = &'call [T]> + '_ {
        (0..self.shape.row_count).filter_map(|index| self.row(index))
    }
}

/// Rows for reading and writing.
///
/// Invariant: `first` is the start of rows of `shape` that do not overlap and are exclusively ours,
/// unless they are empty.
#[derive(Debug)]
pub struct RowsMut<'call, T> {
    first: *mut T,
    shape: RowShape,
    memory: PhantomData<&'call mut [T]>,
}

impl<'call, T> RowsMut<'call, T> {
    /// Rows without elements.
    pub(crate) fn empty(shape: RowShape) -> Self {
        Self {
            first: core::ptr::dangling_mut(),
            shape,
            memory: PhantomData,
        }
    }

    /// Rows from `first` on.
    ///
    /// # Safety
    ///
    /// Each row is aligned, initialized, writable memory for `'call`, which nobody else touches.
    /// Rows do not overlap.
    pub(crate) unsafe fn new(first: *mut T, shape: RowShape) -> Self {
        Self {
            first,
            shape,
            memory: PhantomData,
        }
    }

    /// Returns the shape.
    #[must_use]
    pub fn shape(&self) -> RowShape {
        self.shape
    }

    /// Returns a row, or `None` past the last.
    #[must_use]
    pub fn row_mut(&mut self, index: usize) -> Option<&mut [T]> {
        let start = self.shape.start(index)?;
        if self.shape.row_length == 0 {
            return Some(&mut []);
        }
        let row = self.first.wrapping_add(start);
        // SAFETY: the row lies within the extent, by the invariant of the type, and `self` stays
        // borrowed while the row is.
        Some(unsafe { slice::from_raw_parts_mut(row, self.shape.row_length) })
    }

    /// Returns the rows in order, all at once if wanted.
    pub fn into_rows(self) -> impl Iterator<Item = &'call mut [T]> {
        let Self { first, shape, .. } = self;
        (0..shape.row_count).filter_map(move |index| {
            let start = shape.start(index)?;
            if shape.row_length == 0 {
                return Some(Default::default());
            }
            let row = first.wrapping_add(start);
            // SAFETY: the row lies within the extent, by the invariant of the type; each index
            // comes once, rows do not overlap, and `self` is gone.
            Some(unsafe { slice::from_raw_parts_mut(row, shape.row_length) })
        })
    }
}
