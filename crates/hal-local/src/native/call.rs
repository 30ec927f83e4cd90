//! Running workgroups of a dispatch: building the structures a kernel is given, and calling it.
//!
//! Everything that the soundness of the foreign call rests on is checked or built here. Facts:
//! `docs/abi.md`, section 7.

#![expect(unsafe_code, reason = "a kernel is a foreign function")]

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::ptr;

use arrayvec::ArrayVec;
use hal_abi::{DispatchFn, DispatchState, MAX_BINDINGS, WorkgroupState};

use super::denormals::call_flushing;
use super::environment::{Aligned, Environment};
use crate::library::{Export, Library};
use crate::{Dispatch, DispatchError, ExportInfo, Worker};

/// Runs the workgroups of `dispatch` numbered in `tiles` and stops at the first that fails.
///
/// `environment` is that of the executable which `library` belongs to, so its imports are those
/// that the library asked for.
pub(super) fn run(
    library: &Library,
    environment: &Environment,
    dispatch: &Dispatch<'_>,
    tiles: Range<u64>,
    worker: &mut Worker,
) -> Result<(), DispatchError> {
    let export = export_of(library, dispatch)?;
    let info = export.info();
    let attributes = info.attributes();

    let mut binding_ptrs = ArrayVec::<_, MAX_BINDINGS>::new();
    let mut binding_lengths = ArrayVec::<_, MAX_BINDINGS>::new();
    for binding in dispatch.bindings() {
        binding_ptrs.push(binding.as_ptr().cast());
        binding_lengths.push(binding.byte_length());
    }
    let [workgroup_count_x, workgroup_count_y, workgroup_count_z] = dispatch.grid().count();
    let [workgroup_size_x, workgroup_size_y, workgroup_size_z] = attributes.workgroup_size;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "constants and bindings are at most 64, and the workgroup count and size in z 16 bits wide: \
                  `Dispatch` and the attributes' source say so"
    )]
    let dispatch_state = Aligned(DispatchState {
        workgroup_size_x,
        workgroup_size_y,
        workgroup_size_z: workgroup_size_z as u16,
        constant_count: dispatch.constants().len() as u16,
        workgroup_count_x,
        workgroup_count_y,
        workgroup_count_z: workgroup_count_z as u16,
        max_concurrency: worker.max_concurrency(),
        binding_count: binding_ptrs.len() as u8,
        constants: dispatch.constants().as_ptr(),
        binding_ptrs: binding_ptrs.as_ptr(),
        binding_lengths: binding_lengths.as_ptr(),
    });

    let processor_id = worker.id();
    let local_memory = match attributes.local_memory_byte_length {
        0 => ptr::null_mut(),
        _ => local_memory(info, worker)?,
    };
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the ABI counts 16 bits of pages of 4096 bytes"
    )]
    let local_memory_size = attributes.local_memory_byte_length as u32;
    let mut workgroup_state = Aligned(WorkgroupState {
        workgroup_id_x: 0,
        workgroup_id_y: 0,
        workgroup_id_z: 0,
        reserved: 0,
        processor_id,
        local_memory,
        local_memory_size,
    });

    let kernel = Kernel {
        entry: export.entry(),
        environment,
        dispatch_state: &dispatch_state,
    };
    let is_first_of_one = tiles.start == 0 && tiles.end == 1;
    let outcome = if worker.denormals().are_flushed() {
        walk_flushing(&kernel, dispatch, tiles, &mut workgroup_state)
    } else if is_first_of_one && dispatch.grid().total() == 1 {
        // The walk of one workgroup, which is what small dispatches are.
        match kernel.call(&workgroup_state) {
            0 => Ok(()),
            code => Err(Failure {
                workgroup_id: [0; 3],
                code,
            }),
        }
    } else {
        walk_plain(&kernel, dispatch, tiles, &mut workgroup_state)
    };
    outcome.map_err(|Failure { workgroup_id, code }| {
        DispatchError::kernel_failed(info, workgroup_id, code)
    })
}

/// The workgroup whose kernel failed, and what the kernel returned.
struct Failure {
    workgroup_id: [u32; 3],
    code: c_int,
}

/// Calls `call` for each workgroup until one fails.
#[inline(always)]
fn walk(
    dispatch: &Dispatch<'_>,
    tiles: Range<u64>,
    workgroup_state: &mut Aligned<WorkgroupState>,
    call: impl Fn(&Aligned<WorkgroupState>) -> c_int,
) -> Result<(), Failure> {
    dispatch.grid().try_for_each_row(tiles, |xs, y, z| {
        workgroup_state.0.workgroup_id_y = y;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the count in z is 16 bits wide"
        )]
        let narrow_z = z as u16;
        workgroup_state.0.workgroup_id_z = narrow_z;
        for x in xs {
            workgroup_state.0.workgroup_id_x = x;
            let code = call(workgroup_state);
            if code != 0 {
                return Err(Failure {
                    workgroup_id: [x, y, z],
                    code,
                });
            }
        }
        Ok(())
    })
}

/// As [`walk`] with [`Kernel::call`]. Out of line, to keep the dispatch of one workgroup small.
#[inline(never)]
fn walk_plain(
    kernel: &Kernel<'_>,
    dispatch: &Dispatch<'_>,
    tiles: Range<u64>,
    workgroup_state: &mut Aligned<WorkgroupState>,
) -> Result<(), Failure> {
    walk(dispatch, tiles, workgroup_state, |workgroup_state| {
        kernel.call(workgroup_state)
    })
}

/// As [`walk`] with [`Kernel::call_flushing`].
#[inline(never)]
fn walk_flushing(
    kernel: &Kernel<'_>,
    dispatch: &Dispatch<'_>,
    tiles: Range<u64>,
    workgroup_state: &mut Aligned<WorkgroupState>,
) -> Result<(), Failure> {
    walk(dispatch, tiles, workgroup_state, |workgroup_state| {
        kernel.call_flushing(workgroup_state)
    })
}

/// Returns the scratch memory of a function that needs some.
#[cold]
fn local_memory(info: &ExportInfo, worker: &mut Worker) -> Result<*mut c_void, DispatchError> {
    match worker.local_memory(info.attributes().local_memory_byte_length) {
        Ok(memory) => Ok(memory.as_mut_ptr().cast()),
        Err(_) => Err(DispatchError::local_memory(info)),
    }
}

/// Returns the function of `library` that `dispatch` was made for.
#[inline]
fn export_of<'a>(
    library: &'a Library,
    dispatch: &Dispatch<'_>,
) -> Result<&'a Export, DispatchError> {
    let ordinal = usize::try_from(dispatch.ordinal()).ok();
    match ordinal.and_then(|ordinal| library.exports().get(ordinal)) {
        // The dispatch was checked against one particular description. If that is the one of our
        // function, by address, then the dispatch fits it.
        Some(export) if ptr::eq(export.info(), dispatch.export()) => Ok(export),
        _ => Err(DispatchError::other_executable(dispatch.export())),
    }
}

/// A kernel and what all workgroups of a dispatch share.
///
/// Invariant: `entry` belongs to a library whose code is mapped, `environment` is the library's, and
/// `dispatch_state` was built from a dispatch made for `entry` and points at memory that outlives
/// `'a`.
struct Kernel<'a> {
    entry: DispatchFn,
    environment: &'a Environment,
    dispatch_state: &'a Aligned<DispatchState>,
}

impl Kernel<'_> {
    /// Runs one workgroup and returns what the kernel did.
    #[inline(always)]
    fn call(&self, workgroup_state: &Aligned<WorkgroupState>) -> c_int {
        let environment = self.environment.as_ptr();
        let dispatch_state = &raw const self.dispatch_state.0;
        let workgroup_state = &raw const workgroup_state.0;
        // SAFETY: by the type's invariant the kernel's code is mapped and the structures are what it
        // expects: the dispatch fits the kernel, and all three are aligned to 64 bytes and borrowed
        // for the call. That a kernel keeps to its ABI is what `Trust` promised.
        unsafe { (self.entry)(environment, dispatch_state, workgroup_state) }
    }

    /// As [`Kernel::call`], with denormal numbers flushed to zero.
    #[inline]
    fn call_flushing(&self, workgroup_state: &Aligned<WorkgroupState>) -> c_int {
        let environment = self.environment.as_ptr();
        let dispatch_state = &raw const self.dispatch_state.0;
        let workgroup_state = &raw const workgroup_state.0;
        // SAFETY: as in `call`.
        unsafe { call_flushing(self.entry, environment, dispatch_state, workgroup_state) }
    }
}
