//! Query, load and unload.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use hal_plugin_sdk::hal_abi::{PLUGIN_VERSION_0_1, PluginFeatures, SanitizerKind};
use hal_plugin_sdk::{HostBuffer, LoadContext, Plugin, StatusCode, static_plugin};

use crate::host::{self, Heap, Loaded};

/// State in the host's memory, chosen by load parameters, counted while alive.
struct Stateful {
    table: HostBuffer<u32>,
}

static LIVE_INSTANCES: AtomicUsize = AtomicUsize::new(0);

impl Plugin for Stateful {
    const NAME: &'static CStr = c"stateful";
    const DESCRIPTION: &'static CStr = c"keeps a table";

    fn load(context: &LoadContext<'_>) -> Result<Self, StatusCode> {
        if context.param(b"fail").is_some() {
            return Err(StatusCode::UNAVAILABLE);
        }
        assert!(context.param(b"panic").is_none(), "asked to panic");
        let len = context.param(b"len").unwrap_or(b"4");
        let len = str::from_utf8(len).ok().and_then(|len| len.parse().ok());
        let mut table = context
            .allocator()
            .zeroed(len.ok_or(StatusCode::INVALID_ARGUMENT)?)?;
        assert!(
            table.iter().all(|&entry| entry == 0),
            "fresh memory is zeros"
        );
        table.fill(7);
        LIVE_INSTANCES.fetch_add(1, Ordering::Relaxed);
        Ok(Self { table })
    }
}

impl Drop for Stateful {
    fn drop(&mut self) {
        assert!(self.table.iter().all(|&entry| entry == 7));
        LIVE_INSTANCES.fetch_sub(1, Ordering::Relaxed);
    }
}

static_plugin! {
    fn stateful for Stateful {}
}

#[test]
fn the_query_serves_every_version_from_0_1_on() {
    assert!(host::query(stateful, 0).is_null());
    for max_version in [1, 2, 77, u32::MAX] {
        assert!(
            !host::query(stateful, max_version).is_null(),
            "{max_version}"
        );
    }
}

#[test]
fn the_header_says_who_the_plugin_is() {
    let plugin = host::plugin(stateful);
    // SAFETY: the plugin's header is static.
    let header = unsafe { *plugin.header };
    assert_eq!(header.version, PLUGIN_VERSION_0_1);
    // SAFETY: the plugin's name is a terminated static string.
    let name = unsafe { CStr::from_ptr(header.name) };
    assert_eq!(name, c"stateful");
    // SAFETY: the plugin's description is a terminated static string.
    let description = unsafe { CStr::from_ptr(header.description) };
    assert_eq!(description, c"keeps a table");
    assert_eq!(header.features, PluginFeatures::NONE);
    assert_eq!(header.sanitizer, SanitizerKind::NONE);
    assert_eq!(header.reserved, [0; 8]);
}

#[test]
fn an_instance_lives_in_the_hosts_memory_until_unload() {
    let heap = Heap::default();
    let first = Loaded::new(stateful, &heap, &[]);
    let second = Loaded::new(stateful, &heap, &[("len", "3"), ("len", "0")]);
    assert_eq!(
        heap.live_blocks.get(),
        3,
        "two instances and one table that is not empty"
    );
    assert_eq!(LIVE_INSTANCES.load(Ordering::Relaxed), 2);
    drop(first);
    drop(second);
    assert_eq!(heap.live_blocks.get(), 0);
    assert_eq!(LIVE_INSTANCES.load(Ordering::Relaxed), 0);
}

#[test]
fn a_failing_load_returns_its_code_and_no_instance() {
    let heap = Heap::default();
    let plugin = host::plugin(stateful);
    for (params, code) in [
        (("fail", ""), StatusCode::UNAVAILABLE),
        (("panic", ""), StatusCode::INTERNAL),
        (("len", "many"), StatusCode::INVALID_ARGUMENT),
        (("len", "18446744073709551615"), StatusCode::OUT_OF_RANGE),
    ] {
        assert_eq!(
            host::load(&plugin, &heap, &[params]),
            Err(code),
            "{params:?}"
        );
        assert_eq!(heap.live_blocks.get(), 0, "{params:?}");
    }
}

#[test]
fn an_exhausted_host_is_resource_exhausted_without_its_record() {
    let heap = Heap::default();
    heap.is_exhausted.set(true);
    let plugin = host::plugin(stateful);
    assert_eq!(
        host::load(&plugin, &heap, &[]),
        Err(StatusCode::RESOURCE_EXHAUSTED)
    );
}

#[test]
fn load_refuses_null_pointers() {
    let plugin = host::plugin(stateful);
    let load = plugin.load.unwrap();
    let mut instance = ptr::null_mut();
    // SAFETY: NULL is refused.
    let status = unsafe { load(ptr::null(), 0, ptr::null(), &raw mut instance) };
    assert_eq!(status.code(), StatusCode::INVALID_ARGUMENT);
    assert!(instance.is_null());
}

#[test]
fn unload_of_an_instance_that_never_loaded_does_nothing() {
    let plugin = host::plugin(stateful);
    let unload: unsafe extern "C" fn(*mut c_void) = plugin.unload.unwrap();
    // SAFETY: NULL is what hosts pass after a failed load.
    unsafe { unload(ptr::null_mut()) };
}
