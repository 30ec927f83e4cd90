//! An allocator that counts what a thread holds, and refuses blocks on request: for tests of how much memory something
//! takes, and of what happens when there is none.
//!
//! A test binary installs [`Watched`] as its global allocator; without that the functions here measure nothing and
//! refuse nothing. All counts are of the calling thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, watched.
#[derive(Debug)]
pub struct Watched;

thread_local! {
    /// Bytes that the thread has taken and not given back. Blocks may be given back by another thread.
    static LIVE: Cell<isize> = const { Cell::new(0) };
    /// The most bytes since the count began.
    static PEAK: Cell<isize> = const { Cell::new(0) };
    /// The largest block that is given out.
    static LARGEST: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Blocks of at least this size are counted by `UNTIL_REFUSAL`.
    static COUNTED: Cell<usize> = const { Cell::new(usize::MAX) };
    /// Counted blocks that are still given out before one is refused; 0 when none is to be.
    static UNTIL_REFUSAL: Cell<usize> = const { Cell::new(0) };
}

/// Returns what `body` returns, and the most bytes that it held at one time.
pub fn peak_of<R>(body: impl FnOnce() -> R) -> (R, usize) {
    let before = LIVE.get();
    PEAK.set(before);
    let result = body();
    let peak = PEAK.get() - before;
    (result, usize::try_from(peak).unwrap_or(0))
}

/// Runs `body` while blocks of more than `largest` bytes are refused.
pub fn with_largest_block<R>(largest: usize, body: impl FnOnce() -> R) -> R {
    let _restored = Restore(&LARGEST, LARGEST.replace(largest));
    body()
}

/// Runs `body` while the `nth` block of at least `size` bytes is refused, counted from 1, and tells whether there was
/// such a block.
pub fn refusing<R>(nth: usize, size: usize, body: impl FnOnce() -> R) -> (R, bool) {
    let _size = Restore(&COUNTED, COUNTED.replace(size));
    let _until = Restore(&UNTIL_REFUSAL, UNTIL_REFUSAL.replace(nth));
    let result = body();
    (result, UNTIL_REFUSAL.get() == 0)
}

/// Puts a value back, also when a panic passes by.
struct Restore(&'static std::thread::LocalKey<Cell<usize>>, usize);

impl Drop for Restore {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Tells whether a block of this size may be given out. A panic gets all that it needs, to say what is wrong.
fn admits(size: usize) -> bool {
    if std::thread::panicking() {
        return true;
    }
    if size > LARGEST.get() {
        return false;
    }
    if size >= COUNTED.get() && UNTIL_REFUSAL.get() > 0 {
        UNTIL_REFUSAL.set(UNTIL_REFUSAL.get() - 1);
        return UNTIL_REFUSAL.get() > 0;
    }
    true
}

fn count(taken: usize, given_back: usize) {
    let live = LIVE.get() + taken.cast_signed() - given_back.cast_signed();
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

// SAFETY: every block comes from the system's allocator and goes back to it with the layout it came with; a refused
// block is NULL, as the trait says. The counters are plain thread-local cells that allocate nothing.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if !admits(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !admits(layout.size()) {
            return std::ptr::null_mut();
        }
        count(layout.size(), 0);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if new_size > layout.size() && !admits(new_size) {
            return std::ptr::null_mut();
        }
        count(new_size, layout.size());
        // SAFETY: the block came from the system's allocator with this layout, and the caller keeps the contract of
        // `realloc`.
        unsafe { System.realloc(block, layout, new_size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}
