//! Asking a library for its tables: which versions, in which order, and what the answer must be.

#![expect(
    unsafe_code,
    reason = "the query is a foreign function and its answer a foreign pointer"
)]

use hal_abi::library::{
    LIBRARY_VERSION_0_5, LIBRARY_VERSION_0_6, LibraryHeader, LibraryQueryFn, v0_5, v0_6,
};
use hal_abi::{Environment, SanitizerKind};

use super::{Library, LibraryError, tables};

/// The versions known here, in the order of asking. A compiled library answers only for its own.
const KNOWN_VERSIONS: [u32; 2] = [LIBRARY_VERSION_0_6, LIBRARY_VERSION_0_5];

/// The versions to ask for, only to name the one in an error message: all that ever were, and what
/// the next might be.
const OTHER_VERSIONS: [u32; 13] = [7, 8, 9, 10, 11, 12, 13, 14, 4, 3, 2, 1, 0];

/// Asks a library for its tables and turns them into the checked form.
///
/// # Safety
///
/// `query` must be the query function of a library that follows the executable library ABI
/// (`docs/abi.md`, section 8) and whose code stays mapped while the result is used. `environment`
/// must be a valid environment.
pub(crate) unsafe fn query_library(
    query: LibraryQueryFn,
    environment: *const Environment,
) -> Result<Library, LibraryError> {
    for version in KNOWN_VERSIONS {
        // SAFETY: the caller vouches for the function and the environment.
        let answer = unsafe { query(version, environment) };
        if !answer.is_null() {
            // SAFETY: the answer is not NULL, and the caller vouches that it is a library structure.
            return unsafe { read_library(answer) };
        }
    }
    for version in OTHER_VERSIONS {
        // SAFETY: the caller vouches for the function and the environment.
        let answer = unsafe { query(version, environment) };
        if !answer.is_null() {
            return Err(LibraryError::Version {
                version: Some(version),
            });
        }
    }
    Err(LibraryError::Version { version: None })
}

/// Turns a library structure into the checked form, by the version in its header.
///
/// # Safety
///
/// `library` must point at the structure of a library that follows the executable library ABI.
unsafe fn read_library(library: *const *const LibraryHeader) -> Result<Library, LibraryError> {
    // SAFETY: every version of the structure begins with the pointer to its header.
    let header = unsafe { library.read() };
    if header.is_null() {
        return Err(LibraryError::NoHeader);
    }
    // SAFETY: the header is not NULL and the same in all versions.
    let header = unsafe { header.read() };
    if header.sanitizer != SanitizerKind::NONE {
        return Err(LibraryError::Sanitizer {
            sanitizer: header.sanitizer,
        });
    }
    let description = match header.version {
        LIBRARY_VERSION_0_6 => {
            // SAFETY: the header says that the structure is that of version 0.6.
            let library = unsafe { library.cast::<v0_6::Library>().read() };
            // SAFETY: the tables belong to a library that follows the ABI, as the caller vouches.
            unsafe { tables::describe_0_6(&header, &library) }?
        }
        LIBRARY_VERSION_0_5 => {
            // SAFETY: the header says that the structure is that of version 0.5.
            let library = unsafe { library.cast::<v0_5::Library>().read() };
            // SAFETY: the tables belong to a library that follows the ABI, as the caller vouches.
            unsafe { tables::describe_0_5(&header, &library) }?
        }
        other => {
            return Err(LibraryError::Version {
                version: Some(other),
            });
        }
    };
    Library::new(description)
}

#[cfg(test)]
mod tests;
