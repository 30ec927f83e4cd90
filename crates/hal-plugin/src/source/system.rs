//! Plugins in system libraries: shared objects opened by the system's loader.
//!
//! Two rules, both about what the system's loader does behind one's back:
//!
//! * **A library stays mapped.** It may have registered destructors that run when a thread ends, at
//!   exit, or at a fork, and no one can tell when the last of them is through. So the library is
//!   never closed, whatever becomes of the plugin.
//! * **A file is mapped from a private copy.** The loader identifies libraries by path and inode, so
//!   that a changed file under a known path would give the old code; and a file that is overwritten
//!   while mapped changes under the feet of the code. The copy is a temporary file that is gone from
//!   the directory before this module returns. What the library needs is still looked up as usual,
//!   except that `$ORIGIN` in its run path means the directory of the copy.
//!
//! A bare file name is the exception: where it is found is the loader's affair, so it is opened as
//! it stands and shared with whoever else opened it.

use std::ffi::{OsStr, c_void};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use hal_abi::{PLUGIN_QUERY_SYMBOL, PluginQueryFn};
use hal_elf::{ElfFile, SymbolBinding};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use tempfile::NamedTempFile;

use super::{query_function, read, sanitizer};
use crate::{PluginError, PluginOrigin, RejectReason};

/// Opens the library at `path` and finds its query function, which is there from now on.
///
/// # Safety
///
/// The library is trusted code: its initializers may run, and what it exports under the plugin
/// query's name is a plugin's query function.
pub(crate) unsafe fn open(path: &Path) -> Result<PluginQueryFn, PluginError> {
    check_path(path)?;
    let library = if path.as_os_str().as_bytes().contains(&b'/') {
        let bytes = read(path)?;
        check_sanitizer(path, &bytes)?;
        let copy = private_copy(path, &bytes)?;
        // SAFETY: trusted code, by this function's contract.
        unsafe { open_library(path, copy.path().as_os_str()) }?
    } else {
        // SAFETY: as above.
        unsafe { open_library(path, path.as_os_str()) }?
    };
    // SAFETY: the symbol is read as an address only.
    let address = unsafe { library.get::<*mut c_void>(PLUGIN_QUERY_SYMBOL.to_bytes_with_nul()) }
        .ok()
        .and_then(|symbol| NonNull::new(symbol.as_raw_ptr()));
    // The library is never closed: see the top of this file.
    library.into_raw();
    let Some(address) = address else {
        return Err(PluginError::NotAPlugin {
            origin: PluginOrigin::System(path.to_owned()),
        });
    };
    // SAFETY: the exported query function, by this function's contract.
    Ok(unsafe { query_function(address) })
}

/// Refuses the paths that the loader would take for something else: the empty path is the program
/// itself, and a NUL ends a path early.
fn check_path(path: &Path) -> Result<(), PluginError> {
    let bytes = path.as_os_str().as_bytes();
    let problem = if bytes.is_empty() {
        "is empty"
    } else if bytes.contains(&0) {
        "has a NUL in it"
    } else {
        return Ok(());
    };
    Err(PluginError::InvalidPath {
        path: path.to_owned(),
        problem,
    })
}

/// Refuses a library that needs the runtime of a sanitizer which is not in this process.
///
/// Its header would say so too, but the runtime ends the process when the library is opened. A file
/// that is not ELF is left to the system's loader to judge.
fn check_sanitizer(path: &Path, bytes: &[u8]) -> Result<(), PluginError> {
    let Ok(file) = ElfFile::parse(bytes) else {
        return Ok(());
    };
    let needed = file
        .undefined_symbols()
        .filter(|symbol| symbol.binding != SymbolBinding::WEAK)
        .filter_map(|symbol| sanitizer::of_symbol(symbol.name))
        .find(|&kind| !sanitizer::runs_in_this_process(kind));
    let Some(kind) = needed else {
        return Ok(());
    };
    Err(PluginError::Rejected {
        origin: PluginOrigin::System(path.to_owned()),
        source: RejectReason::Instrumented { kind },
    })
}

/// Writes the library to a temporary file, which is deleted when the result is dropped.
fn private_copy(path: &Path, bytes: &[u8]) -> Result<NamedTempFile, PluginError> {
    let directory = std::env::temp_dir();
    let copy = || -> io::Result<NamedTempFile> {
        let mut copy = tempfile::Builder::new()
            .prefix("halite-")
            .suffix(".so")
            .tempfile_in(&directory)?;
        copy.write_all(bytes)?;
        Ok(copy)
    };
    copy().map_err(|source| PluginError::Copy {
        path: path.to_owned(),
        directory: directory.clone(),
        source,
    })
}

/// # Safety
///
/// The library at `file` is trusted code.
unsafe fn open_library(path: &Path, file: &OsStr) -> Result<Library, PluginError> {
    // SAFETY: trusted code, by this function's contract.
    unsafe { Library::open(Some(file), RTLD_NOW | RTLD_LOCAL) }.map_err(|source| {
        PluginError::Open {
            path: path.to_owned(),
            source,
        }
    })
}
