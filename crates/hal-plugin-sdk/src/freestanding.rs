//! What a plugin without libc must bring: memory functions, and an answer to panics.
//!
//! The compiler calls `memcpy`, `memmove`, `memset`, `memcmp`, `bcmp` and `strlen` on its own
//! account, so a freestanding image must define them. These are small rather than fastest: 16 bytes
//! a step. Each loop has a compiler barrier, because the compiler would otherwise recognize the
//! loop and replace it by a call to the very function it is in.

use core::arch::asm;
use core::ffi::{c_char, c_int};

/// The bytes moved in one step.
const STEP: usize = 16;

/// Stops the compiler from recognizing the loop it is in.
#[inline(always)]
fn keep_loop() {
    // SAFETY: no instruction at all.
    unsafe { asm!("", options(nostack, preserves_flags)) };
}

/// Moves the [`STEP`] bytes at `offset`.
///
/// # Safety
///
/// The bytes are readable from `source` and writable at `destination`.
#[inline(always)]
unsafe fn move_step(destination: *mut u8, source: *const u8, offset: usize) {
    let source = source.wrapping_add(offset).cast::<u128>();
    let destination = destination.wrapping_add(offset).cast::<u128>();
    // SAFETY: the caller gives readable bytes.
    let bytes = unsafe { source.read_unaligned() };
    // SAFETY: the caller gives writable bytes.
    unsafe { destination.write_unaligned(bytes) };
    keep_loop();
}

/// Moves the byte at `offset`.
///
/// # Safety
///
/// The byte is readable from `source` and writable at `destination`.
#[inline(always)]
unsafe fn move_byte(destination: *mut u8, source: *const u8, offset: usize) {
    // SAFETY: the caller gives a readable byte.
    let byte = unsafe { source.wrapping_add(offset).read() };
    // SAFETY: the caller gives a writable byte.
    unsafe { destination.wrapping_add(offset).write(byte) };
    keep_loop();
}

/// C's `memmove`.
///
/// # Safety
///
/// `source` is readable and `destination` writable for `len` bytes.
#[inline(always)]
pub unsafe fn memmove(destination: *mut u8, source: *const u8, len: usize) -> *mut u8 {
    let tail = len % STEP;
    let steps_end = len - tail;
    if destination.addr().wrapping_sub(source.addr()) >= len {
        // The destination does not start inside the source: upwards, no byte is overwritten
        // before it was read. A step reads all of its bytes first.
        let mut offset = 0;
        while offset < steps_end {
            // SAFETY: within `len`, as promised by the caller.
            unsafe { move_step(destination, source, offset) };
            offset += STEP;
        }
        while offset < len {
            // SAFETY: within `len`, as promised by the caller.
            unsafe { move_byte(destination, source, offset) };
            offset += 1;
        }
    } else {
        let mut end = len;
        while end > steps_end {
            end -= 1;
            // SAFETY: within `len`, as promised by the caller.
            unsafe { move_byte(destination, source, end) };
        }
        while end > 0 {
            end -= STEP;
            // SAFETY: within `len`, as promised by the caller.
            unsafe { move_step(destination, source, end) };
        }
    }
    destination
}

/// C's `memset`.
///
/// # Safety
///
/// `destination` is writable for `len` bytes.
#[inline(always)]
pub unsafe fn memset(destination: *mut u8, value: c_int, len: usize) -> *mut u8 {
    // C passes the byte as an int, of which only the low eight bits count.
    let [byte, ..] = value.to_le_bytes();
    let bytes = u128::from_ne_bytes([byte; STEP]);
    let mut offset = 0;
    while offset < len - len % STEP {
        // SAFETY: within `len`, as promised by the caller.
        unsafe {
            destination
                .wrapping_add(offset)
                .cast::<u128>()
                .write_unaligned(bytes);
        }
        keep_loop();
        offset += STEP;
    }
    while offset < len {
        // SAFETY: within `len`, as promised by the caller.
        unsafe { destination.wrapping_add(offset).write(byte) };
        keep_loop();
        offset += 1;
    }
    destination
}

/// C's `memcmp`.
///
/// # Safety
///
/// Both are readable for `len` bytes.
#[inline(always)]
pub unsafe fn memcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
    const WORD: usize = size_of::<u64>();
    if len >= WORD {
        let last = len - WORD;
        let mut offset = 0;
        while offset < last {
            // SAFETY: within `len`, as promised by the caller.
            let order = unsafe { compare_words(left, right, offset) };
            if order != 0 {
                return order;
            }
            keep_loop();
            offset += WORD;
        }
        // The last word reaches back over bytes that are equal, so it decides by those that are
        // left.
        // SAFETY: within `len`, as promised by the caller.
        return unsafe { compare_words(left, right, last) };
    }
    let mut offset = 0;
    while offset < len {
        // SAFETY: within `len`, as promised by the caller.
        let left_byte = unsafe { left.wrapping_add(offset).read() };
        // SAFETY: within `len`, as promised by the caller.
        let right_byte = unsafe { right.wrapping_add(offset).read() };
        if left_byte != right_byte {
            return c_int::from(left_byte) - c_int::from(right_byte);
        }
        keep_loop();
        offset += 1;
    }
    0
}

/// Compares the eight bytes at `offset`, the first of them first.
///
/// # Safety
///
/// The bytes are readable from both.
#[inline(always)]
unsafe fn compare_words(left: *const u8, right: *const u8, offset: usize) -> c_int {
    let left = left.wrapping_add(offset).cast::<u64>();
    let right = right.wrapping_add(offset).cast::<u64>();
    // SAFETY: the caller gives readable bytes.
    let left = unsafe { left.read_unaligned() };
    // SAFETY: the caller gives readable bytes.
    let right = unsafe { right.read_unaligned() };
    if left == right {
        return 0;
    }
    // The first byte in memory decides, so it must be the most significant.
    if u64::from_be(left) < u64::from_be(right) {
        -1
    } else {
        1
    }
}

/// C's `strlen`.
///
/// # Safety
///
/// `string` is NUL-terminated.
#[inline(always)]
pub unsafe fn strlen(string: *const c_char) -> usize {
    let mut len = 0;
    // SAFETY: not past the terminator, by the promise of the caller.
    while unsafe { string.wrapping_add(len).read() } != 0 {
        keep_loop();
        len += 1;
    }
    len
}

/// Makes a `no_std` plugin freestanding: defines the functions that compiled code expects
/// ([`freestanding_symbols!`](crate::freestanding_symbols!)), and a panic handler that proves the
/// absence of panics.
///
/// The handler calls a function that does not exist, `this_plugin_can_panic`. If the optimizer
/// finds every panic unreachable the handler is dropped, and the image links; if not, the linker
/// says so by that name. So an image that links neither aborts nor unwinds. It takes an
/// optimized build, `panic = "abort"`, and the linker flags of `docs/guide/plugins.md`. Write code
/// without hidden panics: iterators and `get` in place of indexing, checked or wrapping arithmetic,
/// no `unwrap`, no formatting.
///
/// A plugin that cannot avoid panics uses
/// [`freestanding_symbols!`](crate::freestanding_symbols!) and a `#[panic_handler]` of its own, which
/// must not return or unwind, and so ends the process or the thread.
///
/// # Examples
///
/// ```text
/// // A standalone image: built with `--no-default-features`.
/// #[cfg(not(feature = "std"))]
/// hal_plugin_sdk::freestanding!();
/// ```
#[macro_export]
macro_rules! freestanding {
    () => {
        $crate::freestanding_symbols!();

        const _: () = {
            #[panic_handler]
            fn panic(_: &::core::panic::PanicInfo<'_>) -> ! {
                unsafe extern "C" {
                    fn this_plugin_can_panic() -> !;
                }
                // SAFETY: never reached in an image that links: no such function exists.
                unsafe { this_plugin_can_panic() }
            }
        };
    };
}

/// Defines the functions that compiled code expects of every environment: those that move, compare
/// and measure memory, and the name of an unwinder's function that is never called.
///
/// See [`freestanding!`](crate::freestanding!).
#[macro_export]
macro_rules! freestanding_symbols {
    () => {
        const _: () = {
            use ::core::ffi::{c_char, c_int};
            use $crate::freestanding;

            /// The precompiled `core` names this function in its unwind tables, which nobody reads.
            #[unsafe(no_mangle)]
            extern "C" fn rust_eh_personality() {}

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
                // SAFETY: the caller's duty is that of `memcpy`, which is stricter.
                unsafe { freestanding::memmove(to, from, len) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memmove(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
                // SAFETY: the caller's duty is the same.
                unsafe { freestanding::memmove(to, from, len) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memset(to: *mut u8, value: c_int, len: usize) -> *mut u8 {
                // SAFETY: the caller's duty is the same.
                unsafe { freestanding::memset(to, value, len) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn memcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
                // SAFETY: the caller's duty is the same.
                unsafe { freestanding::memcmp(left, right, len) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn bcmp(left: *const u8, right: *const u8, len: usize) -> c_int {
                // SAFETY: the caller's duty is the same.
                unsafe { freestanding::memcmp(left, right, len) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn strlen(string: *const c_char) -> usize {
                // SAFETY: the caller's duty is the same.
                unsafe { freestanding::strlen(string) }
            }
        };
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn memmove_agrees_with_copy_within(
            mut bytes in prop::collection::vec(any::<u8>(), 1..200),
            from in 0..200_usize,
            to in 0..200_usize,
        ) {
            let (from, to) = (from % bytes.len(), to % bytes.len());
            let len = bytes.len() - from.max(to);
            let mut expected = bytes.clone();
            expected.copy_within(from..from + len, to);
            let base = bytes.as_mut_ptr();
            // SAFETY: both spans lie within the vector.
            unsafe { memmove(base.wrapping_add(to), base.wrapping_add(from), len) };
            prop_assert_eq!(bytes, expected);
        }

        #[test]
        fn memset_agrees_with_fill(
            mut bytes in prop::collection::vec(any::<u8>(), 1..100),
            start in 0..100_usize,
            value: c_int,
        ) {
            let start = start % bytes.len();
            let mut expected = bytes.clone();
            expected[start..].fill(value.to_le_bytes()[0]);
            let len = bytes.len() - start;
            // SAFETY: the span lies within the vector.
            unsafe { memset(bytes[start..].as_mut_ptr(), value, len) };
            prop_assert_eq!(bytes, expected);
        }

        #[test]
        fn memcmp_agrees_with_slice_order(
            left in prop::collection::vec(0..3_u8, 0..40),
            right in prop::collection::vec(0..3_u8, 0..40),
        ) {
            let len = left.len().min(right.len());
            // SAFETY: both are at least `len` long.
            let order = unsafe { memcmp(left.as_ptr(), right.as_ptr(), len) };
            prop_assert_eq!(order.cmp(&0), left[..len].cmp(&right[..len]));
        }
    }

    #[test]
    fn strlen_stops_at_the_terminator() {
        for string in [c"", c"a", c"iree_uk_mmt4d"] {
            // SAFETY: terminated.
            assert_eq!(unsafe { strlen(string.as_ptr()) }, string.count_bytes());
        }
    }
}
