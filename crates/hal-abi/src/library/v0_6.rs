//! Executable library ABI 0.6: compilers from 3.8 on.
//!
//! Facts: `docs/abi.md`, section 8.3.

use core::ffi::{c_char, c_int};

use super::{
    ConstantTable, ImportTable, LibraryHeader, SourceFileTable, SourceLocation, StageLocationTable,
};
use crate::DispatchFn;
use crate::layout::by_u64_align;

/// A library of ABI 0.6.
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
    size: (128, 64),
    align: (8, 4),
    fields: {
        header: (0, 0),
        imports: (8, 4),
        exports: (24, 12),
        constants: (104, 52),
        sources: (112, 56),
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
    /// What each kernel needs; never NULL in a valid library.
    pub attrs: *const DispatchAttrs,
    /// The parameters of each kernel; may be NULL, as may each entry.
    pub params: *const *const ParameterRecord,
    /// Reserved for occupancy data; NULL.
    pub occupancy: *const OccupancyInfo,
    /// The NUL-terminated names. IREE's host demands them from 3.13 on; older compilers leave NULL
    /// here when compiling without debug data.
    pub names: *const *const c_char,
    /// The NUL-terminated tags; may be NULL, as may each entry.
    pub tags: *const *const c_char,
    /// The NUL-terminated names that [`ParameterRecord::name`] counts; may be NULL.
    pub parameter_names: *const *const c_char,
    /// The place of each kernel in its source; may be NULL.
    pub source_locations: *const SourceLocation,
    /// The places of each kernel in the compiler's stages; may be NULL.
    pub stage_locations: *const StageLocationTable,
}

crate::assert_layout!(ExportTable {
    size: (80, 40),
    align: (8, 4),
    fields: {
        count: (0, 0),
        ptrs: (8, 4),
        attrs: (16, 8),
        params: (24, 12),
        occupancy: (32, 16),
        names: (40, 20),
        tags: (48, 24),
        parameter_names: (56, 28),
        source_locations: (64, 32),
        stage_locations: (72, 36),
    },
});

/// What a kernel needs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct DispatchAttrs {
    /// How the kernel must be run.
    pub flags: DispatchFlags,
    /// Local memory, in pages of [`LOCAL_MEMORY_PAGE_SIZE`](crate::LOCAL_MEMORY_PAGE_SIZE) bytes.
    pub local_memory_pages: u16,
    /// The number of 32-bit constants, at most [`MAX_CONSTANTS`](crate::MAX_CONSTANTS).
    pub constant_count: u8,
    /// The number of bindings, at most [`MAX_BINDINGS`](crate::MAX_BINDINGS).
    pub binding_count: u8,
    /// The workgroup size in x the kernel was compiled for; 0 if not fixed.
    pub workgroup_size_x: u32,
    /// The workgroup size in y.
    pub workgroup_size_y: u32,
    /// The workgroup size in z.
    pub workgroup_size_z: u16,
    /// The number of entries in [`ExportTable::params`] for this kernel.
    pub parameter_count: u16,
    /// Zeros.
    pub reserved_1: [u64; 5],
}

crate::assert_layout!(DispatchAttrs {
    size: (64, 64),
    align: (8, by_u64_align(4, 8)),
    fields: {
        flags: (0, 0),
        local_memory_pages: (8, 8),
        constant_count: (10, 10),
        binding_count: (11, 11),
        workgroup_size_x: (12, 12),
        workgroup_size_y: (16, 16),
        workgroup_size_z: (20, 20),
        parameter_count: (22, 22),
        reserved_1: (24, 24),
    },
});

/// How a kernel must be run, as bits. Compilers emit zero; unknown bits are ignored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
pub struct DispatchFlags(pub u64);

impl DispatchFlags {
    /// No flag.
    pub const NONE: Self = Self(0);
    /// Workgroups must run one after another.
    pub const SEQUENTIAL: Self = Self(1 << 0);
    /// The workgroup size is chosen by the caller.
    pub const WORKGROUP_SIZE_DYNAMIC: Self = Self(1 << 1);
}

/// One parameter of a kernel.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ParameterRecord {
    /// Where the parameter is passed.
    pub parameter_type: ParameterType,
    /// The size in bytes; without meaning for a binding.
    pub size: u8,
    /// Zero.
    pub flags: u16,
    /// The index of the name in [`ExportTable::parameter_names`], or [`ParameterRecord::NO_NAME`].
    pub name: u16,
    /// The byte offset in the constants, or the ordinal of the binding.
    pub offset: u16,
}

impl ParameterRecord {
    /// The `name` of a parameter without one.
    pub const NO_NAME: u16 = 0xFFFF;
}

crate::assert_layout!(ParameterRecord {
    size: (8, 8),
    align: (2, 2),
    fields: {
        parameter_type: (0, 0),
        size: (1, 1),
        flags: (2, 2),
        name: (4, 4),
        offset: (6, 6),
    },
});

/// Where a parameter is passed. An open set: IREE's host takes unknown types for constants.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ParameterType(pub u8);

impl ParameterType {
    /// In the constants, by value.
    pub const CONSTANT: Self = Self(0);
    /// As a binding.
    pub const BINDING: Self = Self(1);
    /// In the constants, as a raw pointer.
    pub const BUFFER_PTR: Self = Self(2);
}

/// Reserved for occupancy data.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct OccupancyInfo {
    /// Zero.
    pub reserved: c_int,
}

crate::assert_layout!(OccupancyInfo {
    size: (4, 4),
    align: (4, 4),
    fields: { reserved: (0, 0) },
});
