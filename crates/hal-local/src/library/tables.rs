//! Reading the raw tables of a library, per ABI version, into owned form.
//!
//! This is the only place that knows how the versions differ. Facts: `docs/abi.md`, section 8.

#![expect(
    unsafe_code,
    reason = "the tables are foreign memory behind raw pointers"
)]

use std::ffi::{CStr, CString, c_char};

use hal_abi::library::v0_6::DispatchFlags;
use hal_abi::library::{ImportTable, LibraryHeader, v0_5, v0_6};
use hal_abi::{DispatchFn, LOCAL_MEMORY_PAGE_SIZE};

use super::{Description, LibraryError, MAX_TABLE_COUNT};
use crate::{ExportAttributes, SourceLocation};

/// The longest path of a source that is believed.
const MAX_PATH_LENGTH: usize = 4096;

/// Reads a library of version 0.6.
///
/// Its attributes are mandatory. Names are too, for newer hosts than those of its first compilers,
/// which left the whole table out when compiling without debug data: so a missing table is legal
/// here, a missing name in a table is not.
///
/// # Safety
///
/// `header` and `library` must be those of a library that follows the ABI, with its code mapped.
pub(super) unsafe fn describe_0_6(
    header: &LibraryHeader,
    library: &v0_6::Library,
) -> Result<Description, LibraryError> {
    let exports = &library.exports;
    let count = checked_count(exports.count, "functions")?;
    if exports.attrs.is_null() {
        return Err(LibraryError::NoTable {
            table: "function attributes",
            count,
        });
    }
    // SAFETY: the caller vouches that the table has `count` entries.
    let attributes = unsafe { table(exports.attrs, count, "function attributes") }?;
    Ok(Description {
        // SAFETY: the caller vouches that the name ends in a NUL.
        name: unsafe { library_name(header.name) },
        // SAFETY: the caller vouches for the import table.
        imports: unsafe { imports(&library.imports) }?,
        // SAFETY: the caller vouches that the table has `count` entries.
        entries: unsafe { entries(exports.ptrs, count) }?,
        attributes: attributes.iter().map(attributes_0_6).collect(),
        // SAFETY: the caller vouches that the table, if there is one, has `count` names.
        names: unsafe { optional_names(exports.names, count) }?,
        // SAFETY: the caller vouches that the table, if there is one, has `count` locations.
        sources: unsafe { sources(exports.source_locations, count) }?,
        constant_count: library.constants.count,
    })
}

/// Reads a library of version 0.5, whose attributes and names may both be missing.
///
/// # Safety
///
/// `header` and `library` must be those of a library that follows the ABI, with its code mapped.
pub(super) unsafe fn describe_0_5(
    header: &LibraryHeader,
    library: &v0_5::Library,
) -> Result<Description, LibraryError> {
    let exports = &library.exports;
    let count = checked_count(exports.count, "functions")?;
    let attributes = if exports.attrs.is_null() {
        vec![ExportAttributes::default(); count]
    } else {
        // SAFETY: the caller vouches that the table has `count` entries.
        let attributes = unsafe { table(exports.attrs, count, "function attributes") }?;
        attributes.iter().map(attributes_0_5).collect()
    };
    Ok(Description {
        // SAFETY: the caller vouches that the name ends in a NUL.
        name: unsafe { library_name(header.name) },
        // SAFETY: the caller vouches for the import table.
        imports: unsafe { imports(&library.imports) }?,
        // SAFETY: the caller vouches that the table has `count` entries.
        entries: unsafe { entries(exports.ptrs, count) }?,
        attributes,
        // SAFETY: the caller vouches that the table, if there is one, has `count` names.
        names: unsafe { optional_names(exports.names, count) }?,
        // SAFETY: the caller vouches that the table, if there is one, has `count` locations.
        sources: unsafe { sources(exports.source_locations, count) }?,
        constant_count: library.constants.count,
    })
}

fn attributes_0_6(attributes: &v0_6::DispatchAttrs) -> ExportAttributes {
    let size = [
        attributes.workgroup_size_x,
        attributes.workgroup_size_y,
        attributes.workgroup_size_z.into(),
    ];
    ExportAttributes {
        constant_count: Some(attributes.constant_count.into()),
        binding_count: Some(attributes.binding_count.into()),
        // Zero stands for "not fixed at compile time"; kernels are told 1 then.
        workgroup_size: size.map(|size| size.max(1)),
        local_memory_byte_length: usize::from(attributes.local_memory_pages)
            * LOCAL_MEMORY_PAGE_SIZE,
        is_sequential: attributes.flags.0 & DispatchFlags::SEQUENTIAL.0 != 0,
        ..ExportAttributes::default()
    }
}

fn attributes_0_5(attributes: &v0_5::DispatchAttrs) -> ExportAttributes {
    ExportAttributes {
        constant_count: Some(attributes.constant_count.into()),
        binding_count: Some(attributes.binding_count.into()),
        local_memory_byte_length: usize::from(attributes.local_memory_pages)
            * LOCAL_MEMORY_PAGE_SIZE,
        ..ExportAttributes::default()
    }
}

/// Returns a count as a size, if it can be believed.
fn checked_count(count: u32, table: &'static str) -> Result<usize, LibraryError> {
    usize::try_from(count)
        .ok()
        .filter(|&count| count <= MAX_TABLE_COUNT)
        .ok_or(LibraryError::TableTooLong {
            table,
            count,
            limit: MAX_TABLE_COUNT,
        })
}

/// Returns a table as a slice. A table without entries may be NULL.
///
/// # Safety
///
/// If `data` is not NULL and aligned it must point at `count` valid entries that live and do not
/// change for `'a`.
pub(super) unsafe fn table<'a, T>(
    data: *const T,
    count: usize,
    table: &'static str,
) -> Result<&'a [T], LibraryError> {
    if count == 0 {
        return Ok(&[]);
    }
    if data.is_null() {
        return Err(LibraryError::NoTable { table, count });
    }
    if !data.is_aligned() {
        return Err(LibraryError::MisalignedTable {
            table,
            address: data.addr(),
        });
    }
    // SAFETY: the pointer is neither NULL nor misaligned, and the caller vouches for the entries.
    Ok(unsafe { std::slice::from_raw_parts(data, count) })
}

/// Reads the kernels.
///
/// # Safety
///
/// As [`table`].
unsafe fn entries(
    data: *const Option<DispatchFn>,
    count: usize,
) -> Result<Vec<DispatchFn>, LibraryError> {
    let what = "function pointers";
    // SAFETY: the caller vouches for the table.
    let entries = unsafe { table(data, count, what) }?;
    let not_null = |(index, entry): (usize, &Option<DispatchFn>)| {
        entry.ok_or(LibraryError::NullEntry { table: what, index })
    };
    entries.iter().enumerate().map(not_null).collect()
}

/// Reads the names of the imports.
///
/// # Safety
///
/// As [`names`].
unsafe fn imports(imports: &ImportTable) -> Result<Vec<CString>, LibraryError> {
    let count = checked_count(imports.count, "imports")?;
    // SAFETY: the caller vouches for the table.
    unsafe { names(imports.symbols, count, "import names") }
}

/// Reads the names of the functions, or returns `None` if there is no table of them.
///
/// # Safety
///
/// As [`names`].
unsafe fn optional_names(
    data: *const *const c_char,
    count: usize,
) -> Result<Option<Vec<CString>>, LibraryError> {
    if data.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller vouches for the table.
    unsafe { names(data, count, "function names") }.map(Some)
}

/// Copies where the functions come from. A table or a path that is not there is debug data that was left out.
///
/// # Safety
///
/// As [`table`], and each path that is not NULL must have the length beside it.
unsafe fn sources(
    data: *const hal_abi::library::SourceLocation,
    count: usize,
) -> Result<Vec<Option<SourceLocation>>, LibraryError> {
    if data.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the caller vouches for the table.
    let locations = unsafe { table(data, count, "source locations") }?;
    let mut sources = Vec::with_capacity(count);
    for location in locations {
        let length = usize::try_from(location.path_length).unwrap_or(usize::MAX);
        if location.path.is_null() || length > MAX_PATH_LENGTH {
            sources.push(None);
            continue;
        }
        // SAFETY: the path is not NULL, and the caller vouches for its length.
        let path = unsafe { std::slice::from_raw_parts(location.path.cast::<u8>(), length) };
        sources.push(Some(SourceLocation {
            path: String::from_utf8_lossy(path).into(),
            line: location.line,
        }));
    }
    Ok(sources)
}

/// Copies a table of names.
///
/// # Safety
///
/// As [`table`], and each entry that is not NULL must end in a NUL byte.
unsafe fn names(
    data: *const *const c_char,
    count: usize,
    what: &'static str,
) -> Result<Vec<CString>, LibraryError> {
    // SAFETY: the caller vouches for the table.
    let entries = unsafe { table(data, count, what) }?;
    let mut names = Vec::with_capacity(count);
    for (index, &entry) in entries.iter().enumerate() {
        if entry.is_null() {
            return Err(LibraryError::NullEntry { table: what, index });
        }
        // SAFETY: the entry is not NULL, and the caller vouches for its NUL.
        let name = unsafe { CStr::from_ptr(entry) };
        names.push(name.to_owned());
    }
    Ok(names)
}

/// Copies the name of the library; NULL counts as empty.
///
/// # Safety
///
/// A name that is not NULL must end in a NUL byte.
unsafe fn library_name(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: the name is not NULL, and the caller vouches for its NUL.
    let name = unsafe { CStr::from_ptr(name) };
    name.to_string_lossy().into_owned()
}
