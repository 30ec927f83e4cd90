//! Recycling of buffer memory by size.
//!
//! A program that computes in a loop allocates the same sizes again and again; fresh memory of a large size costs a
//! page fault per page. A pool keeps what buffers give back and hands it out again, without clearing it.

use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::memory::{Block, Memory};

/// Memory that buffers of one session gave back, for its next buffers of the same size.
///
/// A clone is another handle to the same pool; a buffer keeps its pool alive. Threads may share a pool. What a pool
/// keeps never exceeds the most bytes that its buffers held at one time, so a session takes at most twice that.
#[derive(Clone, Default)]
pub struct BufferPool(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The free block that came last, which a loop asks for next: found without a search.
    last: Option<Block>,
    /// The other free blocks by their size and alignment.
    free: HashMap<(usize, usize), Vec<Block>, SizeHasher>,
    /// Bytes of all free blocks.
    free_bytes: usize,
    live_bytes: usize,
    peak_live_bytes: usize,
}

impl BufferPool {
    /// Returns an empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the bytes the pool keeps for later buffers.
    #[must_use]
    pub fn free_bytes(&self) -> usize {
        self.state().free_bytes
    }

    /// Frees the memory the pool keeps.
    pub fn trim(&self) {
        let mut state = self.state();
        state.free_bytes = 0;
        state.peak_live_bytes = state.live_bytes;
        let blocks = (state.last.take(), core::mem::take(&mut state.free));
        drop(state);
        drop(blocks);
    }

    /// Returns memory of `length` bytes, or `None` when it cannot be had. `alignment` is a power of two.
    pub(super) fn allocate(&self, length: usize, alignment: usize) -> Option<Memory> {
        let size = length.max(1);
        let mut state = self.state();
        let recycled = state.take(size, alignment);
        state.live_bytes = state.live_bytes.saturating_add(size);
        state.peak_live_bytes = state.peak_live_bytes.max(state.live_bytes);
        drop(state);

        let Some(block) = recycled.or_else(|| Block::allocate(size, alignment)) else {
            self.state().live_bytes -= size;
            return None;
        };
        Some(Memory::pooled(block, length, self.clone()))
    }

    /// Takes back the block of a buffer that is gone.
    pub(super) fn give_back(&self, block: Block) {
        let size = block.size();
        let mut state = self.state();
        state.live_bytes -= size;
        if state.free_bytes + size > state.peak_live_bytes {
            drop(state);
            return drop(block);
        }
        state.free_bytes += size;
        if let Some(earlier) = state.last.replace(block) {
            state.keep(earlier);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock, so a poisoned state is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a free block of this size and alignment.
    fn take(&mut self, size: usize, alignment: usize) -> Option<Block> {
        let fits = |block: &mut Block| block.size() == size && block.alignment() == alignment;
        let block = match self.last.take_if(fits) {
            None if self.free.is_empty() => None,
            None => self.free.get_mut(&(size, alignment)).and_then(Vec::pop),
            last => last,
        }?;
        self.free_bytes -= size;
        Some(block)
    }

    /// Files a block that is not the last one any more.
    fn keep(&mut self, block: Block) {
        let key = (block.size(), block.alignment());
        self.free.entry(key).or_default().push(block);
    }
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("BufferPool")
            .field("free_bytes", &state.free_bytes)
            .field("live_bytes", &state.live_bytes)
            .finish_non_exhaustive()
    }
}

/// Hashes a size and an alignment by multiplication: they come from the program's own allocations, and a collision
/// costs a comparison, so the standard hasher's strength would be wasted on every buffer.
type SizeHasher = core::hash::BuildHasherDefault<MultiplyHasher>;

#[derive(Default)]
struct MultiplyHasher(u64);

impl core::hash::Hasher for MultiplyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_usize(usize::from(*byte));
        }
    }

    fn write_usize(&mut self, value: usize) {
        self.0 = (self.0.rotate_left(5) ^ value as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
