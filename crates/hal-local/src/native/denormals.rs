//! What kernels do with denormal floating-point numbers: [`Denormals`].
//!
//! Compilers assume that the floating-point mode never changes under them, so the mode is changed,
//! the kernel called and the mode restored within a single piece of assembly: no Rust code ever
//! runs in another mode.

#![expect(
    unsafe_code,
    reason = "the floating-point mode is set in assembly, around a foreign call"
)]

use std::ffi::c_int;

use hal_abi::{DispatchFn, DispatchState, Environment, WorkgroupState};

/// What native kernels do with denormal numbers (those too small for a full mantissa).
///
/// The default keeps them, as IREE does for inline-dynamic programs. Its asynchronous devices flush
/// them to zero, which is faster on some processors when denormals are frequent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Denormals {
    flushed: bool,
}

impl Denormals {
    /// Denormal numbers are computed with, as IEEE 754 says.
    pub const KEEP: Self = Self { flushed: false };

    /// Returns the mode in which denormal inputs and results count as zero, or `None` on an
    /// architecture where kernels cannot be run in it.
    #[must_use]
    pub const fn flush() -> Option<Self> {
        if cfg!(any(
            all(target_arch = "x86_64", not(windows)),
            target_arch = "aarch64"
        )) {
            return Some(Self { flushed: true });
        }
        None
    }

    /// Returns whether denormal numbers count as zero.
    #[must_use]
    #[inline]
    pub const fn are_flushed(self) -> bool {
        self.flushed
    }
}

/// Calls a kernel with denormal numbers flushed to zero.
///
/// # Safety
///
/// As for a plain call of `entry`, which must not unwind.
#[cfg(all(target_arch = "x86_64", not(windows)))]
pub(super) unsafe fn call_flushing(
    entry: DispatchFn,
    environment: *const Environment,
    dispatch_state: *const DispatchState,
    workgroup_state: *const WorkgroupState,
) -> c_int {
    /// The bits "flush to zero" (15) and "denormals are zero" (6) of MXCSR.
    const FLUSH: u32 = 1 << 15 | 1 << 6;
    let mut kept = 0_u32;
    // SAFETY: stores the 32 bits of MXCSR and changes nothing else.
    unsafe {
        std::arch::asm!(
            "stmxcsr dword ptr [{kept}]",
            kept = in(reg) &raw mut kept,
            options(nostack, preserves_flags),
        );
    }
    let flushing = kept | FLUSH;
    let code: c_int;
    // SAFETY: a call as the System V ABI has it, with all registers declared that it may
    // change; r12 to r14 survive it. MXCSR holds what it held before when the block ends. The
    // caller vouches for the call itself.
    unsafe {
        std::arch::asm!(
            "ldmxcsr dword ptr [r13]",
            "call r14",
            "ldmxcsr dword ptr [r12]",
            in("r12") &raw const kept,
            in("r13") &raw const flushing,
            in("r14") entry,
            in("rdi") environment,
            in("rsi") dispatch_state,
            in("rdx") workgroup_state,
            lateout("eax") code,
            clobber_abi("C"),
        );
    }
    code
}

/// Calls a kernel with denormal numbers flushed to zero.
///
/// # Safety
///
/// As for a plain call of `entry`, which must not unwind.
#[cfg(target_arch = "aarch64")]
pub(super) unsafe fn call_flushing(
    entry: DispatchFn,
    environment: *const Environment,
    dispatch_state: *const DispatchState,
    workgroup_state: *const WorkgroupState,
) -> c_int {
    /// The bit "flush to zero" of FPCR.
    const FLUSH: u64 = 1 << 24;
    let kept: u64;
    // SAFETY: reads FPCR and changes nothing.
    unsafe {
        std::arch::asm!("mrs {kept}, fpcr", kept = out(reg) kept, options(nomem, nostack, preserves_flags));
    }
    let mut code = environment.expose_provenance() as u64;
    // SAFETY: a call as the procedure call standard has it, with all registers declared that it
    // may change; x20 to x22 survive it. FPCR holds what it held before when the block ends.
    // The caller vouches for the call itself.
    unsafe {
        std::arch::asm!(
            "msr fpcr, x21",
            "blr x22",
            "msr fpcr, x20",
            in("x20") kept,
            in("x21") kept | FLUSH,
            in("x22") entry,
            inlateout("x0") code,
            in("x1") dispatch_state,
            in("x2") workgroup_state,
            clobber_abi("C"),
        );
    }
    code as c_int
}

/// Never called: no mode flushes on this architecture.
///
/// # Safety
///
/// None; the signature is that of the other architectures.
#[cfg(not(any(all(target_arch = "x86_64", not(windows)), target_arch = "aarch64")))]
pub(super) unsafe fn call_flushing(
    _entry: DispatchFn,
    _environment: *const Environment,
    _dispatch_state: *const DispatchState,
    _workgroup_state: *const WorkgroupState,
) -> c_int {
    unreachable!("`Denormals::flush` offers no such mode on this architecture")
}
