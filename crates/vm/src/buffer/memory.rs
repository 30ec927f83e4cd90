//! The bytes behind a buffer: allocated, borrowed from an owner, or part of another buffer.
//!
//! This is the crate's one room of `unsafe` code. The argument, once for all blocks:
//!
//! * `Memory::data` points to `length` initialized bytes that live as long as the `Memory`: its `source` owns them or
//!   keeps their owner alive, and none of the owners moves or frees them before it is dropped.
//! * Bytes with a `Source::Constant` root are only ever read, by plain or atomic loads.
//! * All other bytes are accessed through atomics of the safe interface, by foreign kernels (whose embedder promised
//!   their behavior when loading them), or through a unique reference.
//!
//! Accesses are relaxed atomic operations of the widest width that the address allows. On the machines Halite runs on
//! they compile to plain moves; they are what keeps two sessions that share a buffer free of data races. (Not proven:
//! what accesses of different widths to one place give when they race; see `docs/safety.md`.)

#![expect(
    unsafe_code,
    reason = "the buffer's storage is one of the design's rooms"
)]

use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU8, AtomicU64};
use std::alloc::{alloc_zeroed, dealloc};
use std::sync::Arc;

use super::{Buffer, Word};

/// Something that owns constant bytes: a file's contents, a mapping, a static array.
///
/// Blanket-implemented for byte containers that can be shared.
pub trait BytesOwner: Send + Sync + 'static {
    /// Returns the bytes; always the same ones, unchanged, while the owner lives.
    fn bytes(&self) -> &[u8];
}

impl<T: AsRef<[u8]> + Send + Sync + 'static> BytesOwner for T {
    fn bytes(&self) -> &[u8] {
        self.as_ref()
    }
}

/// Bytes of a buffer, as what they are.
#[derive(Clone, Copy, Debug)]
pub enum Bytes<'a> {
    /// Bytes that nothing writes.
    Constant(&'a [u8]),
    /// Bytes that others may read and write at any time.
    Shared(&'a [AtomicU8]),
}

/// Bytes with their owner. See the module's argument for its invariant.
pub(super) struct Memory {
    data: NonNull<u8>,
    length: usize,
    /// Whether the root of `source` is [`Source::Constant`]; asked at every dispatch.
    is_constant: bool,
    source: Source,
}

enum Source {
    /// A block of the global allocator; `None` when there are no bytes.
    Block { _block: Option<Block> },
    /// Bytes of an owner, never written.
    Constant { _owner: Arc<dyn BytesOwner> },
    /// Part of another buffer.
    Part { whole: Arc<Buffer> },
}

/// A block of the global allocator, freed on drop. Its bytes are initialized.
///
/// Invariant: `start` is an allocation of `layout`.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a `Block` owns its memory alone, as a `Box<[u8]>` does.
unsafe impl Send for Block {}
// SAFETY: a shared `Block` gives no access to its bytes.
unsafe impl Sync for Block {}

// SAFETY: `data` is the only field that is not `Send`; the bytes it points to are owned by `source`, which is.
unsafe impl Send for Memory {}
// SAFETY: through a shared `Memory` the bytes are only accessed atomically, or read when nothing writes them (see the
// module's argument).
unsafe impl Sync for Memory {}

impl Block {
    /// Returns a zero-filled block and the start of `length` bytes in it, or `None` when the memory cannot be had.
    /// `alignment` is a power of two.
    fn allocate(length: usize, alignment: usize) -> Option<(Self, NonNull<u8>)> {
        // The allocator only promises memory that is zero without being written, as fresh pages are, for alignments up
        // to its own; a block of more takes a little more memory and starts inside it.
        const ALLOCATOR_ALIGNMENT: usize = 16;
        let size = length.max(1);
        let slack = alignment.saturating_sub(ALLOCATOR_ALIGNMENT);
        let layout = Layout::from_size_align(size.checked_add(slack)?, ALLOCATOR_ALIGNMENT).ok()?;
        // SAFETY: the size of `layout` is at least one.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        let offset = start.as_ptr().addr().next_multiple_of(alignment) - start.as_ptr().addr();
        // SAFETY: both addresses are multiples of 16, so `offset` is at most `slack`, and `size` bytes follow.
        let data = unsafe { start.add(offset) };
        Some((Self { start, layout }, data))
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from the global allocator with this layout and is not used after the drop.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}

impl Memory {
    /// Returns zero-filled memory of its own.
    pub(super) fn allocate(length: usize, alignment: usize) -> Option<Self> {
        let (block, data) = Block::allocate(length, alignment)?;
        Some(Self {
            data,
            length,
            is_constant: false,
            source: Source::Block {
                _block: Some(block),
            },
        })
    }

    /// Takes the memory and leaves none.
    pub(super) fn take(&mut self) -> Self {
        let nothing = Self {
            data: NonNull::dangling(),
            length: 0,
            is_constant: false,
            source: Source::Block { _block: None },
        };
        core::mem::replace(self, nothing)
    }

    /// Returns memory over `range` of constant bytes, or `None` when the range does not lie in them.
    pub(super) fn constant(owner: Arc<dyn BytesOwner>, range: Range<usize>) -> Option<Self> {
        let bytes = owner.bytes().get(range)?;
        let (data, length) = (NonNull::from(bytes).cast(), bytes.len());
        Some(Self {
            data,
            length,
            is_constant: true,
            source: Source::Constant { _owner: owner },
        })
    }

    /// Returns memory over `range` of another buffer; the caller checked that the range lies in it.
    pub(super) fn part(whole: &Arc<Buffer>, range: Range<usize>) -> Self {
        let memory = &whole.memory;
        assert!(
            range.start <= range.end && range.end <= memory.length,
            "checked by the caller"
        );
        // SAFETY: the range lies in the bytes of `whole`, so the address does too (or one past their end).
        let data = unsafe { memory.data.add(range.start) };
        // Parts of parts hold on to the outermost buffer, so that chains do not grow.
        let root = match &memory.source {
            Source::Part { whole } => whole,
            Source::Block { .. } | Source::Constant { .. } => whole,
        };
        Self {
            data,
            length: range.len(),
            is_constant: memory.is_constant,
            source: Source::Part {
                whole: Arc::clone(root),
            },
        }
    }

    /// Returns the length in bytes.
    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Returns the address of the first byte.
    pub(super) fn address(&self) -> usize {
        self.data.as_ptr().addr()
    }

    /// Returns `length` bytes from `start` as what they are; the caller checked that they lie in the memory.
    #[inline]
    pub(super) fn bytes(&self, start: usize, length: usize) -> Bytes<'_> {
        debug_assert!(start <= self.length && length <= self.length - start);
        // SAFETY: the bytes lie in the memory, so their start does too (or one past its end).
        let data = unsafe { self.data.add(start) };
        if self.is_constant {
            let bytes = NonNull::slice_from_raw_parts(data, length);
            // SAFETY: the bytes are valid while `self` is borrowed and constant bytes are never written.
            return Bytes::Constant(unsafe { bytes.as_ref() });
        }
        let bytes = NonNull::slice_from_raw_parts(data.cast::<AtomicU8>(), length);
        // SAFETY: the bytes are valid while `self` is borrowed, `AtomicU8` has the layout of `u8`, and bytes that are
        // not constant are accessed atomically.
        Bytes::Shared(unsafe { bytes.as_ref() })
    }

    /// Returns the bytes, or `None` when they are not constant.
    #[inline]
    pub(super) fn constant_bytes(&self) -> Option<&[u8]> {
        match self.bytes(0, self.length) {
            Bytes::Constant(bytes) => Some(bytes),
            Bytes::Shared(_) => None,
        }
    }

    /// Returns the bytes of a block for reading and writing, or `None` when they are not this memory's own.
    pub(super) fn exclusive_bytes(&mut self) -> Option<&mut [u8]> {
        if !matches!(self.source, Source::Block { .. }) {
            return None;
        }
        let mut bytes = NonNull::slice_from_raw_parts(self.data, self.length);
        // SAFETY: the bytes are valid while `self` is borrowed, and since `self` is borrowed mutably no part of it
        // exists (a part holds a reference to the buffer) and nothing else accesses them.
        Some(unsafe { bytes.as_mut() })
    }

    /// Returns the word at byte `start`; the caller checked that it lies in the memory.
    #[inline]
    pub(super) fn load<W: Word>(&self, start: usize) -> W {
        debug_assert!(start + size_of::<W>() <= self.length);
        // SAFETY: `start` lies in the bytes.
        let at = unsafe { self.data.add(start) };
        if at.cast::<W::Atomic>().is_aligned() {
            // SAFETY: the word lies in the bytes, is aligned, and is accessed atomically or only read.
            return W::load(unsafe { at.cast::<W::Atomic>().as_ref() });
        }
        let mut bytes = [0; 8];
        self.read(start, &mut bytes[..size_of::<W>()]);
        W::from_le_slice(&bytes)
    }

    /// Sets the word at byte `start`; the caller checked that it lies in the memory and that it is mutable.
    #[inline]
    pub(super) fn store<W: Word>(&self, start: usize, value: W) {
        debug_assert!(start + size_of::<W>() <= self.length);
        // SAFETY: `start` lies in the bytes.
        let at = unsafe { self.data.add(start) };
        if at.cast::<W::Atomic>().is_aligned() {
            // SAFETY: the word lies in the bytes, is aligned, and is accessed atomically.
            W::store(unsafe { at.cast::<W::Atomic>().as_ref() }, value);
            return;
        }
        let mut bytes = [0; 8];
        value.to_le_slice(&mut bytes);
        self.write(start, &bytes[..size_of::<W>()]);
    }

    /// Copies bytes from `start` to `target`.
    pub(super) fn read(&self, start: usize, target: &mut [u8]) {
        let end = start + target.len();
        assert!(end <= self.length, "checked by the caller");
        if let Some(bytes) = self.constant_bytes() {
            target.copy_from_slice(&bytes[start..end]);
            return;
        }
        let head = self.bytes_to_word(start).min(target.len());
        let (head_bytes, rest) = target.split_at_mut(head);
        let (words, tail_bytes) = rest.as_chunks_mut::<8>();
        let tail = start + head + words.len() * 8;
        for (at, byte) in (start..).zip(head_bytes) {
            *byte = self.load::<u8>(at);
        }
        for (word, atomic) in words.iter_mut().zip(self.words(start + head)) {
            *word = <u64 as Word>::load(atomic).to_le_bytes();
        }
        for (at, byte) in (tail..).zip(tail_bytes) {
            *byte = self.load::<u8>(at);
        }
    }

    /// Copies `source` to the bytes from `start`.
    pub(super) fn write(&self, start: usize, source: &[u8]) {
        let end = start + source.len();
        assert!(end <= self.length, "checked by the caller");
        let head = self.bytes_to_word(start).min(source.len());
        let (head_bytes, rest) = source.split_at(head);
        let (words, tail_bytes) = rest.as_chunks::<8>();
        let tail = start + head + words.len() * 8;
        for (at, byte) in (start..).zip(head_bytes) {
            self.store::<u8>(at, *byte);
        }
        for (word, atomic) in words.iter().zip(self.words(start + head)) {
            <u64 as Word>::store(atomic, u64::from_le_bytes(*word));
        }
        for (at, byte) in (tail..).zip(tail_bytes) {
            self.store::<u8>(at, *byte);
        }
    }

    /// Returns the number of bytes from `start` to the next address that is a multiple of 8.
    fn bytes_to_word(&self, start: usize) -> usize {
        let address = self.address() + start;
        address.next_multiple_of(8) - address
    }

    /// Returns the whole 64-bit words from `start`; none when its address is not a multiple of 8.
    fn words(&self, start: usize) -> &[AtomicU64] {
        if start > self.length || self.bytes_to_word(start) != 0 {
            return &[];
        }
        // SAFETY: `start` lies in the bytes or one past their end.
        let data = unsafe { self.data.add(start) }.cast::<AtomicU64>();
        let words = NonNull::slice_from_raw_parts(data, (self.length - start) / 8);
        // SAFETY: the words lie in the bytes and are aligned; they are only accessed atomically, or only read when the
        // bytes are constant (callers store to mutable bytes alone).
        unsafe { words.as_ref() }
    }

    /// Sets every word of `range` to `value`; the range is a whole number of words.
    pub(super) fn fill<W: Word>(&self, range: Range<usize>, value: W) {
        assert!(
            range.start <= range.end && range.end <= self.length,
            "checked by the caller"
        );
        let mut pattern = [0; 8];
        for chunk in pattern.chunks_exact_mut(size_of::<W>()) {
            value.to_le_slice(chunk);
        }
        // Any 8 bytes of the repeated pattern are the pattern, because its width divides 8 and `at` moves by 8.
        let mut at = range.start;
        while at + 8 <= range.end {
            self.store::<u64>(at, u64::from_le_bytes(pattern));
            at += 8;
        }
        self.write(at, &pattern[..range.end - at]);
    }

    /// Copies the bytes `from` of `source` to `start`, as if all were read before any is written.
    pub(super) fn copy_from(&self, start: usize, source: &Self, from: Range<usize>) {
        const CHUNK: usize = 512;
        if let Some(bytes) = source.constant_bytes() {
            return self.write(start, &bytes[from]);
        }
        let length = from.len();
        let target_address = self.address() + start;
        let source_address = source.address() + from.start;
        let overlaps =
            target_address < source_address + length && source_address < target_address + length;
        if !overlaps && self.bytes_to_word(start) == 0 && source.bytes_to_word(from.start) == 0 {
            let count = length / 8;
            copy_words(
                &self.words(start)[..count],
                &source.words(from.start)[..count],
            );
            for at in count * 8..length {
                self.store::<u8>(start + at, source.load::<u8>(from.start + at));
            }
            return;
        }
        let mut chunk = [0; CHUNK];
        // Walk away from the overlap, so that a piece is read before it is overwritten.
        let backwards = target_address > source_address;
        let mut done = 0;
        while done < length {
            let piece = CHUNK.min(length - done);
            let offset = if backwards {
                length - done - piece
            } else {
                done
            };
            source.read(from.start + offset, &mut chunk[..piece]);
            self.write(start + offset, &chunk[..piece]);
            done += piece;
        }
    }

    /// Returns whether the bytes `left` equal the bytes `right` of `other`; both ranges are equally long.
    pub(super) fn equals(&self, left: Range<usize>, other: &Self, right: Range<usize>) -> bool {
        const CHUNK: usize = 1024;
        let (mut a, mut b) = ([0; CHUNK], [0; CHUNK]);
        let length = left.len();
        (0..length).step_by(CHUNK).all(|offset| {
            let piece = CHUNK.min(length - offset);
            self.read(left.start + offset, &mut a[..piece]);
            other.read(right.start + offset, &mut b[..piece]);
            a[..piece] == b[..piece]
        })
    }
}

/// Copies the words of `source` to `target`, which are equally many, eight in a row: a loop of atomic accesses is not
/// unrolled by itself.
fn copy_words(target: &[AtomicU64], source: &[AtomicU64]) {
    let copy = |target: &[AtomicU64], source: &[AtomicU64]| {
        for (target, source) in target.iter().zip(source) {
            <u64 as Word>::store(target, <u64 as Word>::load(source));
        }
    };
    let ((targets, last_target), (sources, last_source)) =
        (target.as_chunks::<8>(), source.as_chunks::<8>());
    for (target, source) in targets.iter().zip(sources) {
        copy(target, source);
    }
    copy(last_target, last_source);
}
