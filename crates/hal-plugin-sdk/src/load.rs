//! What a plugin gets to see while it loads: parameters and the host's allocator.

use core::ffi::c_char;
use core::slice;

use hal_abi::{PluginEnvironment, StringPair, StringView};

use crate::{HostAllocator, StatusCode};

/// The circumstances of a load. Lives only during [`Plugin::load`](crate::Plugin::load).
///
/// Invariant: every string of `params` is readable for `'load`.
#[derive(Clone, Copy, Debug)]
pub struct LoadContext<'load> {
    allocator: HostAllocator,
    params: &'load [StringPair],
}

/// A load parameter: `?key=value` of a plugin specification. Bytes, not text, by contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadParam<'load> {
    /// The key.
    pub key: &'load [u8],
    /// The value; empty if the key stands alone.
    pub value: &'load [u8],
}

impl<'load> LoadContext<'load> {
    /// Checks what a host passes to a plugin's load function.
    ///
    /// # Errors
    ///
    /// INVALID_ARGUMENT if a pointer is NULL that must not be; FAILED_PRECONDITION if there is no
    /// allocator.
    ///
    /// # Safety
    ///
    /// Pointers that are not NULL are valid for `'load`, `params` only if `param_count` is not 0;
    /// the allocator is valid until the instance is unloaded.
    pub(crate) unsafe fn new(
        environment: *const PluginEnvironment,
        param_count: usize,
        params: *const StringPair,
    ) -> Result<Self, StatusCode> {
        // SAFETY: the caller passes NULL or a valid environment.
        let environment = unsafe { environment.as_ref() }.ok_or(StatusCode::INVALID_ARGUMENT)?;
        // SAFETY: the caller's allocator works until the instance is unloaded.
        let allocator = unsafe { HostAllocator::from_raw(environment.host_allocator) }
            .ok_or(StatusCode::FAILED_PRECONDITION)?;
        let params = if param_count == 0 {
            // Hosts pass garbage here.
            &[]
        } else if params.is_null() {
            return Err(StatusCode::INVALID_ARGUMENT);
        } else {
            // SAFETY: not NULL and the count is not 0, so the caller passes that many pairs.
            unsafe { slice::from_raw_parts(params, param_count) }
        };
        let is_readable = |view: StringView| view.size == 0 || !view.data.is_null();
        if !params
            .iter()
            .all(|pair| is_readable(pair.key) && is_readable(pair.value))
        {
            return Err(StatusCode::INVALID_ARGUMENT);
        }
        Ok(Self { allocator, params })
    }

    /// Returns the parameters, in the order the host gives them.
    pub fn params(&self) -> impl ExactSizeIterator<Item = LoadParam<'load>> + 'load {
        self.params.iter().map(|pair| LoadParam {
            // SAFETY: readable, by the invariant of the type.
            key: unsafe { bytes(pair.key) },
            // SAFETY: readable, by the invariant of the type.
            value: unsafe { bytes(pair.value) },
        })
    }

    /// Returns the value of the last parameter with this key.
    #[must_use]
    pub fn param(&self, key: &[u8]) -> Option<&'load [u8]> {
        self.params()
            .filter(|param| param.key == key)
            .last()
            .map(|param| param.value)
    }

    /// Returns the host's allocator.
    #[must_use]
    pub fn allocator(&self) -> HostAllocator {
        self.allocator
    }
}

/// Returns the bytes of a view.
///
/// # Safety
///
/// The view is empty, or its bytes are readable for `'load`.
unsafe fn bytes<'load>(view: StringView) -> &'load [u8] {
    if view.size == 0 {
        return &[];
    }
    // SAFETY: the view is not empty, so the caller promises its bytes.
    unsafe { slice::from_raw_parts(view.data.cast::<c_char>().cast::<u8>(), view.size) }
}
