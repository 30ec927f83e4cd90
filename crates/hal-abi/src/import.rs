//! Imported functions: what a plugin supplies and a kernel calls.
//!
//! Facts: `docs/abi.md`, section 6.

use core::ffi::{c_int, c_void};

/// The first byte of an import's name that marks it optional; strip it before comparing names.
pub const OPTIONAL_IMPORT_PREFIX: u8 = b'?';

/// A function that a plugin supplies to kernels: `(params, context, reserved) -> 0 or error`.
///
/// * `params` points at a struct on the caller's stack, laid out as C would: results first (in one
///   nested struct if there are several), then arguments, then the extra fields the import asked
///   for. If the import has none of these the pointer is undefined.
/// * `context` is the value that resolution stored beside the function.
/// * `reserved` is NULL.
///
/// Results must be written before 0 is returned. Any other value makes the kernel return it at
/// once and fails the whole dispatch. Called from any worker thread, concurrently with itself. Must
/// not unwind.
pub type ImportFn =
    unsafe extern "C" fn(params: *mut c_void, context: *mut c_void, reserved: *mut c_void) -> c_int;

/// The host's function through which kernels call imports: `(function, params, context, reserved)`.
///
/// It forwards to `function`, converting the calling convention where host and kernel differ. A
/// kernel that calls a missing optional import passes NULL as `function`.
pub type ImportThunkFn = unsafe extern "C" fn(
    function: Option<ImportFn>,
    params: *mut c_void,
    context: *mut c_void,
    reserved: *mut c_void,
) -> c_int;
