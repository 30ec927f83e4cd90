//! Running workgroups of a dispatch: building the structures a kernel is given, and calling it.
//!
//! Everything that the soundness of running a dispatch rests on is checked or built here; `site` repeats dispatches with what
//! was built here. Facts: `docs/abi.md`, section 7.

#![expect(unsafe_code, reason = "a kernel is a foreign function")]

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ops::Range;
use std::ptr;

use hal_abi::{DispatchFn, DispatchState, WorkgroupState};

use super::denormals::call_flushing;
use super::environment::{Aligned, Environment};
use crate::binding::KernelBindings;
use crate::library::Library;
use crate::{Dispatch, DispatchError, Worker};

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
    let Some(entry) = library.kernel(dispatch.export()) else {
        return Err(DispatchError::other_executable(dispatch.export()));
    };
    let byte_length = dispatch.export().attributes().local_memory_byte_length;
    let local_memory = match byte_length {
        0 => ptr::null_mut(),
        _ => match worker.local_memory(byte_length) {
            Ok(memory) => memory.as_mut_ptr().cast(),
            Err(_) => return Err(DispatchError::local_memory(dispatch.export())),
        },
    };
    let mut memory = MaybeUninit::uninit();
    let bindings = dispatch.given_bindings().for_kernel(&mut memory);
    let kernel = Kernel {
        entry,
        environment,
        dispatch_state: &dispatch_state(dispatch, bindings, worker),
    };
    let mut state = workgroup_state(worker, local_memory, byte_length);
    let outcome = if worker.denormals().are_flushed() {
        walk(dispatch, tiles, &mut state, |state| {
            kernel.call_flushing(state)
        })
    } else {
        walk(dispatch, tiles, &mut state, |state| kernel.call(state))
    };
    outcome.map_err(|Failure { workgroup_id, code }| {
        DispatchError::kernel_failed(dispatch.export(), workgroup_id, code)
    })
}

/// Returns what all workgroups of a dispatch share.
///
/// It points at the constants of `dispatch` and at `bindings`, which are its own.
#[expect(
    clippy::cast_possible_truncation,
    reason = "constants and bindings are at most 64, and the workgroup count and size in z 16 bits wide: \
              `Dispatch` and the attributes' source say so"
)]
pub(super) fn dispatch_state(
    dispatch: &Dispatch<'_>,
    bindings: &KernelBindings<'_>,
    worker: &Worker,
) -> Aligned<DispatchState> {
    let [workgroup_count_x, workgroup_count_y, workgroup_count_z] = dispatch.grid().count();
    let [workgroup_size_x, workgroup_size_y, workgroup_size_z] =
        dispatch.export().attributes().workgroup_size;
    Aligned(DispatchState {
        workgroup_size_x,
        workgroup_size_y,
        workgroup_size_z: workgroup_size_z as u16,
        constant_count: dispatch.constants().len() as u16,
        workgroup_count_x,
        workgroup_count_y,
        workgroup_count_z: workgroup_count_z as u16,
        max_concurrency: worker.max_concurrency(),
        binding_count: bindings.count() as u8,
        constants: dispatch.constants().as_ptr(),
        binding_ptrs: bindings.addresses(),
        binding_lengths: bindings.lengths(),
    })
}

/// Returns what the first workgroup has to itself.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the ABI counts 16 bits of pages of 4096 bytes"
)]
pub(super) fn workgroup_state(
    worker: &Worker,
    local_memory: *mut c_void,
    local_memory_size: usize,
) -> Aligned<WorkgroupState> {
    Aligned(WorkgroupState {
        workgroup_id_x: 0,
        workgroup_id_y: 0,
        workgroup_id_z: 0,
        reserved: 0,
        processor_id: worker.id(),
        local_memory,
        local_memory_size: local_memory_size as u32,
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
        // expects: the dispatch fits the kernel, and all three are aligned to 16 bytes and borrowed
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
