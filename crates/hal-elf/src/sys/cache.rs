//! Making written code visible to instruction fetch.
//!
//! On x86 the processor keeps instruction fetch coherent with stores. Elsewhere a store to memory
//! may stay in a data cache, and stale bytes in an instruction cache, until told otherwise. On a
//! processor without an implementation here no image can be loaded; see [`IS_SUPPORTED`].

use std::ptr::NonNull;

/// Whether [`synchronize`] does its job on this host.
pub(super) const IS_SUPPORTED: bool = cfg!(any(
    target_arch = "x86_64",
    target_arch = "x86",
    target_arch = "aarch64",
    all(
        target_os = "linux",
        any(target_arch = "riscv64", target_arch = "riscv32")
    ),
));

/// Makes the code in `byte_length` bytes at `start` visible to instruction fetch on every processor.
/// Threads see it once they learn the address through ordinary synchronization.
///
/// # Safety
///
/// The bytes must be mapped and readable.
#[cfg(not(any(
    target_arch = "aarch64",
    all(
        target_os = "linux",
        any(target_arch = "riscv64", target_arch = "riscv32")
    ),
)))]
pub(super) unsafe fn synchronize(_start: NonNull<u8>, _byte_length: usize) {}

/// As above, through the system library.
///
/// # Safety
///
/// The bytes must be mapped and readable.
#[cfg(all(target_arch = "aarch64", target_vendor = "apple"))]
pub(super) unsafe fn synchronize(start: NonNull<u8>, byte_length: usize) {
    unsafe extern "C" {
        fn sys_icache_invalidate(start: *mut std::ffi::c_void, byte_length: usize);
    }
    // SAFETY: the caller vouches that the range is mapped; the function changes no memory.
    unsafe { sys_icache_invalidate(start.as_ptr().cast(), byte_length) }
}

/// As above: data cache to the point of unification, then instruction cache, line by line. Arm
/// Architecture Reference Manual, "Cache maintenance operations".
///
/// # Safety
///
/// The bytes must be mapped and readable.
#[cfg(all(target_arch = "aarch64", not(target_vendor = "apple")))]
pub(super) unsafe fn synchronize(start: NonNull<u8>, byte_length: usize) {
    use std::arch::asm;

    let cache_type: usize;
    // SAFETY: reads a register that user code may read.
    unsafe {
        asm!("mrs {}, ctr_el0", out(reg) cache_type, options(nomem, nostack, preserves_flags))
    }
    let data_line = 4usize << (cache_type >> 16 & 0xF);
    let instruction_line = 4usize << (cache_type & 0xF);

    let start = start.addr().get();
    let end = start + byte_length;
    for line in (start & !(data_line - 1)..end).step_by(data_line) {
        // SAFETY: the caller vouches that the line is readable; cleaning it changes no memory.
        unsafe { asm!("dc cvau, {}", in(reg) line, options(nostack, preserves_flags)) }
    }
    // SAFETY: a barrier.
    unsafe { asm!("dsb ish", options(nostack, preserves_flags)) }
    for line in (start & !(instruction_line - 1)..end).step_by(instruction_line) {
        // SAFETY: the caller vouches that the line is readable; dropping it changes no memory.
        unsafe { asm!("ic ivau, {}", in(reg) line, options(nostack, preserves_flags)) }
    }
    // SAFETY: two barriers.
    unsafe { asm!("dsb ish", "isb", options(nostack, preserves_flags)) }
}

/// As above, through `riscv_flush_icache`: user code can only reach its own processor's cache.
///
/// # Safety
///
/// The bytes must be mapped and readable.
#[cfg(all(
    target_os = "linux",
    any(target_arch = "riscv64", target_arch = "riscv32")
))]
pub(super) unsafe fn synchronize(start: NonNull<u8>, byte_length: usize) {
    use std::arch::asm;

    const RISCV_FLUSH_ICACHE: usize = 259;
    const ALL_THREADS: usize = 0;
    let start = start.addr().get();
    // SAFETY: the system call takes any range, changes no memory and clobbers only its result.
    unsafe {
        asm!(
            "ecall",
            in("a7") RISCV_FLUSH_ICACHE,
            inlateout("a0") start => _,
            in("a1") start + byte_length,
            in("a2") ALL_THREADS,
            options(nostack),
        );
    }
}
