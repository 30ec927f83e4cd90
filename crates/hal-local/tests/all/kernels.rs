//! Executable libraries of this program: kernels in Rust behind the tables of the library ABI.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use hal_abi::library::v0_6::{DispatchAttrs, DispatchFlags, ExportTable, Library};
use hal_abi::library::{
    ConstantTable, ImportTable, LIBRARY_VERSION_0_6, LibraryHeader, LibraryQueryFn, SourceFileTable,
};
use hal_abi::{DispatchFn, DispatchState, Environment, SanitizerKind, WorkgroupState};

/// Makes tables of pointers to constants usable as statics.
#[repr(transparent)]
pub(crate) struct Table<T>(pub(crate) T);

// SAFETY: the tables point at constants only.
unsafe impl<T> Sync for Table<T> {}

/// Answers a query as compiled libraries do: for one version only.
fn answer(max_version: u32, library: &'static Table<Library>) -> *const *const LibraryHeader {
    if max_version != LIBRARY_VERSION_0_6 {
        return ptr::null();
    }
    ptr::from_ref(&library.0).cast()
}

const fn header(name: *const c_char) -> LibraryHeader {
    LibraryHeader {
        version: LIBRARY_VERSION_0_6,
        name,
        features: 0,
        sanitizer: SanitizerKind::NONE,
    }
}

const fn attrs(constants: u8, bindings: u8, pages: u16, flags: DispatchFlags) -> DispatchAttrs {
    DispatchAttrs {
        flags,
        local_memory_pages: pages,
        constant_count: constants,
        binding_count: bindings,
        workgroup_size_x: 0,
        workgroup_size_y: 3,
        workgroup_size_z: 0,
        parameter_count: 0,
        reserved_1: [0; 5],
    }
}

const fn library(
    header: &'static Table<LibraryHeader>,
    imports: ImportTable,
    ptrs: &'static [Option<DispatchFn>],
    attrs: &'static [DispatchAttrs],
    names: &'static Table<&'static [*const c_char]>,
) -> Table<Library> {
    assert!(ptrs.len() == attrs.len() && ptrs.len() == names.0.len());
    Table(Library {
        header: &raw const header.0,
        imports,
        exports: ExportTable {
            #[expect(clippy::cast_possible_truncation, reason = "there are few kernels")]
            count: ptrs.len() as u32,
            ptrs: ptrs.as_ptr(),
            attrs: attrs.as_ptr(),
            params: ptr::null(),
            occupancy: ptr::null(),
            names: names.0.as_ptr(),
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

const NO_IMPORTS: ImportTable = ImportTable {
    count: 0,
    symbols: ptr::null(),
};

/// The library `kernels`.
pub(crate) unsafe extern "C" fn query(
    max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    static HEADER: Table<LibraryHeader> = Table(header(c"kernels".as_ptr()));
    static ENTRIES: [Option<DispatchFn>; 8] = [
        Some(count),
        Some(fail_at),
        Some(record),
        Some(scratch),
        Some(multiply),
        Some(nothing),
        Some(append),
        Some(spin),
    ];
    const NONE: DispatchFlags = DispatchFlags::NONE;
    static ATTRS: [DispatchAttrs; 8] = [
        attrs(0, 1, 0, NONE),
        attrs(4, 1, 0, NONE),
        attrs(2, 1, 0, NONE),
        attrs(0, 1, 3, NONE),
        attrs(0, 2, 0, NONE),
        attrs(0, 3, 0, NONE),
        attrs(0, 1, 0, DispatchFlags::SEQUENTIAL),
        attrs(0, 1, 0, NONE),
    ];
    static NAMES: Table<&[*const c_char]> = Table(&[
        c"count".as_ptr(),
        c"fail_at".as_ptr(),
        c"record".as_ptr(),
        c"scratch".as_ptr(),
        c"multiply".as_ptr(),
        c"nothing".as_ptr(),
        c"append".as_ptr(),
        c"spin".as_ptr(),
    ]);
    static LIBRARY: Table<Library> = library(&HEADER, NO_IMPORTS, &ENTRIES, &ATTRS, &NAMES);
    answer(max_version, &LIBRARY)
}

/// The library `importer`, which needs `test_add` and would like `test_missing`.
pub(crate) unsafe extern "C" fn query_importer(
    max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    static HEADER: Table<LibraryHeader> = Table(header(c"importer".as_ptr()));
    static IMPORTS: Table<[*const c_char; 2]> =
        Table([c"test_add".as_ptr(), c"?test_missing".as_ptr()]);
    static ENTRIES: [Option<DispatchFn>; 2] = [Some(call_import_0), Some(call_import_1)];
    static ATTRS: [DispatchAttrs; 2] = [attrs(0, 1, 0, DispatchFlags::NONE); 2];
    static NAMES: Table<&[*const c_char]> =
        Table(&[c"call_import_0".as_ptr(), c"call_import_1".as_ptr()]);
    static LIBRARY: Table<Library> = library(
        &HEADER,
        ImportTable {
            count: 2,
            symbols: IMPORTS.0.as_ptr(),
        },
        &ENTRIES,
        &ATTRS,
        &NAMES,
    );
    answer(max_version, &LIBRARY)
}

/// The library `other`, with one kernel `count` that has the attributes of the one in `kernels`.
pub(crate) unsafe extern "C" fn query_other(
    max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    static HEADER: Table<LibraryHeader> = Table(header(c"other".as_ptr()));
    static ENTRIES: [Option<DispatchFn>; 1] = [Some(count)];
    static ATTRS: [DispatchAttrs; 1] = [attrs(0, 1, 0, DispatchFlags::NONE)];
    static NAMES: Table<&[*const c_char]> = Table(&[c"count".as_ptr()]);
    static LIBRARY: Table<Library> = library(&HEADER, NO_IMPORTS, &ENTRIES, &ATTRS, &NAMES);
    answer(max_version, &LIBRARY)
}

/// A query that answers for version 4 only.
pub(crate) unsafe extern "C" fn query_version_4(
    max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    static HEADER: Table<LibraryHeader> = Table(LibraryHeader {
        version: 4,
        ..header(c"old".as_ptr())
    });
    static LIBRARY: Table<*const LibraryHeader> = Table(&raw const HEADER.0);
    if max_version == 4 {
        &raw const LIBRARY.0
    } else {
        ptr::null()
    }
}

/// A query that answers for no version.
pub(crate) unsafe extern "C" fn query_nothing(
    _max_version: u32,
    _environment: *const Environment,
) -> *const *const LibraryHeader {
    ptr::null()
}

/// All libraries that can be loaded, for registries.
pub(crate) const ALL: [LibraryQueryFn; 3] = [query, query_importer, query_other];

/// The arguments of a kernel, borrowed.
struct Arguments<'a> {
    environment: &'a Environment,
    dispatch: &'a DispatchState,
    workgroup: &'a WorkgroupState,
}

impl<'a> Arguments<'a> {
    /// # Safety
    ///
    /// The pointers must be those a kernel is given.
    unsafe fn new(
        environment: *const Environment,
        dispatch: *const DispatchState,
        workgroup: *const WorkgroupState,
    ) -> Self {
        // SAFETY: a kernel's environment is valid for the call.
        let environment = unsafe { &*environment };
        // SAFETY: a kernel's dispatch state is valid for the call.
        let dispatch = unsafe { &*dispatch };
        // SAFETY: a kernel's workgroup state is valid for the call.
        let workgroup = unsafe { &*workgroup };
        Self {
            environment,
            dispatch,
            workgroup,
        }
    }

    fn constants(&self) -> &'a [u32] {
        if self.dispatch.constant_count == 0 {
            return &[];
        }
        // SAFETY: the dispatch has that many constants.
        unsafe {
            std::slice::from_raw_parts(self.dispatch.constants, self.dispatch.constant_count.into())
        }
    }

    /// Returns binding `index` as words.
    fn words(&self, index: usize) -> &'a [AtomicU32] {
        assert!(index < self.dispatch.binding_count.into());
        // SAFETY: the index is below the number of bindings.
        let pointer = unsafe { self.dispatch.binding_ptrs.add(index) };
        // SAFETY: as above.
        let pointer = unsafe { pointer.read() };
        // SAFETY: the index is below the number of bindings.
        let length = unsafe { self.dispatch.binding_lengths.add(index) };
        // SAFETY: as above.
        let length = unsafe { length.read() };
        // SAFETY: the binding has that many bytes, at an aligned address.
        unsafe { std::slice::from_raw_parts(pointer.cast(), length / 4) }
    }

    /// Returns the number of this workgroup.
    fn linear_id(&self) -> usize {
        let (dispatch, workgroup) = (self.dispatch, self.workgroup);
        let row = u32::from(workgroup.workgroup_id_z) * dispatch.workgroup_count_y
            + workgroup.workgroup_id_y;
        (row * dispatch.workgroup_count_x + workgroup.workgroup_id_x) as usize
    }
}

fn narrow(value: usize) -> u32 {
    u32::try_from(value).unwrap()
}

macro_rules! kernel {
    ($(#[$doc:meta])* $name:ident, |$arguments:ident| $body:expr) => {
        $(#[$doc])*
        unsafe extern "C" fn $name(
            environment: *const Environment,
            dispatch: *const DispatchState,
            workgroup: *const WorkgroupState,
        ) -> c_int {
            // SAFETY: a dispatcher calls this with the pointers of a kernel.
            let $arguments = unsafe { Arguments::new(environment, dispatch, workgroup) };
            $body
        }
    };
}

kernel! {
    /// Adds one to the word of this workgroup.
    count, |arguments| {
        arguments.words(0)[arguments.linear_id()].fetch_add(1, Ordering::Relaxed);
        0
    }
}

kernel! {
    /// Counts its calls in the first word; returns constant 3 in the workgroup of constants 0 to 2,
    /// and in all workgroups after it in the same row.
    fail_at, |arguments| {
        arguments.words(0)[0].fetch_add(1, Ordering::Relaxed);
        let [x, y, z, code] = *arguments.constants() else { return -1 };
        let id = arguments.workgroup;
        let here = (id.workgroup_id_y, u32::from(id.workgroup_id_z)) == (y, z) && id.workgroup_id_x >= x;
        if here { code.cast_signed() } else { 0 }
    }
}

kernel! {
    /// Writes down what it was given.
    record, |arguments| {
        let Arguments { environment, dispatch, workgroup } = arguments;
        let constants = arguments.constants();
        let binding = arguments.words(0);
        let misaligned = [
            ptr::from_ref(environment).addr(),
            ptr::from_ref(dispatch).addr(),
            ptr::from_ref(workgroup).addr(),
        ].iter().filter(|address| !address.is_multiple_of(16)).count();
        let values = [
            dispatch.workgroup_size_x,
            dispatch.workgroup_size_y,
            dispatch.workgroup_size_z.into(),
            dispatch.constant_count.into(),
            dispatch.workgroup_count_x,
            dispatch.workgroup_count_y,
            dispatch.workgroup_count_z.into(),
            dispatch.max_concurrency.into(),
            dispatch.binding_count.into(),
            constants[0],
            constants[1],
            narrow(binding.len() * 4),
            workgroup.workgroup_id_x,
            workgroup.workgroup_id_y,
            workgroup.workgroup_id_z.into(),
            workgroup.processor_id,
            u32::from(workgroup.local_memory.is_null()),
            workgroup.local_memory_size,
            u32::from(environment.constants.is_null()),
            u32::from(environment.import_thunk.is_none()),
            u32::from(environment.import_funcs.is_null()),
            u32::from(environment.import_contexts.is_null()),
            narrow(misaligned),
        ];
        for (cell, value) in binding.iter().zip(values) {
            cell.store(value, Ordering::Relaxed);
        }
        0
    }
}

kernel! {
    /// Fills its local memory and records the size, the misalignment and the first byte found.
    scratch, |arguments| {
        let workgroup = arguments.workgroup;
        let memory = workgroup.local_memory.cast::<u8>();
        let size = workgroup.local_memory_size;
        // SAFETY: the memory is as large as it says, and nobody else's.
        unsafe { memory.write_bytes(0xAB, size as usize) };
        let words = arguments.words(0);
        words[0].store(size, Ordering::Relaxed);
        words[1].fetch_add(narrow(memory.addr() % 64), Ordering::Relaxed);
        words[2].fetch_add(1, Ordering::Relaxed);
        0
    }
}

kernel! {
    /// Multiplies the first number by itself into the second binding, as `f32`.
    multiply, |arguments| {
        let value = f32::from_bits(arguments.words(0)[0].load(Ordering::Relaxed));
        // Not folded away: the mode of the processor is what is tested.
        let product = std::hint::black_box(value) * std::hint::black_box(1.0);
        arguments.words(1)[0].store(product.to_bits(), Ordering::Relaxed);
        0
    }
}

kernel! {
    /// Does nothing.
    nothing, |_arguments| 0
}

kernel! {
    /// Appends its number: the first word counts. Not fit to run concurrently.
    append, |arguments| {
        let words = arguments.words(0);
        let position = words[0].load(Ordering::Relaxed);
        words[1 + position as usize].store(narrow(arguments.linear_id()), Ordering::Relaxed);
        words[0].store(position + 1, Ordering::Relaxed);
        0
    }
}

kernel! {
    /// Takes some tens of microseconds, and adds one to the word of this workgroup.
    spin, |arguments| {
        for _ in 0..2_000 {
            std::hint::spin_loop();
        }
        arguments.words(0)[arguments.linear_id()].fetch_add(1, Ordering::Relaxed);
        0
    }
}

/// Calls import `index` with the first binding as its parameters.
fn call_import(arguments: &Arguments<'_>, index: usize) -> c_int {
    let environment = arguments.environment;
    // SAFETY: the library has two imports.
    let function = unsafe { environment.import_funcs.add(index) };
    // SAFETY: as above.
    let function = unsafe { function.read() };
    // SAFETY: as above.
    let context = unsafe { environment.import_contexts.add(index) };
    // SAFETY: as above.
    let context = unsafe { context.read() };
    let Some(thunk) = environment.import_thunk else {
        return -1;
    };
    let params = arguments.words(0).as_ptr().cast_mut().cast::<c_void>();
    // SAFETY: the parameters are those of the import, which the test made.
    unsafe { thunk(function, params, context, ptr::null_mut()) }
}

kernel! {
    /// Calls the import it needs.
    call_import_0, |arguments| call_import(&arguments, 0)
}

kernel! {
    /// Calls the import it would like, without looking whether there is one.
    call_import_1, |arguments| call_import(&arguments, 1)
}
