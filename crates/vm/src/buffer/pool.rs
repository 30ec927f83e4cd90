//! Recycling of buffers by size.
//!
//! A program that computes in a loop allocates the same sizes again and again. Fresh memory costs calls of the allocator,
//! and a page fault per page when it is large. A pool holds a reference to each buffer that it made: one that nobody else
//! holds is free, and is handed out again as it is. So nobody has to tell the pool that a buffer is gone, and giving one up
//! costs no more than a count.

use core::fmt;
use core::sync::atomic::{Ordering, fence};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::memory::Memory;
use super::{Access, Buffer};

/// How many buffers of the right size are looked at for a free one. When more are in use than this and the free ones hide
/// among them, fresh memory is taken instead, and the next time others are looked at.
const PROBES: usize = 64;

/// Buffers of one session, for its next ones of the same size.
///
/// A clone is another handle to the same pool. Threads may share a pool, and a buffer may outlive it. All buffers of a
/// pool, those in use and those that it keeps, never take more than twice the most bytes that were in use at one time.
#[derive(Clone, Default)]
pub struct BufferPool(Arc<Mutex<State>>);

/// Where a buffer returns to, if its pool is still there.
#[derive(Debug, Default)]
pub(super) enum Home {
    /// It is in no pool.
    #[default]
    None,
    /// Its pool holds a reference to it.
    Pool(Place),
    /// It left its pool for a while, as its holder wanted to be the only one.
    Left(Place),
}

/// A place in a pool that may be gone.
#[derive(Clone)]
pub(super) struct Place {
    pool: Weak<Mutex<State>>,
    /// The alignment that the buffer was asked for with.
    alignment: usize,
}

#[derive(Default)]
struct State {
    classes: Vec<Class>,
    /// Index of the class that was asked last, which a loop asks next: found without a search.
    last: usize,
    /// Indices of all classes by their size and alignment.
    indices: HashMap<(usize, usize), usize, SizeHasher>,
    /// Bytes of all buffers.
    bytes: usize,
    /// How many bytes there may be before free buffers are given up.
    limit: usize,
}

/// The buffers of one length and alignment.
struct Class {
    length: usize,
    alignment: usize,
    buffers: Vec<Arc<Buffer>>,
    /// Index of the buffer that was made last: the first to be looked at.
    last: usize,
    /// Index from which the others are looked at. It moves on over those that are in use, so that each comes to its turn.
    probe: usize,
}

impl Home {
    /// Notes that a buffer left its pool, if it is in one.
    pub(super) fn leave(&mut self) {
        *self = match core::mem::take(self) {
            Self::Pool(place) => Self::Left(place),
            other => other,
        };
    }
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
        let state = self.state();
        let buffers = state.classes.iter().flat_map(|class| &class.buffers);
        buffers.filter(|buffer| is_free(buffer)).map(size).sum()
    }

    /// Frees the memory the pool keeps.
    pub fn trim(&self) {
        let mut state = self.state();
        let free = state.sweep();
        state.limit = state.bytes.saturating_mul(2);
        drop(state);
        drop(free);
    }

    /// Returns a buffer of `length` bytes, or `None` when the memory cannot be had. `alignment` is a power of two.
    #[inline]
    pub(super) fn allocate(&self, length: usize, alignment: usize) -> Option<Arc<Buffer>> {
        let recycled = self.state().take(length, alignment);
        recycled.or_else(|| self.allocate_fresh(length, alignment))
    }

    #[cold]
    fn allocate_fresh(&self, length: usize, alignment: usize) -> Option<Arc<Buffer>> {
        let free = self.state().make_room(length.max(1));
        drop(free);
        let memory = Memory::allocate(length, alignment).or_else(|| {
            // What the pool keeps may be what is missing.
            let free = self.state().sweep();
            let is_worth_another_try = !free.is_empty();
            drop(free);
            is_worth_another_try.then(|| Memory::allocate(length, alignment))?
        });
        let buffer = Arc::new(Buffer {
            memory: memory?,
            access: Access::GUEST,
            home: Home::Pool(Place {
                pool: Arc::downgrade(&self.0),
                alignment,
            }),
        });
        self.state().add(Arc::clone(&buffer), alignment);
        Some(buffer)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that can panic runs under the lock, so a poisoned state is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Takes the pool's reference to `buffer`, whose place this is, out of the pool.
    pub(super) fn leave(&self, buffer: &Arc<Buffer>) {
        if let Some(pool) = self.pool.upgrade() {
            let pool = BufferPool(pool);
            let left = pool.state().remove(buffer, self.alignment);
            drop(left);
        }
    }

    /// Gives the memory of a buffer that left the pool back to it, for another buffer.
    #[cold]
    pub(super) fn give_back(self, memory: Memory) {
        let Some(pool) = self.pool.upgrade().map(BufferPool) else {
            return;
        };
        let alignment = self.alignment;
        let buffer = Arc::new(Buffer {
            memory,
            access: Access::GUEST,
            home: Home::Pool(self),
        });
        let free = pool.state().make_room(size(&buffer));
        drop(free);
        pool.state().add(buffer, alignment);
    }
}

impl State {
    /// Returns a free buffer of this length and alignment, which then is free no more.
    #[inline]
    fn take(&mut self, length: usize, alignment: usize) -> Option<Arc<Buffer>> {
        match self.classes.get_mut(self.last) {
            Some(class) if class.length == length && class.alignment == alignment => class.take(),
            _ => self.take_of_another_class(length, alignment),
        }
    }

    #[cold]
    fn take_of_another_class(&mut self, length: usize, alignment: usize) -> Option<Arc<Buffer>> {
        self.last = *self.indices.get(&(length, alignment))?;
        self.classes.get_mut(self.last)?.take()
    }

    /// Returns free buffers for the caller to drop, if `size` bytes more would be too many.
    fn make_room(&mut self, size: usize) -> Vec<Arc<Buffer>> {
        match self.bytes.saturating_add(size) <= self.limit {
            true => Vec::new(),
            false => self.sweep(),
        }
    }

    /// Takes all free buffers out.
    fn sweep(&mut self) -> Vec<Arc<Buffer>> {
        let mut free = Vec::new();
        for class in &mut self.classes {
            free.extend(class.buffers.extract_if(.., |buffer| is_free(buffer)));
        }
        self.bytes -= free.iter().map(size).sum::<usize>();
        self.classes.retain(|class| !class.buffers.is_empty());
        let keys = self
            .classes
            .iter()
            .map(|class| (class.length, class.alignment));
        self.indices = keys.zip(0..).collect();
        free
    }

    /// Adds a buffer that there was room made for.
    fn add(&mut self, buffer: Arc<Buffer>, alignment: usize) {
        self.bytes = self.bytes.saturating_add(size(&buffer));
        if self.bytes > self.limit {
            // All of them are in use: the free ones were just given up.
            self.limit = self.bytes.saturating_mul(2);
        }
        let key = (buffer.length(), alignment);
        let index = *self.indices.entry(key).or_insert(self.classes.len());
        if index == self.classes.len() {
            self.classes.push(Class {
                length: buffer.length(),
                alignment,
                buffers: Vec::new(),
                last: 0,
                probe: 0,
            });
        }
        let class = &mut self.classes[index];
        class.last = class.buffers.len();
        class.buffers.push(buffer);
        self.last = index;
    }

    /// Takes a buffer out.
    fn remove(&mut self, buffer: &Arc<Buffer>, alignment: usize) -> Option<Arc<Buffer>> {
        let key = (buffer.length(), alignment);
        let class = self.classes.get_mut(*self.indices.get(&key)?)?;
        let index = class
            .buffers
            .iter()
            .position(|own| Arc::ptr_eq(own, buffer))?;
        self.bytes -= size(buffer);
        Some(class.buffers.swap_remove(index))
    }
}

impl Class {
    /// Returns a free buffer, which then is free no more.
    #[inline]
    fn take(&mut self) -> Option<Arc<Buffer>> {
        match self.buffers.get(self.last) {
            Some(last) if is_free(last) => Some(Arc::clone(last)),
            _ => self.take_another(),
        }
    }

    #[cold]
    fn take_another(&mut self) -> Option<Arc<Buffer>> {
        for _ in 0..self.buffers.len().min(PROBES) {
            let (index, buffer) = match self.buffers.get(self.probe) {
                Some(buffer) => (self.probe, buffer),
                None => (0, self.buffers.first()?),
            };
            if is_free(buffer) {
                // Here it will likely be free again when the last one is not.
                self.probe = index;
                return Some(Arc::clone(buffer));
            }
            self.probe = index + 1;
        }
        None
    }
}

/// Returns whether nobody but its pool holds a buffer.
#[inline]
fn is_free(buffer: &Arc<Buffer>) -> bool {
    // Whoever gave it up did so with release semantics. From then on there is only the pool's own reference, and no other
    // can come from it while the pool is locked.
    let is_free = Arc::strong_count(buffer) == 1;
    fence(Ordering::Acquire);
    is_free
}

/// Returns the bytes that a buffer counts for.
fn size(buffer: &Arc<Buffer>) -> usize {
    buffer.length().max(1)
}

impl fmt::Debug for BufferPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BufferPool")
            .field("free_bytes", &self.free_bytes())
            .field("bytes", &self.state().bytes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Place")
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
