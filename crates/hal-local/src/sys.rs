//! The operating system: shared libraries that are in memory, [`MemoryLibrary`].

#![expect(unsafe_code, reason = "opening a shared library runs its code")]

#[cfg(any(target_os = "linux", target_os = "android"))]
mod memory_file;
#[cfg(any(test, not(any(target_os = "linux", target_os = "android"))))]
#[cfg_attr(
    any(target_os = "linux", target_os = "android"),
    expect(dead_code, reason = "compiled for its own tests only")
)]
mod temporary_file;

use std::ffi::{CStr, OsStr, c_void};
use std::ptr::NonNull;

#[cfg(any(target_os = "linux", target_os = "android"))]
use memory_file::LibraryFile;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use temporary_file::LibraryFile;

use crate::LoadError;

/// A shared library that was opened from memory, and is closed when dropped.
#[derive(Debug)]
pub(crate) struct MemoryLibrary {
    library: libloading::Library,
    /// What the library was opened from, if that must outlive it: after it in drop order.
    _file: Option<LibraryFile>,
}

impl MemoryLibrary {
    /// Opens a library whose file is these bytes, binding it at once and privately.
    ///
    /// # Safety
    ///
    /// The library's initializers run, and its finalizers when it is dropped; they must be fit to
    /// run in this process.
    pub(crate) unsafe fn open(bytes: &[u8]) -> Result<Self, LoadError> {
        let file = LibraryFile::new(bytes)?;
        // SAFETY: the caller vouches for the library's initializers and finalizers.
        let library = unsafe { open(file.path()) }.map_err(|source| LoadError::Open { source })?;
        Ok(Self {
            library,
            _file: file.keep_while_open(),
        })
    }

    /// Returns the address of a symbol, or `None` if it is not exported or NULL. Valid while this
    /// library is open.
    pub(crate) fn symbol(&self, name: &CStr) -> Option<NonNull<c_void>> {
        // SAFETY: the symbol is taken for an address of unknown meaning, which any symbol is.
        let symbol = unsafe { self.library.get::<*mut c_void>(name) };
        symbol.ok().and_then(|symbol| NonNull::new(*symbol))
    }
}

/// Opens a library with `RTLD_NOW` and `RTLD_LOCAL`.
///
/// # Safety
///
/// As for [`MemoryLibrary::open`].
#[cfg(unix)]
unsafe fn open(path: &OsStr) -> Result<libloading::Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

    // SAFETY: the caller vouches for the library's initializers and finalizers.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

/// Opens a library; on Windows that is at once and privately in any case.
///
/// # Safety
///
/// As for [`MemoryLibrary::open`].
#[cfg(windows)]
unsafe fn open(path: &OsStr) -> Result<libloading::Library, libloading::Error> {
    // SAFETY: the caller vouches for the library's initializers and finalizers.
    unsafe { libloading::Library::new(path) }
}
