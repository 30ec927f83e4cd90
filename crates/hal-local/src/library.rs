//! The checked form of an executable library, the same for every ABI version: [`Library`].
//!
//! The raw tables are read once, by [`tables`]; past that point there are no pointers into them
//! except the kernels themselves, and no question of version.

mod error;
mod query;
mod tables;

use std::collections::HashMap;
use std::ffi::CString;
use std::ptr;

use hal_abi::{DispatchFn, MAX_BINDINGS, MAX_CONSTANTS};

pub use error::LibraryError;
pub(crate) use query::query_library;

use crate::executable::LookupError;
use crate::{BINDING_ALIGNMENT, ExportAttributes, ExportInfo, SourceLocation};

/// The most functions or imports a library may have: far above what compilers emit, and low enough
/// that a corrupt count is noticed before it is believed.
pub(crate) const MAX_TABLE_COUNT: usize = 1 << 16;

/// An executable library that was checked.
///
/// Invariant: each export's [`ExportInfo::ordinal`] is its index, and its attributes are within the
/// limits of the ABI. Each kernel is what the export of its index describes. The kernels may be
/// called while the code they came from is mapped.
#[derive(Debug)]
pub(crate) struct Library {
    name: String,
    /// The names of the imports, by import ordinal, with the mark of optional ones.
    imports: Vec<CString>,
    exports: Box<[ExportInfo]>,
    /// The kernels that `exports` describe, by the same index. Only a library that was queried makes them.
    entries: Box<[DispatchFn]>,
    /// The ordinals by name; `None` if the file holds no names.
    ordinals: Option<HashMap<Box<[u8]>, u32>>,
    /// The number of executable-level constants that must be provided.
    constant_count: usize,
}

/// What the tables of either version say, in owned form and not yet checked.
#[derive(Debug)]
struct Description {
    name: String,
    imports: Vec<CString>,
    entries: Vec<DispatchFn>,
    /// One per entry.
    attributes: Vec<ExportAttributes>,
    /// One per entry; `None` if the file holds no names.
    names: Option<Vec<CString>>,
    /// One per entry, or none at all.
    sources: Vec<Option<SourceLocation>>,
    constant_count: u32,
}

impl Library {
    /// Checks a description and indexes its names.
    fn new(description: Description) -> Result<Self, LibraryError> {
        let Description {
            name,
            imports,
            entries,
            attributes,
            names,
            sources,
            constant_count,
        } = description;
        let mut sources = sources.into_iter();
        let mut ordinals = names.is_some().then(HashMap::new);
        let mut names = names.map(Vec::into_iter);
        let mut exports = Vec::with_capacity(entries.len());
        for (ordinal, attributes) in (0..).zip(attributes).take(entries.len()) {
            let name = names
                .as_mut()
                .and_then(Iterator::next)
                .map(|name| name.into_bytes().into_boxed_slice());
            if let (Some(ordinals), Some(name)) = (&mut ordinals, &name) {
                if name.is_empty() {
                    return Err(LibraryError::EmptyName { ordinal });
                }
                ordinals.entry(name.clone()).or_insert(ordinal);
            }
            let info = ExportInfo::new(
                ordinal,
                name,
                ExportAttributes {
                    binding_alignment: BINDING_ALIGNMENT,
                    ..attributes
                },
            )
            .with_source(sources.next().flatten());
            check_limits(&info)?;
            exports.push(info);
        }
        let constant_count = usize::try_from(constant_count).unwrap_or(usize::MAX);
        Ok(Self {
            name,
            imports,
            exports: exports.into(),
            entries: entries.into(),
            ordinals,
            constant_count,
        })
    }

    /// Returns the name of the library; empty if it has none.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the names of the imports.
    pub(crate) fn imports(&self) -> &[CString] {
        &self.imports
    }

    /// Returns the descriptions of the functions, by ordinal.
    #[inline]
    pub(crate) fn exports(&self) -> &[ExportInfo] {
        &self.exports
    }

    /// Returns the kernel that `export` describes, or `None` if it describes one of another library.
    #[inline]
    pub(crate) fn kernel(&self, export: &ExportInfo) -> Option<DispatchFn> {
        let ordinal = usize::try_from(export.ordinal()).ok()?;
        // The same description by address, not an equal one.
        let own = self.exports.get(ordinal)?;
        if ptr::eq(own, export) {
            return self.entries.get(ordinal).copied();
        }
        None
    }

    /// Returns the ordinal of the first function with this name.
    pub(crate) fn lookup(&self, name: &[u8]) -> Result<u32, LookupError> {
        let Some(ordinals) = &self.ordinals else {
            return Err(LookupError::NoNames {
                name: name.escape_ascii().to_string(),
            });
        };
        ordinals
            .get(name)
            .copied()
            .ok_or_else(|| LookupError::NotFound {
                name: name.escape_ascii().to_string(),
                export_count: self.exports.len(),
            })
    }

    /// Checks that the library gets as many executable-level constants as it wants.
    pub(crate) fn check_constants(&self, constants: &[u32]) -> Result<(), LibraryError> {
        if constants.len() == self.constant_count {
            return Ok(());
        }
        Err(LibraryError::ConstantCount {
            library: self.name.clone(),
            expected: self.constant_count,
            found: constants.len(),
        })
    }
}

/// Checks the counts of a function against the limits of the ABI.
fn check_limits(info: &ExportInfo) -> Result<(), LibraryError> {
    let attributes = info.attributes();
    let limits = [
        ("constants", attributes.constant_count, MAX_CONSTANTS),
        ("bindings", attributes.binding_count, MAX_BINDINGS),
    ];
    for (what, count, limit) in limits {
        if let Some(count) = count.filter(|&count| count > limit) {
            return Err(LibraryError::PastLimit {
                export: info.to_string(),
                what,
                count,
                limit,
            });
        }
    }
    Ok(())
}
