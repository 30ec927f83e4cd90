//! The exported side of a plugin: query, load, unload, resolve, and the door into each function.
//!
//! [`export_plugin!`](crate::export_plugin!) and [`static_plugin!`](crate::static_plugin!) expand
//! to the items here. Their contract with the host is `docs/abi.md`, sections 4 to 6.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::{self, NonNull};
use core::slice;

use hal_abi::{
    AllocatorCommand, OPTIONAL_IMPORT_PREFIX, PLUGIN_VERSION_0_1, PluginEnvironment,
    PluginFeatures, PluginHeader, PluginV0, Resolution, ResolveParams, SanitizerKind, Status,
    StringPair,
};

use crate::guard::guard;
use crate::host::{BLOCK_ALIGN, error_code};
use crate::symbols::Search;
pub use crate::symbols::{Function, sorted};
use crate::{Call, HostAllocator, LoadContext, Plain, Plugin, StatusCode};

/// A plugin with its table of functions. Implemented by the export macros.
pub trait Exports: Plugin {
    /// The functions, sorted by name.
    const FUNCTIONS: &'static [Function];
}

/// Compiles only for plain types.
pub const fn require_plain<T: Plain>() {}

/// A plugin's header in a static.
#[derive(Debug)]
#[repr(transparent)]
pub struct StaticHeader(PluginHeader);

// SAFETY: the pointers are to immutable static strings.
unsafe impl Sync for StaticHeader {}

impl StaticHeader {
    /// Describes `P`.
    #[must_use]
    pub const fn new<P: Plugin>() -> Self {
        Self(PluginHeader {
            version: PLUGIN_VERSION_0_1,
            name: P::NAME.as_ptr(),
            description: P::DESCRIPTION.as_ptr(),
            features: if cfg!(feature = "std") {
                PluginFeatures::NONE
            } else {
                PluginFeatures::STANDALONE
            },
            sanitizer: SanitizerKind::NONE,
            reserved: [0; 8],
        })
    }
}

/// A plugin's structure in a static.
#[derive(Debug)]
#[repr(transparent)]
pub struct StaticPlugin(PluginV0);

// SAFETY: the pointer is to an immutable static header; function pointers are shared freely.
unsafe impl Sync for StaticPlugin {}

impl StaticPlugin {
    /// The structure of `P`, whose header is `header`.
    #[must_use]
    pub const fn new<P: Exports>(header: &'static StaticHeader) -> Self {
        Self(PluginV0 {
            header: &raw const header.0,
            load: Some(load::<P>),
            unload: Some(unload::<P>),
            resolve: Some(resolve::<P>),
        })
    }

    /// Answers a query: the plugin, if the host understands its version.
    #[must_use]
    pub fn query(&'static self, max_version: u32) -> *const *const PluginHeader {
        if max_version < PLUGIN_VERSION_0_1 {
            return ptr::null();
        }
        (&raw const self.0).cast()
    }
}

/// An instance: the plugin's state and the allocator that its own memory came from.
struct Instance<P> {
    allocator: HostAllocator,
    plugin: P,
}

/// The load function of `P`.
unsafe extern "C" fn load<P: Plugin>(
    environment: *const PluginEnvironment,
    param_count: usize,
    params: *const StringPair,
    out_self: *mut *mut c_void,
) -> Status {
    const {
        assert!(
            align_of::<Instance<P>>() <= BLOCK_ALIGN,
            "hosts align to 16 bytes"
        )
    };
    let instance = guard(|| {
        if out_self.is_null() {
            return Err(StatusCode::INVALID_ARGUMENT);
        }
        // SAFETY: the host passes valid pointers for the call and an allocator that lives until
        // unload.
        let context = unsafe { LoadContext::new(environment, param_count, params) }?;
        let allocator = context.allocator();
        let plugin = P::load(&context)?;
        let block = allocator
            .allocate(AllocatorCommand::MALLOC, size_of::<Instance<P>>())?
            .cast::<Instance<P>>();
        // SAFETY: the block is fresh, large enough, and aligned to 16 bytes, as asserted above.
        unsafe { block.write(Instance { allocator, plugin }) };
        Ok(block)
    });
    match instance {
        Ok(instance) => {
            // SAFETY: not NULL, as checked above, so the host passes a valid place.
            unsafe { out_self.write(instance.as_ptr().cast()) };
            Status::OK
        }
        Err(code) => Status::from_code(error_code(code)),
    }
}

/// The unload function of `P`.
unsafe extern "C" fn unload<P: Plugin>(self_: *mut c_void) {
    // Some hosts call this for plugins that never loaded.
    let Some(instance) = NonNull::new(self_.cast::<Instance<P>>()) else {
        return;
    };
    let _ = guard(|| {
        // SAFETY: `self` is what `load` returned, and the host never uses it again.
        let Instance { allocator, plugin } = unsafe { instance.read() };
        // SAFETY: the block came from this allocator, and its content was moved out.
        unsafe { allocator.free(instance.cast()) };
        drop(plugin);
        Ok(())
    });
}

/// The resolve function of `P`.
unsafe extern "C" fn resolve<P: Exports>(
    self_: *mut c_void,
    params: *const ResolveParams,
    out_resolution: *mut Resolution,
) -> Status {
    let mut resolution = Resolution::COMPLETE;
    // SAFETY: the host passes NULL or a request that is valid for the call.
    let result = guard(|| unsafe { fill(P::FUNCTIONS, self_, params, &mut resolution) });
    if !out_resolution.is_null() {
        // SAFETY: not NULL, so the host passes a valid place.
        unsafe { out_resolution.write(resolution) };
    }
    match result {
        Ok(()) => Status::OK,
        Err(code) => Status::from_code(code),
    }
}

/// Fills the empty slots of a request with functions of the table.
///
/// # Errors
///
/// NOT_FOUND if a required import is missing; INVALID_ARGUMENT if a pointer is NULL.
///
/// # Safety
///
/// `params` is NULL or a request whose pointers are NULL or valid, as `docs/abi.md`, section 5,
/// says; the slots are not touched by anybody else during the call.
unsafe fn fill(
    table: &[Function],
    context: *mut c_void,
    params: *const ResolveParams,
    resolution: &mut Resolution,
) -> Result<(), StatusCode> {
    // SAFETY: the caller passes NULL or a valid request.
    let params = unsafe { params.as_ref() }.ok_or(StatusCode::INVALID_ARGUMENT)?;
    let count = params.count;
    if count == 0 {
        return Ok(());
    }
    let arrays_are_missing = params.symbol_names.is_null()
        || params.out_fn_ptrs.is_null()
        || params.out_fn_contexts.is_null();
    if arrays_are_missing {
        return Err(StatusCode::INVALID_ARGUMENT);
    }
    // SAFETY: not NULL, so the caller passes `count` names.
    let names = unsafe { slice::from_raw_parts(params.symbol_names, count) };
    // SAFETY: not NULL, so the caller passes `count` slots that are ours for the call.
    let functions = unsafe { slice::from_raw_parts_mut(params.out_fn_ptrs, count) };
    // SAFETY: not NULL, so the caller passes `count` slots that are ours for the call.
    let contexts = unsafe { slice::from_raw_parts_mut(params.out_fn_contexts, count) };

    let mut search = Search::new(table);
    let mut is_missing_required = false;
    for ((&name, function), slot_context) in names.iter().zip(functions).zip(contexts) {
        if function.is_some() {
            continue;
        }
        if name.is_null() {
            return Err(StatusCode::INVALID_ARGUMENT);
        }
        // SAFETY: not NULL, so the caller passes a terminated name that lives during the call.
        let name = unsafe { name_bytes(name) };
        let (is_optional, name) = match name {
            [OPTIONAL_IMPORT_PREFIX, name @ ..] => (true, name),
            name => (false, name),
        };
        match search.find(name) {
            Some(import) => {
                *function = Some(import);
                *slot_context = context;
            }
            None if is_optional => *resolution = Resolution::MISSING_OPTIONAL,
            None => is_missing_required = true,
        }
    }
    if is_missing_required {
        return Err(StatusCode::NOT_FOUND);
    }
    Ok(())
}

/// Returns the bytes of a name, without its terminator.
///
/// # Safety
///
/// `name` is a NUL-terminated string that lives as long as the result.
unsafe fn name_bytes<'name>(name: *const c_char) -> &'name [u8] {
    // SAFETY: the caller passes a terminated string.
    unsafe { core::ffi::CStr::from_ptr(name) }.to_bytes()
}

/// Calls a function of plugin `P` for a kernel; what the export macros make an
/// [`ImportFn`](hal_abi::ImportFn) of.
///
/// Returns 0, or the number of the error's code.
///
/// # Safety
///
/// * `context` is what the plugin's resolve function stored: an instance of `P` that is not unloaded.
/// * `params` is the block of this call, laid out as `B`, ours until the call returns; it may be
///   anything if `B` has no fields.
/// * Memory that `function` views through the call is as [`export_plugin!`](crate::export_plugin!)
///   asks.
pub unsafe fn call<P: Plugin, B: Plain>(
    function: impl FnOnce(&P, &mut Call<'_, B>) -> Result<(), StatusCode>,
    params: *mut c_void,
    context: *mut c_void,
) -> c_int {
    let result = guard(|| {
        // SAFETY: the context is an instance that outlives the call.
        let instance = unsafe { context.cast::<Instance<P>>().as_ref() };
        let instance = instance.ok_or(StatusCode::FAILED_PRECONDITION)?;
        // A kernel passes no valid pointer for a block without fields.
        let block = if size_of::<B>() == 0 {
            ptr::dangling_mut::<B>()
        } else {
            params.cast::<B>()
        };
        if block.is_null() || !block.is_aligned() {
            return Err(StatusCode::INVALID_ARGUMENT);
        }
        // SAFETY: aligned, not NULL, and ours for the call. Its bytes were written by the kernel,
        // and all bytes are valid for plain data.
        let block = unsafe { &mut *block };
        // SAFETY: memory viewed through the call is as the caller promises.
        let mut call = unsafe { Call::new(block) }?;
        function(&instance.plugin, &mut call)
    });
    match result {
        Ok(()) => 0,
        Err(code) => c_int::try_from(error_code(code).0).unwrap_or(c_int::MAX),
    }
}

/// Exports a plugin from a shared library: defines the symbol `iree_hal_executable_plugin_query`.
///
/// Takes the type of the [`Plugin`] and its functions: for each, `unsafe`, the name that kernels
/// import, and a `fn(&Plugin, &mut Call<'_, Block>) -> Result<(), StatusCode>`. Names may come in
/// any order; a name that comes twice fails to compile. A library exports one plugin.
///
/// # Safety
///
/// Each `unsafe` is a promise about kernels that import the name, which nobody can check:
///
/// * They pass a parameter block of the layout that the function declares.
/// * The views that the function takes (its offsets and lengths) stay within the memory that the
///   kernel's arguments describe; memory viewed through a [`MutPtr`](crate::MutPtr) may be written.
/// * Workgroups that run at the same time do not write what another one views.
///
/// # Examples
///
/// ```
/// use hal_plugin_sdk::{Call, LoadContext, Plugin, StatusCode, export_plugin, parameter_block};
///
/// struct Answer;
///
/// impl Plugin for Answer {
///     const NAME: &std::ffi::CStr = c"answer";
///     fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
///         Ok(Self)
///     }
/// }
///
/// parameter_block! {
///     /// The block of `lab_answer`: `() -> i32`.
///     struct AnswerBlock {
///         result: i32,
///     }
/// }
///
/// fn answer(_: &Answer, call: &mut Call<'_, AnswerBlock>) -> Result<(), StatusCode> {
///     call.params_mut().result = 42;
///     Ok(())
/// }
///
/// export_plugin! {
///     Answer {
///         // Promise: `lab_answer` is imported as `() -> i32` and views no memory.
///         unsafe "lab_answer" => answer,
///     }
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export_plugin {
    ($plugin:ty { $(unsafe $name:expr => $function:path),* $(,)? }) => {
        const _: () = {
            $crate::static_plugin! {
                fn query for $plugin { $(unsafe $name => $function),* }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn iree_hal_executable_plugin_query(
                max_version: u32,
                reserved: *mut ::core::ffi::c_void,
            ) -> *const *const $crate::hal_abi::PluginHeader {
                // SAFETY: the query may be called by anybody, with anything.
                unsafe { query(max_version, reserved) }
            }
        };
    };
}

/// Defines the query function of a plugin that is linked into its host.
///
/// Like [`export_plugin!`](crate::export_plugin!), including its promises, but no symbol is
/// exported: the query gets the given name, and a process may hold many.
///
/// # Safety
///
/// See [`export_plugin!`](crate::export_plugin!).
///
/// # Examples
///
/// ```
/// # use hal_plugin_sdk::{LoadContext, Plugin, StatusCode};
/// # struct Nothing;
/// # impl Plugin for Nothing {
/// #     const NAME: &std::ffi::CStr = c"nothing";
/// #     fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
/// #         Ok(Self)
/// #     }
/// # }
/// hal_plugin_sdk::static_plugin! {
///     /// The plugin without functions.
///     pub fn nothing_query for Nothing {}
/// }
/// let query: hal_plugin_sdk::hal_abi::PluginQueryFn = nothing_query;
/// ```
#[macro_export]
macro_rules! static_plugin {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $query:ident for $plugin:ty {
            $(unsafe $name:expr => $function:path),* $(,)?
        }
    ) => {
        $(#[$attribute])*
        $visibility unsafe extern "C" fn $query(
            max_version: u32,
            _reserved: *mut ::core::ffi::c_void,
        ) -> *const *const $crate::hal_abi::PluginHeader {
            static HEADER: $crate::export::StaticHeader =
                $crate::export::StaticHeader::new::<$plugin>();
            static PLUGIN: $crate::export::StaticPlugin =
                $crate::export::StaticPlugin::new::<$plugin>(&HEADER);
            PLUGIN.query(max_version)
        }

        const _: () = {
            impl $crate::export::Exports for $plugin {
                const FUNCTIONS: &'static [$crate::export::Function] =
                    &$crate::export::sorted([$(
                        $crate::export::Function::new($name, {
                            unsafe extern "C" fn import(
                                params: *mut ::core::ffi::c_void,
                                context: *mut ::core::ffi::c_void,
                                _reserved: *mut ::core::ffi::c_void,
                            ) -> ::core::ffi::c_int {
                                // SAFETY: kernels get this function together with the instance as
                                // context; the rest is the promise made at the export.
                                unsafe {
                                    $crate::export::call::<$plugin, _>($function, params, context)
                                }
                            }
                            import
                        }),
                    )*]);
            }
        };
    };
}
