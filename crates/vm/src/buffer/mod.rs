//! Buffers: shared runs of bytes with checked access.
//!
//! Holds the buffer, its bounds and its rights. How bytes that several threads may see are read and written is in
//! `memory`, where memory comes from and goes back to is in `pool`.
//!
//! The rule to know: every range is checked with arithmetic that cannot wrap before a byte is touched.

mod hash;
mod memory;
mod pool;
mod word;

use core::fmt;
use core::ops::Range;
use core::sync::atomic::AtomicU8;
use std::sync::Arc;

use crate::{Result, StatusCode, Trap};

use memory::Memory;
pub use memory::{Bytes, BytesOwner};
pub use pool::BufferPool;
use pool::Home;
pub use word::Word;

/// Alignment of every allocation, in bytes: what compiled kernels assume of a binding
/// (`docs/abi.md`, section 7).
pub const BUFFER_ALIGNMENT: usize = 64;

/// What a program may do with a buffer and where it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct Access(u8);

impl Access {
    /// Constant data of a module: read-only.
    pub const CONSTANT: Self = Self(2);
    /// Memory that the program or its modules allocated: mutable.
    pub const GUEST: Self = Self(1 | 4);
    /// Memory provided by the embedder: mutable.
    pub const HOST: Self = Self(1 | 8);
    /// Memory provided by the embedder: read-only.
    pub const HOST_CONSTANT: Self = Self(8);

    /// Returns whether the bytes may be written.
    #[must_use]
    pub const fn is_mutable(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether the bytes are constant data of a module.
    #[must_use]
    pub const fn is_module_constant(self) -> bool {
        self.0 & 2 != 0
    }
}

/// A run of bytes that refs share.
///
/// Invariant: `memory` is valid for the buffer's whole life and its mutable bytes are only accessed through atomic
/// operations or foreign code; its constant bytes are never written. A buffer can therefore be shared by threads;
/// racing accesses give some mix of the values written, never undefined behavior of the safe interface.
pub struct Buffer {
    memory: Memory,
    access: Access,
    home: Home,
}

impl Buffer {
    /// Allocates a zero-filled mutable buffer of `length` bytes, aligned to at least [`BUFFER_ALIGNMENT`] and to
    /// `alignment`, a power of two or 0.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when `alignment` is not a power of two, `RESOURCE_EXHAUSTED` when the memory cannot be had.
    pub fn allocate(length: u64, alignment: u64) -> Result<Arc<Self>> {
        let alignment = checked_alignment(alignment)?;
        let memory = checked_length(length).and_then(|length| Memory::allocate(length, alignment));
        let memory = memory.ok_or_else(|| allocation_failure(length, alignment))?;
        Ok(Arc::new(Self::of(memory, Access::GUEST)))
    }

    /// Allocates as [`Buffer::allocate`], but takes a buffer of `pool` that has this size and that nobody holds any more,
    /// if there is one; it holds what it held before.
    ///
    /// The pool keeps the buffer, by a reference that [`Arc::strong_count`] counts. Do not keep a [`std::sync::Weak`] to
    /// it: it would come back as another buffer of the program.
    ///
    /// # Errors
    /// As [`Buffer::allocate`].
    pub fn allocate_in(pool: &BufferPool, length: u64, alignment: u64) -> Result<Arc<Self>> {
        let alignment = checked_alignment(alignment)?;
        let buffer = checked_length(length).and_then(|length| pool.allocate(length, alignment));
        buffer.ok_or_else(|| allocation_failure(length, alignment))
    }

    /// Returns a buffer that is in no pool.
    fn of(memory: Memory, access: Access) -> Self {
        Self {
            memory,
            access,
            home: Home::None,
        }
    }

    /// Returns a mutable buffer that holds a copy of `bytes`.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` when the memory cannot be had.
    pub fn copied_from(bytes: &[u8], access: Access) -> Result<Arc<Self>> {
        let alignment = BUFFER_ALIGNMENT;
        let mut memory = Memory::allocate(bytes.len(), alignment)
            .ok_or_else(|| allocation_failure(bytes.len() as u64, alignment))?;
        if let Some(target) = memory.exclusive_bytes() {
            target.copy_from_slice(bytes);
        }
        Ok(Arc::new(Self::of(memory, access)))
    }

    /// Returns a read-only buffer over `range` of the bytes of `owner`, which stays alive as long as the buffer.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when `range` is not a range of the bytes.
    pub fn constant(
        owner: Arc<dyn BytesOwner>,
        range: Range<usize>,
        access: Access,
    ) -> Result<Arc<Self>> {
        let length = owner.bytes().len();
        let memory = Memory::constant(owner, range.clone()).ok_or_else(|| {
            Trap::out_of_range(format!(
                "bytes {}..{} lie outside the {length} bytes of their owner",
                range.start, range.end
            ))
        })?;
        Ok(Arc::new(Self::of(memory, Access(access.0 & !1))))
    }

    /// Returns a buffer over `length` bytes at `offset` of this one; the bytes are shared and this buffer's memory
    /// stays alive.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer.
    #[inline]
    pub fn subspan(self: &Arc<Self>, offset: u64, length: u64) -> Result<Arc<Self>> {
        if offset == 0 && length == self.length() as u64 {
            return Ok(Arc::clone(self));
        }
        self.part(offset, length)
    }

    /// Returns a buffer over a part of this one.
    fn part(self: &Arc<Self>, offset: u64, length: u64) -> Result<Arc<Self>> {
        let range = self.range(offset, length, 1)?;
        Ok(Arc::new(Self::of(Memory::part(self, range), self.access)))
    }

    /// Returns the length in bytes.
    #[must_use]
    #[inline]
    pub fn length(&self) -> usize {
        self.memory.length()
    }

    /// Returns what may be done with the bytes.
    #[must_use]
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the address of the first byte, for alignment checks and reports.
    #[must_use]
    pub fn address(&self) -> usize {
        self.memory.address()
    }

    /// Returns the bytes as shared atomics, or `None` when the buffer is read-only.
    #[must_use]
    pub fn as_shared(&self) -> Option<&[AtomicU8]> {
        match self.memory.bytes(0, self.length()) {
            Bytes::Shared(bytes) if self.access.is_mutable() => Some(bytes),
            Bytes::Shared(_) | Bytes::Constant(_) => None,
        }
    }

    /// Returns the bytes, or `None` when they could be written while the slice lives.
    #[must_use]
    pub fn as_constant(&self) -> Option<&[u8]> {
        self.memory.constant_bytes()
    }

    /// Returns `length` bytes from `offset`, for a kernel to work on. Shared bytes of a read-only buffer are returned
    /// as well: whether they are written is up to the kernel.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer.
    #[inline]
    pub fn span(&self, offset: u64, length: u64) -> Result<Bytes<'_>> {
        match self.get_span(offset, length) {
            Some(bytes) => Ok(bytes),
            None => Err(self.out_of_bounds(offset, length, 1)),
        }
    }

    /// Returns bytes as [`Buffer::span`] does, or `None` when the range does not lie in the buffer.
    #[inline]
    #[must_use]
    pub fn get_span(&self, offset: u64, length: u64) -> Option<Bytes<'_>> {
        let total = self.length() as u64;
        if offset <= total && length <= total - offset {
            return Some(self.memory.bytes(host_size(offset), host_size(length)));
        }
        None
    }

    /// Returns the bytes for reading and writing when `buffer` is the only reference to them.
    #[must_use]
    pub fn exclusive(buffer: &mut Arc<Self>) -> Option<&mut [u8]> {
        // The pool's own reference is in the way, but not for anybody's sake.
        if let Home::Pool(place) = &buffer.home
            && Arc::strong_count(buffer) == 2
        {
            place.leave(buffer);
        }
        let buffer = Arc::get_mut(buffer)?;
        buffer.home.leave();
        buffer.memory.exclusive_bytes()
    }

    /// Returns a copy of all bytes.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length()];
        self.memory.read(0, &mut bytes);
        bytes
    }

    /// Copies `target.len()` bytes from `offset` into `target`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<()> {
        let range = self.range(offset, target.len() as u64, 1)?;
        self.memory.read(range.start, target);
        Ok(())
    }

    /// Copies `source` into the bytes from `offset`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer, `PERMISSION_DENIED` when it is read-only.
    pub fn write(&self, offset: u64, source: &[u8]) -> Result<()> {
        self.check_mutable()?;
        let range = self.range(offset, source.len() as u64, 1)?;
        self.memory.write(range.start, source);
        Ok(())
    }

    /// Returns the element at `index`, counted in elements of `W`; the address needs no alignment.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the element does not lie in the buffer.
    #[inline]
    pub fn load<W: Word>(&self, index: u64) -> Result<W> {
        let start = self.element::<W>(index)?;
        Ok(self.memory.load::<W>(start))
    }

    /// Stores `value` at `index`, counted in elements of `W`; the address needs no alignment.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` when the buffer is read-only, `OUT_OF_RANGE` when the element does not lie in it.
    #[inline]
    pub fn store<W: Word>(&self, index: u64, value: W) -> Result<()> {
        if !self.access.is_mutable() {
            return Err(read_only());
        }
        let start = self.element::<W>(index)?;
        self.memory.store::<W>(start, value);
        Ok(())
    }

    /// Stores `value` in `count` elements of `W` from `index`; both are counted in elements.
    ///
    /// # Errors
    /// As [`Buffer::store`].
    pub fn fill<W: Word>(&self, index: u64, count: u64, value: W) -> Result<()> {
        self.check_mutable()?;
        let range = self.elements::<W>(index, count)?;
        self.memory.fill::<W>(range, value);
        Ok(())
    }

    /// Copies `length` bytes from `source_offset` of `source` to `offset` of this buffer. The ranges may overlap: the
    /// result is as if the source were read whole before anything is written.
    ///
    /// # Errors
    /// `PERMISSION_DENIED` when this buffer is read-only, `OUT_OF_RANGE` when a range does not lie in its buffer.
    pub fn copy_from(
        &self,
        offset: u64,
        source: &Self,
        source_offset: u64,
        length: u64,
    ) -> Result<()> {
        let from = source.range(source_offset, length, 1)?;
        self.check_mutable()?;
        let to = self.range(offset, length, 1)?;
        self.memory.copy_from(to.start, &source.memory, from);
        Ok(())
    }

    /// Returns a new mutable buffer that holds a copy of `length` bytes from `offset`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer, and as [`Buffer::allocate`].
    pub fn clone_range(&self, offset: u64, length: u64, alignment: u64) -> Result<Arc<Self>> {
        let range = self.range(offset, length, 1)?;
        let target = Self::allocate(length, alignment)?;
        target.memory.copy_from(0, &self.memory, range);
        Ok(target)
    }

    /// Returns whether `length` bytes at `offset` equal those at `other_offset` of `other`.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when a range does not lie in its buffer.
    pub fn equals(
        &self,
        offset: u64,
        other: &Self,
        other_offset: u64,
        length: u64,
    ) -> Result<bool> {
        let left = self.range(offset, length, 1)?;
        let right = other.range(other_offset, length, 1)?;
        Ok(self.memory.equals(left, &other.memory, right))
    }

    /// Returns the SipHash-2-4 of `length` bytes at `offset` under the key of bytes 0 to 15
    /// (`docs/vm.md`, section "Buffers").
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer.
    pub fn hash(&self, offset: u64, length: u64) -> Result<u64> {
        let range = self.range(offset, length, 1)?;
        Ok(hash::sip_hash(range.len(), |at, chunk| {
            self.memory.read(range.start + at, chunk)
        }))
    }

    /// Returns the byte range `offset..offset + length`, checked against the length; `width` is the element width
    /// that an error reports.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when the range does not lie in the buffer.
    #[inline]
    pub fn range(&self, offset: u64, length: u64, width: usize) -> Result<Range<usize>> {
        let total = self.length() as u64;
        if offset <= total && length <= total - offset {
            let start = host_size(offset);
            return Ok(start..start + host_size(length));
        }
        Err(self.out_of_bounds(offset, length, width))
    }

    #[inline]
    fn element<W: Word>(&self, index: u64) -> Result<usize> {
        let width = size_of::<W>();
        let length = self.length();
        // `index < length / width` keeps `index * width + width` within the length.
        match length.checked_sub(width) {
            Some(last) if index <= (last / width) as u64 => Ok(host_size(index) * width),
            _ => Err(self.out_of_bounds(index.saturating_mul(width as u64), width as u64, width)),
        }
    }

    fn elements<W: Word>(&self, index: u64, count: u64) -> Result<Range<usize>> {
        let width = size_of::<W>() as u64;
        match (index.checked_mul(width), count.checked_mul(width)) {
            (Some(offset), Some(length)) => self.range(offset, length, size_of::<W>()),
            _ => Err(self.out_of_bounds(
                index.saturating_mul(width),
                count.saturating_mul(width),
                size_of::<W>(),
            )),
        }
    }

    /// Gives the memory back to the pool that the buffer left.
    #[cold]
    fn return_home(&mut self) {
        if let Home::Left(place) = core::mem::take(&mut self.home) {
            place.give_back(self.memory.take());
        }
    }

    fn check_mutable(&self) -> Result<()> {
        if self.access.is_mutable() {
            Ok(())
        } else {
            Err(read_only())
        }
    }

    #[cold]
    fn out_of_bounds(&self, offset: u64, length: u64, width: usize) -> Trap {
        Trap::out_of_range(format!(
            "out-of-bounds access detected (offset={offset}, length={length}, alignment={width}, \
             buffer length={})",
            self.length()
        ))
    }
}

impl Drop for Buffer {
    #[inline]
    fn drop(&mut self) {
        if let Home::Left(_) = self.home {
            self.return_home();
        }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer")
            .field("length", &self.length())
            .field("access", &self.access)
            .finish()
    }
}

#[inline]
fn checked_alignment(alignment: u64) -> Result<usize> {
    if alignment == 0 {
        return Ok(BUFFER_ALIGNMENT);
    }
    match usize::try_from(alignment) {
        Ok(alignment) if alignment.is_power_of_two() => Ok(alignment.max(BUFFER_ALIGNMENT)),
        _ => Err(bad_alignment(alignment)),
    }
}

#[cold]
fn bad_alignment(alignment: u64) -> Trap {
    Trap::invalid_argument(format!(
        "buffer alignment {alignment} is not a power of two"
    ))
}

/// Returns a number that is at most the length of a buffer as a host size, which that length fits.
#[inline]
fn host_size(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

fn checked_length(length: u64) -> Option<usize> {
    usize::try_from(length)
        .ok()
        .filter(|&length| length <= isize::MAX as usize)
}

#[cold]
fn allocation_failure(length: u64, alignment: usize) -> Trap {
    Trap::new(
        StatusCode::RESOURCE_EXHAUSTED,
        format!("cannot allocate a buffer of {length} bytes aligned to {alignment}"),
    )
}

#[cold]
fn read_only() -> Trap {
    Trap::new(
        StatusCode::PERMISSION_DENIED,
        "buffer is read-only and cannot be mapped for mutation",
    )
}

#[cfg(test)]
mod tests;
