//! The storage of resolved imports: functions and contexts in one block, at a stable address.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use hal_abi::ImportFn;

/// The slots: one block of pointers, `count` functions and then `count` contexts, with room for
/// `capacity` of each.
///
/// Invariant: `base` is the start of a boxed slice of `2 * capacity` pointers that this value owns,
/// the first `2 * count` of them are in use, and `count <= capacity`. It is kept as a raw pointer
/// because kernels read the block through addresses that must stay valid when the owner moves,
/// which the uniqueness of a `Box` would not allow.
pub(crate) struct ImportSlots {
    base: NonNull<*mut c_void>,
    capacity: usize,
    count: usize,
}

const _: () = assert!(size_of::<Option<ImportFn>>() == size_of::<*mut c_void>());
const _: () = assert!(align_of::<Option<ImportFn>>() == align_of::<*mut c_void>());

impl ImportSlots {
    /// Creates storage without slots, which takes no memory.
    pub(crate) const fn new() -> Self {
        Self {
            base: NonNull::dangling(),
            capacity: 0,
            count: 0,
        }
    }

    /// Removes all slots. The block is kept for the next ones.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// Returns `count` slots to be filled, their functions and their contexts. The functions are
    /// NULL, the contexts are what an earlier use left behind. They become the slots of this value
    /// with [`publish`](Self::publish); until then it has none.
    ///
    /// `count` is the length of a slice of names, each of which is as large as two pointers, so that
    /// `2 * count` pointers fit the address space too.
    pub(crate) fn prepare(
        &mut self,
        count: usize,
    ) -> (&mut [Option<ImportFn>], &mut [*mut c_void]) {
        self.count = 0;
        if count > self.capacity {
            self.grow(count);
        } else {
            // SAFETY: within the block, which is initialized; `self` is borrowed mutably.
            let functions = unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), count) };
            functions.fill(ptr::null_mut());
        }
        // SAFETY: within the block, since `count <= capacity` by now; all are NULL, a value of
        // `Option<ImportFn>`, which has the size and alignment of a pointer (asserted above).
        let functions = unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr().cast(), count) };
        let contexts = self.base.as_ptr().wrapping_add(count);
        // SAFETY: the `count` initialized pointers after the functions, disjoint from them.
        let contexts = unsafe { std::slice::from_raw_parts_mut(contexts, count) };
        (functions, contexts)
    }

    /// Makes the `count` slots that were prepared last the slots of this value.
    ///
    /// # Panics
    ///
    /// If no such number of slots was ever prepared.
    pub(crate) fn publish(&mut self, count: usize) {
        assert!(count <= self.capacity, "slots are prepared first");
        self.count = count;
    }

    /// Replaces the block by one with room for exactly `count` slots, all NULL.
    #[cold]
    fn grow(&mut self, count: usize) {
        // Filled by halves: far cheaper than `calloc` for the few imports that kernels have.
        let mut block = Vec::with_capacity(2 * count);
        block.resize(count, ptr::null_mut::<c_void>());
        block.resize(2 * count, ptr::null_mut::<c_void>());
        *self = Self {
            base: NonNull::from(Box::leak(block.into_boxed_slice())).cast(),
            capacity: count,
            count: 0,
        };
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the first function; dangling if there are no slots.
    pub(crate) fn functions_ptr(&self) -> *const Option<ImportFn> {
        self.base.as_ptr().cast_const().cast()
    }

    /// Returns the first context; dangling if there are no slots.
    pub(crate) fn contexts_ptr(&self) -> *const *mut c_void {
        self.base.as_ptr().wrapping_add(self.count)
    }

    /// Returns the functions and the contexts.
    pub(crate) fn split(&self) -> (&[Option<ImportFn>], &[*mut c_void]) {
        // SAFETY: the first half of the slots; NULL and every function stored in them are values of
        // `Option<ImportFn>`, which has the size and alignment of a pointer (asserted above).
        let functions = unsafe { std::slice::from_raw_parts(self.functions_ptr(), self.count) };
        // SAFETY: the second half of the slots.
        let contexts = unsafe { std::slice::from_raw_parts(self.contexts_ptr(), self.count) };
        (functions, contexts)
    }
}

// SAFETY: `base` blocks the automatic impl. The block is owned by this value alone and written
// through `&mut self` only; each function in it may be called with its context from any thread:
// that is what `Import::new` and the plugin ABI promise.
unsafe impl Send for ImportSlots {}
// SAFETY: as for `Send`; shared access only reads.
unsafe impl Sync for ImportSlots {}

impl Drop for ImportSlots {
    fn drop(&mut self) {
        let block = ptr::slice_from_raw_parts_mut(self.base.as_ptr(), 2 * self.capacity);
        // SAFETY: a boxed slice that this value owns, by the type's invariant; an empty one is
        // dangling and takes no memory.
        drop(unsafe { Box::from_raw(block) });
    }
}
