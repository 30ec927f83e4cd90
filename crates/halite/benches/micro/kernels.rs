//! Executable libraries of this program: kernels that do nothing, behind the tables of the library ABI.
//!
//! Their exports differ in what a dispatch of them has to bring along.

use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use hal_abi::library::v0_6::{DispatchAttrs, DispatchFlags, ExportTable, Library};
use hal_abi::library::{
    ConstantTable, ImportTable, LIBRARY_VERSION_0_6, LibraryHeader, LibraryQueryFn, SourceFileTable,
};
use hal_abi::{DispatchFn, DispatchState, Environment, SanitizerKind, WorkgroupState};

/// The name of the import that the library `kernels` needs.
pub(crate) const IMPORT: &str = "bench_import";
/// The number of exports of the library `many`.
pub(crate) const MANY: usize = 1024;
/// All libraries.
pub(crate) const ALL: [LibraryQueryFn; 2] = [query_kernels, query_many];

/// Returns the name of an export of the library `many`.
pub(crate) fn name_of_many(index: usize) -> String {
    format!("main_dispatch_{index}_elementwise_4_f32")
}

/// A kernel as the tables describe it.
struct Kernel {
    name: String,
    function: DispatchFn,
    constants: u8,
    bindings: u8,
}

/// The library `kernels`, with one import.
unsafe extern "C" fn query_kernels(
    max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    static LIBRARY: OnceLock<Table> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let kernel = |name: &str, function: DispatchFn, constants, bindings| Kernel {
            name: name.to_owned(),
            function,
            constants,
            bindings,
        };
        let kernels = [
            kernel("c0_b0", nothing, 0, 0),
            kernel("c0_b3", nothing, 0, 3),
            kernel("c0_b16", nothing, 0, 16),
            kernel("c16_b3", nothing, 16, 3),
            kernel("import", call_import, 0, 3),
        ];
        Table(make_library("kernels", &[IMPORT], &kernels))
    });
    answer(max_version, library)
}

/// The library `many`, with many exports.
unsafe extern "C" fn query_many(
    max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    static LIBRARY: OnceLock<Table> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let kernels: Vec<Kernel> = (0..MANY)
            .map(|index| Kernel {
                name: name_of_many(index),
                function: nothing,
                constants: 0,
                bindings: 3,
            })
            .collect();
        Table(make_library("many", &[], &kernels))
    });
    answer(max_version, library)
}

/// Does nothing.
unsafe extern "C" fn nothing(
    _environment: *const Environment,
    _dispatch: *const DispatchState,
    _workgroup: *const WorkgroupState,
) -> c_int {
    0
}

/// Calls import 0.
unsafe extern "C" fn call_import(
    environment: *const Environment,
    _dispatch: *const DispatchState,
    _workgroup: *const WorkgroupState,
) -> c_int {
    // SAFETY: a kernel's environment is valid for the call.
    let environment = unsafe { &*environment };
    // SAFETY: the library has an import, so there is an entry.
    let function = unsafe { environment.import_funcs.read() };
    // SAFETY: as above.
    let context = unsafe { environment.import_contexts.read() };
    let Some(thunk) = environment.import_thunk else {
        return -1;
    };
    // SAFETY: the function is `imported`, which takes no parameters.
    unsafe { thunk(function, ptr::null_mut(), context, ptr::null_mut()) }
}

/// The function behind the import: does nothing.
pub(crate) unsafe extern "C" fn imported(
    _params: *mut c_void,
    _context: *mut c_void,
    _reserved: *mut c_void,
) -> c_int {
    0
}

/// A library that lives as long as the program.
struct Table(&'static Library);

// SAFETY: the library and all its tables are never written again and never freed.
unsafe impl Send for Table {}

// SAFETY: as above.
unsafe impl Sync for Table {}

/// Answers a query as compiled libraries do: for one version only.
fn answer(max_version: u32, library: &'static Table) -> *const *const LibraryHeader {
    if max_version != LIBRARY_VERSION_0_6 {
        return ptr::null();
    }
    ptr::from_ref(library.0).cast()
}

/// Makes a library that is never freed, as those of compiled code are not.
fn make_library(name: &str, imports: &[&str], kernels: &[Kernel]) -> &'static Library {
    let header = leaked(LibraryHeader {
        version: LIBRARY_VERSION_0_6,
        name: c_string(name),
        features: 0,
        sanitizer: SanitizerKind::NONE,
    });
    let functions: Vec<_> = kernels.iter().map(|kernel| Some(kernel.function)).collect();
    let names: Vec<_> = kernels
        .iter()
        .map(|kernel| c_string(&kernel.name))
        .collect();
    let attrs: Vec<_> = kernels.iter().map(attrs).collect();
    let symbols: Vec<_> = imports.iter().map(|name| c_string(name)).collect();
    leaked(Library {
        header,
        imports: ImportTable {
            count: count(symbols.len()),
            symbols: symbols.leak().as_ptr(),
        },
        exports: ExportTable {
            count: count(kernels.len()),
            ptrs: functions.leak().as_ptr(),
            attrs: attrs.leak().as_ptr(),
            params: ptr::null(),
            occupancy: ptr::null(),
            names: names.leak().as_ptr(),
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
    })
}

fn attrs(kernel: &Kernel) -> DispatchAttrs {
    DispatchAttrs {
        flags: DispatchFlags::NONE,
        local_memory_pages: 0,
        constant_count: kernel.constants,
        binding_count: kernel.bindings,
        workgroup_size_x: 1,
        workgroup_size_y: 1,
        workgroup_size_z: 1,
        parameter_count: 0,
        reserved_1: [0; 5],
    }
}

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn c_string(text: &str) -> *const c_char {
    CString::new(text).expect("no name has a NUL").into_raw()
}

fn count(length: usize) -> u32 {
    u32::try_from(length).expect("the tables are small")
}
