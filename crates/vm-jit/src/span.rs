//! Bytes that a loop may access.

use core::marker::PhantomData;
use core::sync::atomic::AtomicU8;

/// Bytes that a loop may read, and perhaps write, while the span lives.
///
/// Invariant: `data` points to `length` bytes that are valid for `'a`; when `is_writable`, they are only accessed
/// atomically, or by code that is not bound by Rust's memory model.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    data: *const u8,
    length: usize,
    is_writable: bool,
    bytes: PhantomData<&'a [AtomicU8]>,
}

impl<'a> Span<'a> {
    /// Returns a span over bytes that nothing writes.
    #[must_use]
    pub const fn constant(bytes: &'a [u8]) -> Self {
        Self {
            data: bytes.as_ptr(),
            length: bytes.len(),
            is_writable: false,
            bytes: PhantomData,
        }
    }

    /// Returns a span over bytes that a loop may only read, though others may write them.
    #[must_use]
    pub const fn read_only(bytes: &'a [AtomicU8]) -> Self {
        Self {
            data: bytes.as_ptr().cast(),
            length: bytes.len(),
            is_writable: false,
            bytes: PhantomData,
        }
    }

    /// Returns a span over bytes that may be read and written, also by others at the same time.
    #[must_use]
    pub const fn writable(bytes: &'a [AtomicU8]) -> Self {
        Self {
            is_writable: true,
            ..Self::read_only(bytes)
        }
    }

    /// Returns the address of the first byte.
    pub(crate) const fn data(&self) -> *const u8 {
        self.data
    }

    /// Returns the count of bytes.
    pub(crate) const fn length(&self) -> usize {
        self.length
    }

    /// Returns whether the bytes may be written.
    pub(crate) const fn is_writable(&self) -> bool {
        self.is_writable
    }
}
