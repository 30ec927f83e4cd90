//! Executable library ABI 0.5: compilers 2.9 to 3.7.
//!
//! Facts: `docs/abi.md`, section 8.4.

use core::ffi::c_char;

use super::{
    ConstantTable, ImportTable, LibraryHeader, SourceFileTable, SourceLocation, StageLocationTable,
};
use crate::DispatchFn;
use crate::layout::by_u64_align;

/// A library of ABI 0.5.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Library {
    /// The description; never NULL in a valid library.
    pub header: *const LibraryHeader,
    /// The imports.
    pub imports: ImportTable,
    /// The kernels.
    pub exports: ExportTable,
    /// The executable-level constants.
    pub constants: ConstantTable,
    /// The source files.
    pub sources: SourceFileTable,
}

crate::assert_layout!(Library {
    size: (104, 52),
    align: (8, 4),
    fields: {
        header: (0, 0),
        imports: (8, 4),
        exports: (24, 12),
        constants: (80, 40),
        sources: (88, 44),
    },
});

/// The kernels of a library: parallel arrays of `count` entries, by export ordinal.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ExportTable {
    /// The number of kernels.
    pub count: u32,
    /// The kernels.
    pub ptrs: *const Option<DispatchFn>,
    /// What each kernel needs; NULL means that every kernel has the attributes of zeros.
    pub attrs: *const DispatchAttrs,
    /// The NUL-terminated names; NULL if compiled without debug data.
    pub names: *const *const c_char,
    /// The NUL-terminated tags; may be NULL, as may each entry.
    pub tags: *const *const c_char,
    /// The place of each kernel in its source; may be NULL.
    pub source_locations: *const SourceLocation,
    /// The places of each kernel in the compiler's stages; may be NULL.
    pub stage_locations: *const StageLocationTable,
}

crate::assert_layout!(ExportTable {
    size: (56, 28),
    align: (8, 4),
    fields: {
        count: (0, 0),
        ptrs: (8, 4),
        attrs: (16, 8),
        names: (24, 12),
        tags: (32, 16),
        source_locations: (40, 20),
        stage_locations: (48, 24),
    },
});

/// What a kernel needs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct DispatchAttrs {
    /// Local memory, in pages of [`LOCAL_MEMORY_PAGE_SIZE`](crate::LOCAL_MEMORY_PAGE_SIZE) bytes.
    pub local_memory_pages: u16,
    /// The number of 32-bit constants, at most [`MAX_CONSTANTS`](crate::MAX_CONSTANTS).
    pub constant_count: u8,
    /// The number of bindings, at most [`MAX_BINDINGS`](crate::MAX_BINDINGS).
    pub binding_count: u8,
    /// Zero.
    pub reserved_0: u32,
    /// Zeros.
    pub reserved_1: [u64; 8],
}

crate::assert_layout!(DispatchAttrs {
    size: (72, 72),
    align: (8, by_u64_align(4, 8)),
    fields: {
        local_memory_pages: (0, 0),
        constant_count: (2, 2),
        binding_count: (3, 3),
        reserved_0: (4, 4),
        reserved_1: (8, 8),
    },
});
