//! The storage of resolved imports: functions and contexts in one block, at a stable address.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use hal_abi::ImportFn;

/// The slots: one block of `2 * count` pointers, the functions first, then the contexts.
///
/// Invariant: `base` is the start of a boxed slice of `2 * count` pointers that this value owns. It
/// is kept as a raw pointer because kernels read the block through addresses that must stay valid
/// when the owner moves, which the uniqueness of a `Box` would not allow.
pub(crate) struct ImportSlots {
    base: NonNull<*mut c_void>,
    count: usize,
}

const _: () = assert!(size_of::<Option<ImportFn>>() == size_of::<*mut c_void>());
const _: () = assert!(align_of::<Option<ImportFn>>() == align_of::<*mut c_void>());

impl ImportSlots {
    /// Allocates `count` empty slots. `count` is the length of a slice of names, each of which is
    /// as large as two pointers, so that `2 * count` pointers fit the address space too.
    pub(crate) fn new(count: usize) -> Self {
        // Filled by halves: far cheaper than `calloc` for the few imports that kernels have.
        let mut block = Vec::with_capacity(2 * count);
        block.resize(count, ptr::null_mut::<c_void>());
        block.resize(2 * count, ptr::null_mut::<c_void>());
        let base = NonNull::from(Box::leak(block.into_boxed_slice())).cast();
        Self { base, count }
    }

    /// Returns the number of slots.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the first function; dangling if there are no slots.
    pub(crate) fn functions_ptr(&self) -> *mut Option<ImportFn> {
        self.base.as_ptr().cast()
    }

    /// Returns the first context; dangling if there are no slots.
    pub(crate) fn contexts_ptr(&self) -> *mut *mut c_void {
        self.base.as_ptr().wrapping_add(self.count)
    }

    /// Returns the functions and the contexts.
    pub(crate) fn split(&self) -> (&[Option<ImportFn>], &[*mut c_void]) {
        // SAFETY: the first half of the block; NULL and every function stored in it are values of
        // `Option<ImportFn>`, which has the size and alignment of a pointer (asserted above).
        let functions = unsafe { std::slice::from_raw_parts(self.functions_ptr(), self.count) };
        // SAFETY: the second half of the block.
        let contexts = unsafe { std::slice::from_raw_parts(self.contexts_ptr(), self.count) };
        (functions, contexts)
    }

    /// Returns the functions and the contexts to be filled.
    pub(crate) fn split_mut(&mut self) -> (&mut [Option<ImportFn>], &mut [*mut c_void]) {
        // SAFETY: as in `split`; `self` is borrowed mutably, and the two halves are disjoint.
        let functions = unsafe { std::slice::from_raw_parts_mut(self.functions_ptr(), self.count) };
        // SAFETY: as above.
        let contexts = unsafe { std::slice::from_raw_parts_mut(self.contexts_ptr(), self.count) };
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
        let block = ptr::slice_from_raw_parts_mut(self.base.as_ptr(), 2 * self.count);
        // SAFETY: the boxed slice that `new` leaked, by the type's invariant.
        drop(unsafe { Box::from_raw(block) });
    }
}
