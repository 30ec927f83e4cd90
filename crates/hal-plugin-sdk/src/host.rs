//! Memory from the host's allocator, for state that lives as long as a plugin instance.

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::slice;

use hal_abi::{AllocParams, Allocator, AllocatorCommand, AllocatorCtlFn};

use crate::{Plain, StatusCode};

/// The alignment of every block a host hands out (`docs/abi.md`, section 3).
pub(crate) const BLOCK_ALIGN: usize = 16;

/// The host's allocator. Cheap to copy, usable from any thread until the instance is unloaded.
///
/// Invariant: `control` and `self_` are a working allocator of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostAllocator {
    self_: *mut c_void,
    control: AllocatorCtlFn,
}

// SAFETY: `self_` is the host's own; the host promises that its allocator may be called from any
// thread (`docs/abi.md`, section 3).
unsafe impl Send for HostAllocator {}
// SAFETY: as above; the struct is immutable.
unsafe impl Sync for HostAllocator {}

impl HostAllocator {
    /// Wraps an allocator, or returns `None` if it has no control function.
    ///
    /// # Safety
    ///
    /// The allocator works as `docs/abi.md`, section 3, says, from any thread, until the instance
    /// that got it is unloaded.
    pub(crate) unsafe fn from_raw(raw: Allocator) -> Option<Self> {
        Some(Self {
            self_: raw.self_,
            control: raw.ctl?,
        })
    }

    /// Allocates an array of zeros. No memory is asked for if it is empty.
    ///
    /// # Errors
    ///
    /// * OUT_OF_RANGE: the size exceeds the address space.
    /// * The host's code, RESOURCE_EXHAUSTED in general: there is no memory.
    pub fn zeroed<T: Plain>(self, len: usize) -> Result<HostBuffer<T>, StatusCode> {
        const { assert!(align_of::<T>() <= BLOCK_ALIGN) };
        let byte_length = len
            .checked_mul(size_of::<T>())
            .filter(|&byte_length| isize::try_from(byte_length).is_ok())
            .ok_or(StatusCode::OUT_OF_RANGE)?;
        let first = if byte_length == 0 {
            NonNull::dangling()
        } else {
            self.allocate(AllocatorCommand::CALLOC, byte_length)?.cast()
        };
        Ok(HostBuffer {
            allocator: self,
            first,
            len,
            elements: PhantomData,
        })
    }

    /// Allocates a block aligned to [`BLOCK_ALIGN`].
    pub(crate) fn allocate(
        self,
        command: AllocatorCommand,
        byte_length: usize,
    ) -> Result<NonNull<c_void>, StatusCode> {
        let params = AllocParams { byte_length };
        let mut block = ptr::null_mut();
        // SAFETY: the control function works, by the invariant of the type; both pointers are valid
        // for the call.
        let status = unsafe {
            (self.control)(
                self.self_,
                command,
                (&raw const params).cast(),
                &raw mut block,
            )
        };
        if !status.is_ok() {
            // The status may own a record that only the host can free. A plugin without the
            // full-status feature must not pass it on, so the record is lost.
            return Err(error_code(status.code()));
        }
        let block = NonNull::new(block).ok_or(StatusCode::INTERNAL)?;
        if !block.addr().get().is_multiple_of(BLOCK_ALIGN) {
            // SAFETY: the block was allocated just above and nobody has it.
            unsafe { self.free(block) };
            return Err(StatusCode::INTERNAL);
        }
        Ok(block)
    }

    /// Frees a block. A failure to free is the host's own matter.
    ///
    /// # Safety
    ///
    /// The block came from this allocator and nobody uses it any more.
    pub(crate) unsafe fn free(self, block: NonNull<c_void>) {
        let mut block = block.as_ptr();
        // SAFETY: the control function works, by the invariant of the type; FREE takes no
        // parameters, and the block is ours to free.
        let _status = unsafe {
            (self.control)(
                self.self_,
                AllocatorCommand::FREE,
                ptr::null(),
                &raw mut block,
            )
        };
    }
}

/// Returns the code, or UNKNOWN if an error claims to be OK.
pub(crate) fn error_code(code: StatusCode) -> StatusCode {
    if code == StatusCode::OK {
        StatusCode::UNKNOWN
    } else {
        code
    }
}

/// An array in the host's memory, freed when dropped.
///
/// Invariant: `first` is the start of `len` initialized elements that this value owns; the memory
/// came from `allocator` unless it has no bytes.
pub struct HostBuffer<T: Plain> {
    allocator: HostAllocator,
    first: NonNull<T>,
    len: usize,
    elements: PhantomData<T>,
}

// SAFETY: the buffer owns its elements, and the allocator may be called from any thread.
unsafe impl<T: Plain + Send> Send for HostBuffer<T> {}
// SAFETY: a shared buffer only gives shared elements.
unsafe impl<T: Plain + Sync> Sync for HostBuffer<T> {}

impl<T: Plain> Deref for HostBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: by the invariant of the type; `self` is borrowed as long as the slice.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl<T: Plain> DerefMut for HostBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, exclusively.
        unsafe { slice::from_raw_parts_mut(self.first.as_ptr(), self.len) }
    }
}

impl<T: Plain> Drop for HostBuffer<T> {
    fn drop(&mut self) {
        if size_of_val::<[T]>(self) == 0 {
            return;
        }
        // SAFETY: the memory has bytes, so it came from the allocator, and nobody uses it after.
        unsafe { self.allocator.free(self.first.cast()) };
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for HostBuffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
