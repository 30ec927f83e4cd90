//! The allocator that a host hands to its plugins.
//!
//! Facts: `docs/abi.md`, section 3.

use core::ffi::{c_int, c_void};

use crate::Status;

/// An allocator: one control function and its state. Passed and stored by value.
///
/// The host owns both; they stay valid until the plugin that received them is unloaded, and may be
/// used from any thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// The state passed to `ctl`; NULL is legal.
    pub self_: *mut c_void,
    /// The control function. NULL means that there is no allocator.
    pub ctl: Option<AllocatorCtlFn>,
}

crate::assert_layout!(Allocator {
    size: (16, 8),
    align: (8, 4),
    fields: { self_: (0, 0), ctl: (8, 4) },
});

/// The control function of an [`Allocator`]: `(self, command, params, inout_ptr)`.
///
/// | command | `params` | `inout_ptr` |
/// |---|---|---|
/// | MALLOC, CALLOC | [`AllocParams`] | out: the new block |
/// | REALLOC | [`AllocParams`] | in: a block or NULL, out: the new block; untouched on failure |
/// | FREE | NULL | in: a block or NULL |
///
/// Blocks are aligned to 16 bytes. A length of zero is INVALID_ARGUMENT. A failure may be a status
/// with a record behind it, whatever features the plugin declared: test for non-zero and read the
/// code from the low five bits.
pub type AllocatorCtlFn = unsafe extern "C" fn(
    self_: *mut c_void,
    command: AllocatorCommand,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> Status;

/// What an [`AllocatorCtlFn`] is asked to do. An open set: an unknown command is UNIMPLEMENTED.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AllocatorCommand(pub c_int);

impl AllocatorCommand {
    /// Allocates an uninitialized block.
    pub const MALLOC: Self = Self(0);
    /// Allocates a block of zeros.
    pub const CALLOC: Self = Self(1);
    /// Resizes a block, or allocates one if given NULL.
    pub const REALLOC: Self = Self(2);
    /// Frees a block; NULL is ignored.
    pub const FREE: Self = Self(3);
}

/// The parameters of the allocating commands.
#[repr(C)]
#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
pub struct AllocParams {
    /// The wanted size in bytes; zero is refused.
    pub byte_length: usize,
}

crate::assert_layout!(AllocParams {
    size: (8, 4),
    align: (8, 4),
    fields: { byte_length: (0, 0) },
});
