//! The tables of an executable library: what all versions share.
//!
//! A library is what the compiler makes of one executable: imports, kernels, constants and debug
//! data. Its query answers only for its own version, so a host asks for each version it knows,
//! newest first. The header and the import table are the same in every version; the export table
//! and the dispatch attributes differ and live in [`v0_5`] and [`v0_6`].
//! Facts: `docs/abi.md`, section 8.

use core::ffi::{CStr, c_char};

use crate::{Environment, SanitizerKind};

pub mod v0_5;
pub mod v0_6;

/// The symbol a library exports: a [`LibraryQueryFn`].
pub const LIBRARY_QUERY_SYMBOL: &CStr = c"iree_hal_executable_library_query";

/// Version 0.5, made by compilers 2.9 to 3.7.
pub const LIBRARY_VERSION_0_5: u32 = 5;
/// Version 0.6, made by compilers from 3.8 on.
pub const LIBRARY_VERSION_0_6: u32 = 6;

/// The function behind [`LIBRARY_QUERY_SYMBOL`]: `(max_version, environment) -> library or NULL`.
///
/// The result points at the library structure, whose first field is the pointer to its header. Read
/// the header, check its version, and only then treat the result as the structure of that version.
///
/// A compiled library answers exactly one `max_version`, its own, and NULL to all others. The
/// environment's imports are not resolved yet.
pub type LibraryQueryFn = unsafe extern "C" fn(
    max_version: u32,
    environment: *const Environment,
) -> *const *const LibraryHeader;

/// The description of a library. Immutable, like all tables here, and valid while its code is
/// mapped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct LibraryHeader {
    /// The ABI version of the structure that points here.
    pub version: u32,
    /// The NUL-terminated name of the linked module; NULL means empty.
    pub name: *const c_char,
    /// No bit has a meaning; zero.
    pub features: u32,
    /// The sanitizer the library was built with.
    pub sanitizer: SanitizerKind,
}

crate::assert_layout!(LibraryHeader {
    size: (24, 16),
    align: (8, 4),
    fields: { version: (0, 0), name: (8, 4), features: (16, 8), sanitizer: (20, 12) },
});

/// The functions a library needs from plugins.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ImportTable {
    /// The number of imports.
    pub count: u32,
    /// Their NUL-terminated names, by import ordinal; may be NULL if there are none. A leading `?`
    /// marks an optional import.
    pub symbols: *const *const c_char,
}

crate::assert_layout!(ImportTable {
    size: (16, 8),
    align: (8, 4),
    fields: { count: (0, 0), symbols: (8, 4) },
});

/// The executable-level constants a library needs.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
pub struct ConstantTable {
    /// How many 32-bit constants the host must provide.
    pub count: u32,
}

crate::assert_layout!(ConstantTable {
    size: (4, 4),
    align: (4, 4),
    fields: { count: (0, 0) },
});

/// A place in a source file. Strings here have a length and no terminator.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SourceLocation {
    /// The line, from 1; 0 if not known.
    pub line: u32,
    /// The length of `path` in bytes.
    pub path_length: u32,
    /// The path; may be NULL if empty.
    pub path: *const c_char,
}

crate::assert_layout!(SourceLocation {
    size: (16, 12),
    align: (8, 4),
    fields: { line: (0, 0), path_length: (4, 4), path: (8, 8) },
});

/// The places of one export in the compiler's intermediate stages.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StageLocationTable {
    /// The number of stages.
    pub count: u32,
    /// The NUL-terminated name of each stage.
    pub names: *const *const c_char,
    /// The place in each stage.
    pub locations: *const SourceLocation,
}

crate::assert_layout!(StageLocationTable {
    size: (24, 12),
    align: (8, 4),
    fields: { count: (0, 0), names: (8, 4), locations: (16, 8) },
});

/// A source file carried inside a library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SourceFile {
    /// The length of `path` in bytes.
    pub path_length: u32,
    /// The path.
    pub path: *const c_char,
    /// The length of `content` in bytes.
    pub content_length: u32,
    /// The content.
    pub content: *const c_char,
}

crate::assert_layout!(SourceFile {
    size: (32, 16),
    align: (8, 4),
    fields: { path_length: (0, 0), path: (8, 4), content_length: (16, 8), content: (24, 12) },
});

/// The source files carried inside a library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SourceFileTable {
    /// The number of files.
    pub count: u32,
    /// The files; may be NULL if there are none.
    pub files: *const SourceFile,
}

crate::assert_layout!(SourceFileTable {
    size: (16, 8),
    align: (8, 4),
    fields: { count: (0, 0), files: (8, 4) },
});
