//! A host reduced to the raw calls: an allocator that counts, and one loaded plugin.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::cell::Cell;
use std::ffi::{CString, c_int, c_void};
use std::ptr;

use hal_plugin_sdk::StatusCode;
use hal_plugin_sdk::hal_abi::{
    AllocParams, Allocator, AllocatorCommand, ImportFn, PLUGIN_VERSION_0_1, PluginEnvironment,
    PluginHeader, PluginQueryFn, PluginV0, Resolution, ResolveParams, Status, StringPair,
    StringView,
};

/// Room before each block for its length, keeping the alignment of 16.
const PREFIX: usize = 16;

/// The host's heap.
#[derive(Default)]
pub(crate) struct Heap {
    /// How many blocks are live.
    pub(crate) live_blocks: Cell<usize>,
    /// Whether allocations fail.
    pub(crate) is_exhausted: Cell<bool>,
}

fn layout(byte_length: usize) -> Layout {
    Layout::from_size_align(PREFIX + byte_length, 16).unwrap()
}

/// The control function of a `Heap`.
unsafe extern "C" fn control(
    self_: *mut c_void,
    command: AllocatorCommand,
    params: *const c_void,
    inout_ptr: *mut *mut c_void,
) -> Status {
    // SAFETY: the environment passes the heap that outlives the plugin.
    let heap = unsafe { &*self_.cast::<Heap>() };
    match command {
        AllocatorCommand::MALLOC | AllocatorCommand::CALLOC => {
            // SAFETY: these commands come with parameters.
            let AllocParams { byte_length } = unsafe { *params.cast::<AllocParams>() };
            assert_ne!(byte_length, 0, "a host refuses empty blocks");
            if heap.is_exhausted.get() {
                // A record, as IREE's host returns: an address with the code in the low bits.
                return Status(0x1230_0040 | StatusCode::RESOURCE_EXHAUSTED.0 as usize);
            }
            // SAFETY: the layout has a size.
            let block = unsafe { alloc_zeroed(layout(byte_length)) };
            assert!(!block.is_null());
            // SAFETY: the prefix has room for the length.
            unsafe { block.cast::<usize>().write(byte_length) };
            // SAFETY: the plugin passes a valid place.
            unsafe { inout_ptr.write(block.wrapping_add(PREFIX).cast()) };
            heap.live_blocks.set(heap.live_blocks.get() + 1);
            Status::OK
        }
        AllocatorCommand::FREE => {
            // SAFETY: the plugin passes a valid place.
            let block = unsafe { *inout_ptr }.cast::<u8>().wrapping_sub(PREFIX);
            // SAFETY: the prefix holds the length.
            let byte_length = unsafe { block.cast::<usize>().read() };
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(block, layout(byte_length)) };
            heap.live_blocks.set(heap.live_blocks.get() - 1);
            Status::OK
        }
        _ => Status::from_code(StatusCode::UNIMPLEMENTED),
    }
}

/// The answer to a query.
pub(crate) fn query(query: PluginQueryFn, max_version: u32) -> *const *const PluginHeader {
    // SAFETY: queries take any version.
    unsafe { query(max_version, ptr::null_mut()) }
}

/// The plugin behind a query.
pub(crate) fn plugin(query_fn: PluginQueryFn) -> PluginV0 {
    let answer = query(query_fn, PLUGIN_VERSION_0_1);
    assert!(!answer.is_null());
    // SAFETY: the plugin serves version 0.1.
    unsafe { *answer.cast::<PluginV0>() }
}

/// Loads with an environment whose allocator is `heap`.
pub(crate) fn load(
    plugin: &PluginV0,
    heap: &Heap,
    params: &[(&str, &str)],
) -> Result<*mut c_void, StatusCode> {
    let view = |text: &str| StringView {
        data: text.as_ptr().cast(),
        size: text.len(),
    };
    let pairs: Vec<StringPair> = params
        .iter()
        .map(|(key, value)| StringPair {
            key: view(key),
            value: view(value),
        })
        .collect();
    let environment = PluginEnvironment {
        host_allocator: Allocator {
            self_: ptr::from_ref(heap).cast_mut().cast(),
            ctl: Some(control),
        },
    };
    // IREE's host passes garbage if there are no parameters.
    let pairs_start = if pairs.is_empty() {
        ptr::dangling::<StringPair>()
    } else {
        pairs.as_ptr()
    };
    let mut instance = ptr::null_mut();
    // SAFETY: everything is valid for the call.
    let status = unsafe {
        plugin.load.unwrap()(
            &raw const environment,
            pairs.len(),
            pairs_start,
            &raw mut instance,
        )
    };
    assert!(
        !status.is_payload(),
        "the plugin has no full-status feature"
    );
    if status.is_ok() {
        Ok(instance)
    } else {
        Err(status.code())
    }
}

/// A loaded plugin, unloaded when dropped.
pub(crate) struct Loaded<'heap> {
    plugin: PluginV0,
    instance: *mut c_void,
    _heap: &'heap Heap,
}

/// The outcome of a resolution.
pub(crate) struct Resolved {
    pub(crate) code: StatusCode,
    pub(crate) resolution: Resolution,
    pub(crate) functions: Vec<Option<ImportFn>>,
    pub(crate) contexts: Vec<*mut c_void>,
}

impl<'heap> Loaded<'heap> {
    pub(crate) fn new(query: PluginQueryFn, heap: &'heap Heap, params: &[(&str, &str)]) -> Self {
        let plugin = plugin(query);
        let instance = load(&plugin, heap, params).unwrap();
        Self {
            plugin,
            instance,
            _heap: heap,
        }
    }

    /// Resolves names into slots that hold `functions` already.
    pub(crate) fn resolve_into(
        &self,
        names: &[&str],
        mut functions: Vec<Option<ImportFn>>,
    ) -> Resolved {
        let names: Vec<CString> = names
            .iter()
            .map(|&name| CString::new(name).unwrap())
            .collect();
        let name_starts: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
        let mut contexts = vec![ptr::null_mut(); names.len()];
        let params = ResolveParams {
            count: names.len(),
            symbol_names: name_starts.as_ptr(),
            out_fn_ptrs: functions.as_mut_ptr(),
            out_fn_contexts: contexts.as_mut_ptr(),
        };
        let (code, resolution) = self.resolve_raw(&params);
        Resolved {
            code,
            resolution,
            functions,
            contexts,
        }
    }

    pub(crate) fn resolve(&self, names: &[&str]) -> Resolved {
        self.resolve_into(names, vec![None; names.len()])
    }

    pub(crate) fn resolve_raw(&self, params: &ResolveParams) -> (StatusCode, Resolution) {
        let mut resolution = Resolution(0xFFFF_FFFF);
        // SAFETY: the instance is loaded, the request valid.
        let status =
            unsafe { self.plugin.resolve.unwrap()(self.instance, params, &raw mut resolution) };
        assert!(!status.is_payload());
        (status.code(), resolution)
    }

    /// Calls a function with a parameter block, as a kernel would.
    pub(crate) fn call<B>(&self, name: &str, block: &mut B) -> c_int {
        self.call_raw(name, ptr::from_mut(block).cast())
    }

    pub(crate) fn call_raw(&self, name: &str, params: *mut c_void) -> c_int {
        let resolved = self.resolve(&[name]);
        assert_eq!(resolved.code, StatusCode::OK, "{name}");
        // SAFETY: the block is what the function declares.
        unsafe { resolved.functions[0].unwrap()(params, resolved.contexts[0], ptr::null_mut()) }
    }
}

impl Drop for Loaded<'_> {
    fn drop(&mut self) {
        // SAFETY: loaded once, unloaded once.
        unsafe { self.plugin.unload.unwrap()(self.instance) };
    }
}
