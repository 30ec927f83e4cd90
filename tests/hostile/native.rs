//! Memory that runs out while imports are resolved and kernels are dispatched: a plugin that asks its host for memory
//! whenever it is called, and a library whose kernel needs scratch memory. Both are linked into this program.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU8, Ordering};

use hal_abi::library::v0_6::{DispatchAttrs, DispatchFlags, ExportTable, Library};
use hal_abi::library::{
    ConstantTable, ImportTable, LIBRARY_VERSION_0_6, LibraryHeader, SourceFileTable,
};
use hal_abi::{
    AllocParams, Allocator, AllocatorCommand, DispatchFn, DispatchState, Environment,
    PLUGIN_VERSION_0_1, PluginEnvironment, PluginFeatures, PluginHeader, PluginV0, Resolution,
    ResolveParams, SanitizerKind, Status, StringPair, WorkgroupState,
};
use hal_local::{
    Binding, Dispatch, DispatchError, Dispatcher, ExecutableData, ExecutableLoader,
    ExecutableParams, InlineDispatcher, StaticLibraryLoader, Trust,
};
use hal_plugin::{Plugin, PluginError, PluginManager};
use halite::StatusCode;
use vm::Buffer;

use crate::memory::{LARGE, check};

thread_local! {
    /// Where the plugin of this thread gets its memory.
    static ALLOCATOR: Cell<Option<Allocator>> = const { Cell::new(None) };
    /// How often the plugin of this thread was loaded and not unloaded.
    static LOADED: Cell<u32> = const { Cell::new(0) };
}

/// Returns a code of the `hal-*` crates as one of the VM.
fn status(code: hal_abi::StatusCode) -> StatusCode {
    StatusCode::from_low_bits(code.0)
}

/// Takes a large block from the host and gives it back.
fn borrow_block(allocator: Allocator) -> Status {
    let control = allocator.ctl.unwrap();
    let mut block = ptr::null_mut();
    let params = AllocParams { byte_length: LARGE };
    let params = (&raw const params).cast();
    // SAFETY: the allocator lives until `unload`, and the pointers are to locals.
    let status = unsafe {
        control(
            allocator.self_,
            AllocatorCommand::MALLOC,
            params,
            &raw mut block,
        )
    };
    if !status.is_ok() {
        return status;
    }
    // SAFETY: as above; the block came from this allocator.
    unsafe {
        control(
            allocator.self_,
            AllocatorCommand::FREE,
            ptr::null(),
            &raw mut block,
        )
    }
}

unsafe extern "C" fn load(
    environment: *const PluginEnvironment,
    _: usize,
    _: *const StringPair,
    _: *mut *mut c_void,
) -> Status {
    // SAFETY: the host passes an environment.
    let allocator = unsafe { (*environment).host_allocator };
    ALLOCATOR.set(Some(allocator));
    let status = borrow_block(allocator);
    if status.is_ok() {
        LOADED.set(LOADED.get() + 1);
    }
    status
}

unsafe extern "C" fn unload(_: *mut c_void) {
    LOADED.set(LOADED.get() - 1);
}

/// The plugin's function, which needs memory too.
unsafe extern "C" fn function(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    let status = borrow_block(ALLOCATOR.get().unwrap());
    c_int::try_from(status.0).unwrap()
}

unsafe extern "C" fn resolve(
    _: *mut c_void,
    params: *const ResolveParams,
    _: *mut Resolution,
) -> Status {
    let status = borrow_block(ALLOCATOR.get().unwrap());
    if status.is_ok() {
        // SAFETY: the host passes parameters of at least one name.
        let functions = unsafe { (*params).out_fn_ptrs };
        // SAFETY: the first of its slots, which are as many as there are names.
        unsafe { *functions = Some(function) };
    }
    status
}

unsafe extern "C" fn query_plugin(_: u32, _: *mut c_void) -> *const *const PluginHeader {
    static HEADER: Table<PluginHeader> = Table(PluginHeader {
        version: PLUGIN_VERSION_0_1,
        name: c"borrower".as_ptr(),
        description: c"needs memory".as_ptr(),
        features: PluginFeatures::STANDALONE,
        sanitizer: SanitizerKind::NONE,
        reserved: [0; 8],
    });
    static PLUGIN: Table<PluginV0> = Table(PluginV0 {
        header: &raw const HEADER.0,
        load: Some(load),
        unload: Some(unload),
        resolve: Some(resolve),
    });
    ptr::from_ref(&PLUGIN.0).cast()
}

fn load_plugin() -> Result<Plugin, PluginError> {
    // SAFETY: a plugin of our own that obeys the ABI.
    unsafe { Plugin::from_static(query_plugin, &[]) }
}

#[test]
fn loading_a_plugin_fails_when_its_memory_does() {
    check(1, || {
        load_plugin()
            .map(drop)
            .map_err(|error| status(error.status_code()))
    });
    assert_eq!(LOADED.get(), 0);
}

#[test]
fn resolving_fails_when_the_memory_of_a_plugin_does_and_works_afterwards() {
    let manager = PluginManager::new();
    manager.register_plugin(load_plugin().unwrap()).unwrap();
    check(2, || {
        let imports = manager.resolve(&[c"f"]);
        let imports = imports.map_err(|error| status(error.status_code()))?;
        let import = imports.get(0).unwrap();
        let none = ptr::null_mut();
        // SAFETY: the function takes no parameters, and `imports` keeps its plugin loaded.
        match unsafe { import.function()(none, import.context(), none) } {
            0 => Ok(()),
            code => Err(status(hal_abi::StatusCode(code.cast_unsigned()))),
        }
    });
    drop(manager);
    assert_eq!(LOADED.get(), 0);
}

/// Pages of 4096 bytes of scratch memory that the kernel asks for: more than one large block's worth.
const SCRATCH_PAGES: u16 = 256;

/// Fills its scratch memory and counts itself in its only binding.
unsafe extern "C" fn scratch(
    _: *const Environment,
    dispatch: *const DispatchState,
    workgroup: *const WorkgroupState,
) -> c_int {
    // SAFETY: the host passes both structures.
    let dispatch = unsafe { &*dispatch };
    // SAFETY: as above.
    let workgroup = unsafe { &*workgroup };
    let length = workgroup.local_memory_size as usize;
    // SAFETY: scratch memory of that size, of this thread alone.
    unsafe { workgroup.local_memory.cast::<u8>().write_bytes(1, length) };
    // SAFETY: the kernel declares one binding.
    let binding = unsafe { *dispatch.binding_ptrs };
    // SAFETY: the dispatches below bind shared bytes.
    let count = unsafe { &*binding.cast::<AtomicU8>() };
    count.fetch_add(1, Ordering::Relaxed);
    0
}

/// Makes tables of pointers to constants usable as statics.
struct Table<T>(T);

// SAFETY: the tables point at constants only.
unsafe impl<T> Sync for Table<T> {}

unsafe extern "C" fn query_library(_: u32, _: *const Environment) -> *const *const LibraryHeader {
    static HEADER: Table<LibraryHeader> = Table(LibraryHeader {
        version: LIBRARY_VERSION_0_6,
        name: c"scratch".as_ptr(),
        features: 0,
        sanitizer: SanitizerKind::NONE,
    });
    static ENTRIES: [Option<DispatchFn>; 1] = [Some(scratch)];
    static ATTRS: [DispatchAttrs; 1] = [DispatchAttrs {
        flags: DispatchFlags::NONE,
        local_memory_pages: SCRATCH_PAGES,
        constant_count: 0,
        binding_count: 1,
        workgroup_size_x: 1,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        parameter_count: 0,
        reserved_1: [0; 5],
    }];
    static NAMES: Table<[*const c_char; 1]> = Table([c"scratch".as_ptr()]);
    static LIBRARY: Table<Library> = Table(Library {
        header: &raw const HEADER.0,
        imports: ImportTable {
            count: 0,
            symbols: ptr::null(),
        },
        exports: ExportTable {
            count: 1,
            ptrs: ENTRIES.as_ptr(),
            attrs: ATTRS.as_ptr(),
            params: ptr::null(),
            occupancy: ptr::null(),
            names: NAMES.0.as_ptr(),
            tags: ptr::null(),
            parameter_names: ptr::null(),
            source_locations: ptr::null(),
            stage_locations: ptr::null(),
        },
        constants: ConstantTable { count: 0 },
        sources: SourceFileTable {
            count: 0,
            files: ptr::null(),
        },
    });
    ptr::from_ref(&LIBRARY.0).cast()
}

#[test]
fn a_dispatch_fails_when_its_scratch_memory_does_and_runs_nothing() {
    // SAFETY: the library is our own and obeys the ABI.
    let trust = unsafe { Trust::native_code() };
    let loader = StaticLibraryLoader::new(trust, None, &[query_library]).unwrap();
    let executable = loader
        .try_load(&ExecutableParams {
            format: "static",
            data: ExecutableData::copy_of(b"scratch"),
            constants: &[],
        })
        .unwrap();
    let dispatcher = InlineDispatcher::new();
    let buffer = Buffer::allocate(1, 0).unwrap();
    let counts = buffer.as_shared().unwrap();
    let bindings = [Binding::shared(counts, None)];
    let dispatch = || -> Result<(), DispatchError> {
        let dispatch = Dispatch::new(&*executable, 0, [2, 1, 1], &[], &bindings)?;
        dispatcher.dispatch(&*executable, &dispatch)
    };
    check(1, || {
        dispatch().map_err(|error| status(error.status_code()))
    });
    assert_eq!(counts[0].load(Ordering::Relaxed), 2);
    // The scratch memory is kept, so that the next dispatch takes none.
    check(0, || {
        dispatch().map_err(|error| status(error.status_code()))
    });
}

/// Names that make the slots of one resolution a large block are the caller's own memory, which bounds them.
#[test]
fn the_slots_of_a_resolution_are_bounded_by_its_names() {
    let names: Vec<&CStr> = vec![c"?f"; 1000];
    let manager = PluginManager::new();
    let (imports, peak) = halite_tests::memory::peak_of(|| manager.resolve(&names).unwrap());
    assert_eq!(imports.len(), names.len());
    assert!(peak <= 2 * size_of_val(&names[..]), "{peak} bytes");
}
