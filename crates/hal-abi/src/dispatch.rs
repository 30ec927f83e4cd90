//! The structures and the function type of a kernel call: environment, dispatch, workgroup.
//!
//! Unchanged from library ABI 0.3 to 0.6. Facts: `docs/abi.md`, section 7.

use core::ffi::{c_int, c_void};

use crate::layout::by_u64_align;
use crate::{ImportFn, ImportThunkFn, Processor};

/// The most 32-bit constants a dispatch may take.
pub const MAX_CONSTANTS: usize = 64;
/// The most bindings a dispatch may take.
pub const MAX_BINDINGS: usize = 64;
/// The unit of a kernel's local memory, in bytes.
pub const LOCAL_MEMORY_PAGE_SIZE: usize = 4096;

/// A kernel: `(environment, dispatch_state, workgroup_state) -> 0 or error`.
///
/// Computes one workgroup. The pointers are not NULL, do not alias each other and are aligned to 16
/// bytes; the memory behind them is only read. Any result but 0 fails the dispatch. Called from any
/// thread, concurrently with itself.
pub type DispatchFn = unsafe extern "C" fn(
    environment: *const Environment,
    dispatch_state: *const DispatchState,
    workgroup_state: *const WorkgroupState,
) -> c_int;

/// What all kernels of an executable share. Immutable while any of them runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Environment {
    /// The executable's constants, as many as the library declares; NULL if there are none.
    pub constants: *const u32,
    /// The function through which imports are called; NULL if there are none.
    pub import_thunk: Option<ImportThunkFn>,
    /// The imported functions, by import ordinal; NULL if there are none. An entry is NULL only for
    /// an optional import that was not found.
    pub import_funcs: *const Option<ImportFn>,
    /// The contexts of the imported functions, by import ordinal; NULL if there are none.
    pub import_contexts: *const *mut c_void,
    /// The features of the host's processor; zeros are always legal.
    pub processor: Processor,
}

crate::assert_layout!(Environment {
    size: (96, 80),
    align: (8, by_u64_align(4, 8)),
    fields: {
        constants: (0, 0),
        import_thunk: (8, 4),
        import_funcs: (16, 8),
        import_contexts: (24, 12),
        processor: (32, 16),
    },
});

/// What all workgroups of a dispatch share. Immutable while any of them runs.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct DispatchState {
    /// The workgroup size in x.
    pub workgroup_size_x: u32,
    /// The workgroup size in y.
    pub workgroup_size_y: u32,
    /// The workgroup size in z.
    pub workgroup_size_z: u16,
    /// The number of entries behind `constants`.
    pub constant_count: u16,
    /// The number of workgroups in x.
    pub workgroup_count_x: u32,
    /// The number of workgroups in y.
    pub workgroup_count_y: u32,
    /// The number of workgroups in z.
    pub workgroup_count_z: u16,
    /// An estimate of how many workgroups run at once.
    pub max_concurrency: u8,
    /// The number of entries behind `binding_ptrs` and `binding_lengths`.
    pub binding_count: u8,
    /// The constants of this dispatch; may be NULL if there are none. A 64-bit value takes two
    /// entries, low word first.
    pub constants: *const u32,
    /// The start of each binding, aligned to 64 bytes.
    pub binding_ptrs: *const *mut c_void,
    /// The length of each binding in bytes.
    pub binding_lengths: *const usize,
}

crate::assert_layout!(DispatchState {
    size: (48, 36),
    align: (8, 4),
    fields: {
        workgroup_size_x: (0, 0),
        workgroup_size_y: (4, 4),
        workgroup_size_z: (8, 8),
        constant_count: (10, 10),
        workgroup_count_x: (12, 12),
        workgroup_count_y: (16, 16),
        workgroup_count_z: (20, 20),
        max_concurrency: (22, 22),
        binding_count: (23, 23),
        constants: (24, 24),
        binding_ptrs: (32, 28),
        binding_lengths: (40, 32),
    },
});

/// What one workgroup has to itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WorkgroupState {
    /// The workgroup's position in x.
    pub workgroup_id_x: u32,
    /// The workgroup's position in y.
    pub workgroup_id_y: u32,
    /// The workgroup's position in z.
    pub workgroup_id_z: u16,
    /// Zero.
    pub reserved: u16,
    /// The processor or worker that runs the workgroup; zero if not known.
    pub processor_id: u32,
    /// Scratch memory of undefined content; NULL if the kernel asked for none.
    pub local_memory: *mut c_void,
    /// The size of the scratch memory in bytes.
    pub local_memory_size: u32,
}

crate::assert_layout!(WorkgroupState {
    size: (32, 24),
    align: (8, 4),
    fields: {
        workgroup_id_x: (0, 0),
        workgroup_id_y: (4, 4),
        workgroup_id_z: (8, 8),
        reserved: (10, 10),
        processor_id: (12, 12),
        local_memory: (16, 16),
        local_memory_size: (24, 20),
    },
});
