//! Memory does not grow with the number of plugins that came and went.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::{fs, ptr, slice};

use hal_abi::{
    Allocator, AllocatorCommand, PluginEnvironment, PluginFeatures, PluginHeader, PluginV0,
    Resolution, ResolveParams, SanitizerKind, Status, StringPair,
};
use hal_plugin::{Plugin, PluginManager, PluginSpec};

use crate::c_plugins::{FREESTANDING, Workshop};
use crate::probe::allocate;

/// The system's allocator, which counts the bytes that each thread allocated and did not free.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn count(byte_length: usize, sign: i64) {
    let byte_length = i64::try_from(byte_length).unwrap_or(i64::MAX);
    // A thread that ends may free memory after its counter is gone.
    let _ = LIVE_BYTES.try_with(|live| live.set(live.get() + sign * byte_length));
}

// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Returns the number of mappings of this process.
fn mapping_count() -> usize {
    fs::read_to_string("/proc/self/maps")
        .unwrap()
        .lines()
        .count()
}

/// Runs `cycle` 10 000 times, and checks that afterwards there is not more memory in use than after
/// the first hundred: no byte of the heap, and no mapping. (The tests beside this one may map a
/// little meanwhile, but not 10 000 images.)
#[track_caller]
fn check_flat(mut cycle: impl FnMut()) {
    (0..100).for_each(|_| cycle());
    let before = (LIVE_BYTES.get(), mapping_count());
    (0..9_900).for_each(|_| cycle());
    let after = (LIVE_BYTES.get(), mapping_count());
    assert_eq!(after.0, before.0, "bytes allocated and not freed");
    assert!(
        after.1 < before.1 + 1000,
        "{} mappings, {} after",
        before.1,
        after.1
    );
}

/// Uses a plugin from its registration to its end. It knows `f`, which returns a number.
#[track_caller]
fn live_once(manager: &PluginManager, plugin: Plugin, number: c_int) {
    manager.register_plugin(plugin).unwrap();
    let imports = manager.resolve(&[c"f", c"?absent"]).unwrap();
    let name = manager.snapshot().names().next().unwrap().to_owned();
    drop(manager.unregister(&name).unwrap());
    let import = imports.get(0).unwrap();
    // SAFETY: the functions of these plugins use none of their arguments.
    let result = unsafe { import.function()(ptr::null_mut(), import.context(), ptr::null_mut()) };
    assert_eq!(result, number);
    manager.resolve(&[c"f"]).unwrap_err();
}

#[test]
fn ten_thousand_linked_plugins_leave_memory_flat() {
    let manager = PluginManager::new();
    check_flat(|| {
        // SAFETY: a plugin of our own that obeys the ABI.
        let plugin = unsafe { Plugin::from_static(query, &[("key", "value")]) }.unwrap();
        let memory = plugin.memory();
        assert_eq!(memory.live_blocks(), 1);
        live_once(&manager, plugin, 5);
        assert_eq!(memory.live_blocks(), 0);
    });
}

#[test]
fn ten_thousand_freestanding_images_leave_memory_flat() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.sos", 6, FREESTANDING);
    let spec = PluginSpec::parse(path.to_str().unwrap()).unwrap();
    let manager = PluginManager::new();
    check_flat(|| {
        // SAFETY: a plugin of our own that obeys the ABI.
        live_once(&manager, unsafe { Plugin::load(&spec) }.unwrap(), 6);
    });
}

/// System libraries stay mapped by design. What each load adds is the mappings of one copy, and
/// nothing on our heap.
#[test]
fn a_system_library_leaves_its_mappings_behind_and_nothing_else() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.so", 7, &[]);
    let file_length = fs::metadata(&path).unwrap().len();
    let spec = PluginSpec::system(path);
    let manager = PluginManager::new();
    let mut live = None;
    let mut copies = Vec::new();
    for _ in 0..20 {
        // SAFETY: a plugin of our own that obeys the ABI.
        let plugin = unsafe { Plugin::load(&spec) }.unwrap();
        let imports = hal_plugin::resolve_imports(Some(&plugin), &[c"f"]).unwrap();
        let address = imports.get(0).unwrap().function() as usize;
        drop(imports);
        live_once(&manager, plugin, 7);

        let (copy, byte_length) = mappings_of_the_file_at(address);
        // The segments, each rounded out to pages, and what the loader splits off for RELRO.
        assert!(
            byte_length <= file_length + 6 * 4096,
            "{byte_length} bytes of {copy}"
        );
        copies.push(copy);
        let now = *live.get_or_insert(LIVE_BYTES.get());
        // The list of copies is this test's own.
        assert!(LIVE_BYTES.get() - now < 4096);
    }
    copies.sort();
    copies.dedup();
    assert_eq!(copies.len(), 20, "each load has a copy of its own");
}

/// Finds the file that is mapped at an address. Returns its name and the bytes mapped of it.
fn mappings_of_the_file_at(address: usize) -> (String, u64) {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mappings: Vec<(u64, u64, &str)> = maps
        .lines()
        .filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let file = rest.split_whitespace().nth(4)?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((number(start)?, number(end)?, file))
        })
        .collect();
    let address = address as u64;
    let at = |&&(start, end, _): &&(u64, u64, &str)| (start..end).contains(&address);
    let &(_, _, file) = mappings.iter().find(at).unwrap();
    let of_file = mappings.iter().filter(|mapping| mapping.2 == file);
    let byte_length = of_file.map(|(start, end, _)| end - start).sum();
    (file.to_owned(), byte_length)
}

/// A plugin that keeps nothing but one block of the host's memory. It knows `f`.
struct Table(PluginV0);

// SAFETY: the pointers are to constants.
unsafe impl Sync for Table {}

/// As for [`Table`].
struct Header(PluginHeader);

// SAFETY: as above.
unsafe impl Sync for Header {}

static HEADER: Header = Header(PluginHeader {
    version: 1,
    name: c"flat".as_ptr(),
    description: ptr::null(),
    features: PluginFeatures::STANDALONE,
    sanitizer: SanitizerKind::NONE,
    reserved: [0; 8],
});

static TABLE: Table = Table(PluginV0 {
    header: &raw const HEADER.0,
    load: Some(load),
    unload: Some(unload),
    resolve: Some(resolve),
});

unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
    ptr::from_ref(&TABLE.0).cast()
}

/// The state of the plugin, in memory of the host.
struct State {
    allocator: Allocator,
}

unsafe extern "C" fn load(
    environment: *const PluginEnvironment,
    _: usize,
    _: *const StringPair,
    out_self: *mut *mut c_void,
) -> Status {
    // SAFETY: the host passes an environment.
    let allocator = unsafe { (*environment).host_allocator };
    let state = allocate(allocator, size_of::<State>());
    // SAFETY: a fresh block of the right size, aligned for any type.
    unsafe { state.cast::<State>().write(State { allocator }) };
    // SAFETY: the host passes a place for the state.
    unsafe { *out_self = state };
    Status::OK
}

unsafe extern "C" fn unload(state: *mut c_void) {
    // SAFETY: the state that `load` stored.
    let State { allocator } = unsafe { state.cast::<State>().read() };
    let mut block = state;
    let command = AllocatorCommand::FREE;
    let free = allocator.ctl.unwrap();
    // SAFETY: the block came from this allocator, and is used no more.
    let status = unsafe { free(allocator.self_, command, ptr::null(), &raw mut block) };
    assert!(status.is_ok());
}

unsafe extern "C" fn resolve(
    _: *mut c_void,
    params: *const ResolveParams,
    _: *mut Resolution,
) -> Status {
    // SAFETY: the host passes parameters.
    let params = unsafe { params.read() };
    // SAFETY: an array of `count` names, living during this call.
    let names = unsafe { slice::from_raw_parts(params.symbol_names, params.count) };
    // SAFETY: an array of `count` functions.
    let functions = unsafe { slice::from_raw_parts_mut(params.out_fn_ptrs, params.count) };
    for (&name, function) in names.iter().zip(functions) {
        // SAFETY: the host passes NUL-terminated names.
        if unsafe { CStr::from_ptr(name) } == c"f" {
            *function = Some(five);
        }
    }
    Status::OK
}

unsafe extern "C" fn five(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    5
}
