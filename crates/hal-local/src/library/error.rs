//! Why an executable library was refused: [`LibraryError`].

use std::fmt;

use hal_abi::library::{LIBRARY_VERSION_0_5, LIBRARY_VERSION_0_6};
use hal_abi::{SanitizerKind, StatusCode};

/// Why the tables of an executable library were refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LibraryError {
    /// The library answers for no version that is known here.
    #[error(
        "executable library version {} is not known; known are 0.5 (IREE releases 2.9.0 to 3.7.1) \
         and 0.6 (3.8.0 and later)",
        DescribeVersion(*.version)
    )]
    Version {
        /// The version the library answers for; `None` if it answers for none.
        version: Option<u32>,
    },
    /// The library structure does not point at a header.
    #[error("executable library has no header")]
    NoHeader,
    /// The library needs the runtime of a sanitizer.
    #[error(
        "executable library was built with the {} sanitizer, whose runtime this process does not have",
        sanitizer.name().map_or_else(|| format!("kind {}", sanitizer.0), str::to_owned)
    )]
    Sanitizer {
        /// The sanitizer.
        sanitizer: SanitizerKind,
    },
    /// A mandatory table is missing.
    #[error("executable library has {count} entries but no table of {table}")]
    NoTable {
        /// What the table holds.
        table: &'static str,
        /// The number of entries it should have.
        count: usize,
    },
    /// A table is at an address where none can be.
    #[error("table of {table} of the executable library is at the misaligned address {address:#x}")]
    MisalignedTable {
        /// What the table holds.
        table: &'static str,
        /// Its address.
        address: usize,
    },
    /// A table is too long to be believed.
    #[error("executable library has {count} {table}; the limit is {limit}")]
    TableTooLong {
        /// What the table holds.
        table: &'static str,
        /// The number of entries it claims.
        count: u32,
        /// The limit.
        limit: usize,
    },
    /// An entry of a table is NULL.
    #[error("entry {index} of the table of {table} of the executable library is NULL")]
    NullEntry {
        /// What the table holds.
        table: &'static str,
        /// The index of the entry.
        index: usize,
    },
    /// A function has an empty name.
    #[error("function #{ordinal} of the executable library has an empty name")]
    EmptyName {
        /// The ordinal of the function.
        ordinal: u32,
    },
    /// A function takes more than the ABI allows.
    #[error(
        "function {export} of the executable library takes {count} {what}; the limit is {limit}"
    )]
    PastLimit {
        /// The function, as [`ExportInfo`](crate::ExportInfo) displays it.
        export: String,
        /// What there is too much of.
        what: &'static str,
        /// The number the library declares.
        count: usize,
        /// The limit of the ABI.
        limit: usize,
    },
    /// The number of executable-level constants is not what the library wants.
    #[error(
        "executable library `{library}` takes {expected} executable-level constants, not {found}"
    )]
    ConstantCount {
        /// The name of the library.
        library: String,
        /// The number it wants.
        expected: usize,
        /// The number given.
        found: usize,
    },
}

impl LibraryError {
    /// Returns the status code that stands for this error.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Sanitizer { .. } => StatusCode::UNAVAILABLE,
            Self::PastLimit { .. } => StatusCode::OUT_OF_RANGE,
            Self::Version { .. }
            | Self::NoHeader
            | Self::NoTable { .. }
            | Self::MisalignedTable { .. }
            | Self::TableTooLong { .. }
            | Self::NullEntry { .. }
            | Self::EmptyName { .. }
            | Self::ConstantCount { .. } => StatusCode::FAILED_PRECONDITION,
        }
    }
}

/// Writes a version number and who made it.
struct DescribeVersion(Option<u32>);

impl fmt::Display for DescribeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(version) = self.0 else {
            return f.write_str("(none given)");
        };
        write!(f, "0.{version}")?;
        if version < LIBRARY_VERSION_0_5 {
            f.write_str(" (compilers before release 2.9.0)")
        } else if version > LIBRARY_VERSION_0_6 {
            f.write_str(" (compilers later than this loader)")
        } else {
            Ok(())
        }
    }
}
