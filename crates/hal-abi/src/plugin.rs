//! A plugin's query, header, functions and resolution request: plugin ABI 0.1.
//!
//! Facts: `docs/abi.md`, sections 4 and 5.

use core::ffi::{CStr, c_char, c_void};

use crate::layout::by_u64_align;
use crate::{Allocator, ImportFn, SanitizerKind, Status, StringPair};

/// The symbol a plugin exports: a [`PluginQueryFn`].
pub const PLUGIN_QUERY_SYMBOL: &CStr = c"iree_hal_executable_plugin_query";

/// Version 0.1, the only version of the plugin ABI.
pub const PLUGIN_VERSION_0_1: u32 = 1;

/// The function behind [`PLUGIN_QUERY_SYMBOL`]: `(max_version, reserved) -> plugin or NULL`.
///
/// The result points at the plugin structure, whose first field is the pointer to its header. Read
/// the header, check its version, and only then treat the result as a `*const PluginV0`.
///
/// NULL means that the plugin cannot serve `max_version`. Hosts pass 1 and NULL: published plugins
/// exist that answer NULL to anything larger. Pure, callable repeatedly and from any thread.
pub type PluginQueryFn =
    unsafe extern "C" fn(max_version: u32, reserved: *mut c_void) -> *const *const PluginHeader;

/// The description of a plugin. Immutable, owned by the plugin, valid until its code is unmapped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PluginHeader {
    /// The ABI version of the structure that points here, at most the `max_version` asked for.
    pub version: u32,
    /// The NUL-terminated name; NULL means empty.
    pub name: *const c_char,
    /// The NUL-terminated description; NULL means empty.
    pub description: *const c_char,
    /// What the plugin needs and does.
    pub features: PluginFeatures,
    /// The sanitizer the plugin was built with.
    pub sanitizer: SanitizerKind,
    /// Zeros.
    pub reserved: [u64; 8],
}

crate::assert_layout!(PluginHeader {
    size: (96, by_u64_align(84, 88)),
    align: (8, by_u64_align(4, 8)),
    fields: {
        version: (0, 0),
        name: (8, 4),
        description: (16, 8),
        features: (24, 12),
        sanitizer: (28, 16),
        reserved: (32, by_u64_align(20, 24)),
    },
});

/// What a plugin needs and does, as bits. Unknown bits are ignored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PluginFeatures(pub u32);

impl PluginFeatures {
    /// No feature.
    pub const NONE: Self = Self(0);
    /// The plugin needs nothing but this API: no libc, no system calls.
    pub const STANDALONE: Self = Self(1 << 0);
    /// The plugin may return statuses with a record behind them, which only a host that links the
    /// same status implementation can read or free.
    pub const FULL_STATUS: Self = Self(1 << 1);

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns the bits of both.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A plugin of ABI 0.1. Immutable, owned by the plugin, valid until its code is unmapped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PluginV0 {
    /// The description; never NULL in a valid plugin.
    pub header: *const PluginHeader,
    /// Creates an instance; never NULL in a valid plugin.
    pub load: Option<PluginLoadFn>,
    /// Destroys an instance; NULL if there is nothing to do.
    pub unload: Option<PluginUnloadFn>,
    /// Resolves names to functions; never NULL in a valid plugin.
    pub resolve: Option<PluginResolveFn>,
}

crate::assert_layout!(PluginV0 {
    size: (32, 16),
    align: (8, 4),
    fields: { header: (0, 0), load: (8, 4), unload: (16, 8), resolve: (24, 12) },
});

/// Creates an instance: `(environment, param_count, params, out_self)`.
///
/// `*out_self` is NULL on entry and may stay so. `params` may be garbage when `param_count` is 0.
/// The environment and all strings live only during the call; the allocator inside the environment
/// stays valid until `unload`.
pub type PluginLoadFn = unsafe extern "C" fn(
    environment: *const PluginEnvironment,
    param_count: usize,
    params: *const StringPair,
    out_self: *mut *mut c_void,
) -> Status;

/// Destroys the instance behind `self`. No resolution is in flight; the code may be unmapped as
/// soon as this returns.
///
/// IREE's host calls it after every successful query, also when `load` failed or never ran, with
/// the `self` of that moment, usually NULL.
pub type PluginUnloadFn = unsafe extern "C" fn(self_: *mut c_void);

/// Resolves names: `(self, params, out_resolution)`. Callable from any thread, concurrently.
///
/// OK if every required slot is filled; NOT_FOUND if one is still NULL; any other status aborts the
/// resolution of the whole executable. `*out_resolution` is always written, starting from zero.
pub type PluginResolveFn = unsafe extern "C" fn(
    self_: *mut c_void,
    params: *const ResolveParams,
    out_resolution: *mut Resolution,
) -> Status;

/// What a host offers to the plugins it loads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PluginEnvironment {
    /// The allocator to use for memory that lives as long as the instance.
    pub host_allocator: Allocator,
}

crate::assert_layout!(PluginEnvironment {
    size: (16, 8),
    align: (8, 4),
    fields: { host_allocator: (0, 0) },
});

/// A resolution request: three parallel arrays of `count` entries, owned by the host.
///
/// A slot whose function is already set was filled by another provider and must be skipped.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ResolveParams {
    /// The number of entries of each array.
    pub count: usize,
    /// The NUL-terminated names. A leading `?` marks an optional import. Usually sorted by bytes,
    /// never guaranteed to be.
    pub symbol_names: *const *const c_char,
    /// The functions, NULL where not resolved. C: `void**`.
    pub out_fn_ptrs: *mut Option<ImportFn>,
    /// The context of each function.
    pub out_fn_contexts: *mut *mut c_void,
}

crate::assert_layout!(ResolveParams {
    size: (32, 16),
    align: (8, 4),
    fields: { count: (0, 0), symbol_names: (8, 4), out_fn_ptrs: (16, 8), out_fn_contexts: (24, 12) },
});

/// How a resolution went, as bits. Unknown bits are ignored.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resolution(pub u32);

impl Resolution {
    /// Every import was found.
    pub const COMPLETE: Self = Self(0);
    /// At least one optional import was not found.
    pub const MISSING_OPTIONAL: Self = Self(1 << 0);

    /// Returns whether all bits of `other` are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
