//! Borrowed strings as they cross the boundary.
//!
//! Facts: `docs/abi.md`, section 3.

use core::ffi::c_char;

/// A borrowed byte string. Not NUL-terminated in general, not UTF-8 by contract.
///
/// An empty view may have any `data`, NULL included. Whoever produced the view owns the bytes;
/// they live as long as the call that passes the view, unless its contract says more.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StringView {
    /// The first byte.
    pub data: *const c_char,
    /// The length in bytes.
    pub size: usize,
}

crate::assert_layout!(StringView {
    size: (16, 8),
    align: (8, 4),
    fields: { data: (0, 0), size: (8, 4) },
});

/// A key and its value, such as a load parameter of a plugin.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StringPair {
    /// The key.
    pub key: StringView,
    /// The value; empty when the key stands alone.
    pub value: StringView,
}

crate::assert_layout!(StringPair {
    size: (32, 16),
    align: (8, 4),
    fields: { key: (0, 0), value: (16, 8) },
});
