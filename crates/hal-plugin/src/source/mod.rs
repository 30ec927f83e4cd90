//! Where plugin code comes from: the program itself, system libraries, freestanding images.

use std::ffi::c_void;
use std::fs;
use std::io;
use std::path::Path;
use std::ptr::NonNull;

use hal_abi::PluginQueryFn;

use crate::PluginError;

pub(crate) mod embedded;
pub(crate) mod sanitizer;
pub(crate) mod system;

/// Reads a plugin file completely. Devices and the like, which may have no end, are refused.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PluginError> {
    let read_error = |source: io::Error| PluginError::Read {
        path: path.to_owned(),
        source,
    };
    // The type is asked for before opening: opening a pipe would wait for its other end.
    if !fs::metadata(path).map_err(read_error)?.is_file() {
        return Err(PluginError::NotAFile {
            path: path.to_owned(),
        });
    }
    fs::read(path).map_err(read_error)
}

/// Turns the address of the exported query symbol into the function it is.
///
/// # Safety
///
/// `address` is the address of a function with the signature of [`PluginQueryFn`].
unsafe fn query_function(address: NonNull<c_void>) -> PluginQueryFn {
    // SAFETY: by this function's contract; function and data pointers have the same representation
    // on every target that has dynamic libraries.
    unsafe { std::mem::transmute::<*mut c_void, PluginQueryFn>(address.as_ptr()) }
}
