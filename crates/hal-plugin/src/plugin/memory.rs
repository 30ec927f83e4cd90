//! The allocator offered to plugins, and the account of what each plugin holds.
//!
//! A block is preceded by one unit that remembers its length, so that freeing needs nothing but the
//! address:
//!
//! ```text
//! | byte_length (usize) | padding to 16 | the block: byte_length bytes, aligned to 16 |
//! ```

use std::alloc::Layout;
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hal_abi::{AllocParams, Allocator, AllocatorCommand, Status, StatusCode};

/// The alignment of every block, and the size of the unit in front of it.
const UNIT: usize = 16;

/// What a plugin holds of the host's memory.
///
/// A cheap handle that outlives the plugin: after `unload` the count of a plugin that cleans up is
/// zero. Counting never blocks and never fails.
#[derive(Clone, Debug, Default)]
pub struct PluginMemory(Arc<Account>);

#[derive(Debug, Default)]
struct Account {
    live_bytes: AtomicUsize,
    live_blocks: AtomicUsize,
}

impl PluginMemory {
    /// Returns the number of bytes the plugin has allocated and not freed, as it asked for them.
    #[must_use]
    pub fn live_bytes(&self) -> usize {
        self.0.live_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of blocks the plugin has allocated and not freed.
    #[must_use]
    pub fn live_blocks(&self) -> usize {
        self.0.live_blocks.load(Ordering::Relaxed)
    }

    /// Returns the allocator that keeps this account.
    ///
    /// It may be used as long as this account, or a clone of it, lives.
    pub(crate) fn allocator(&self) -> Allocator {
        Allocator {
            self_: Arc::as_ptr(&self.0).cast_mut().cast(),
            ctl: Some(control),
        }
    }
}

impl Account {
    fn add(&self, byte_length: usize) {
        self.live_bytes.fetch_add(byte_length, Ordering::Relaxed);
        self.live_blocks.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self, byte_length: usize) {
        self.live_bytes.fetch_sub(byte_length, Ordering::Relaxed);
        self.live_blocks.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The control function (`docs/abi.md`, section 3). Errors are bare codes.
///
/// # Safety
///
/// * `account` is NULL or what [`PluginMemory::allocator`] handed out, and the account lives.
/// * `params` is NULL or points at [`AllocParams`]; it is not read by FREE.
/// * `inout` is NULL or points at a pointer, which for REALLOC and FREE is NULL or a block from
///   this function that has not been freed.
unsafe extern "C" fn control(
    account: *mut c_void,
    command: AllocatorCommand,
    params: *const c_void,
    inout: *mut *mut c_void,
) -> Status {
    // SAFETY: NULL or a living account, by this function's contract.
    let account = unsafe { account.cast::<Account>().as_ref() };
    // SAFETY: NULL or a pointer that the caller lent us, by this function's contract.
    let block = unsafe { inout.as_mut() };
    let (Some(account), Some(block)) = (account, block) else {
        return Status::from_code(StatusCode::INVALID_ARGUMENT);
    };
    let result = match command {
        // SAFETY: `params` is NULL or points at parameters, by this function's contract.
        AllocatorCommand::MALLOC => unsafe { byte_length(params) }
            .and_then(|byte_length| allocate(account, byte_length, Contents::Any)),
        // SAFETY: as above.
        AllocatorCommand::CALLOC => unsafe { byte_length(params) }
            .and_then(|byte_length| allocate(account, byte_length, Contents::Zero)),
        // SAFETY: as above.
        AllocatorCommand::REALLOC => unsafe { byte_length(params) }.and_then(|byte_length| {
            match NonNull::new(*block) {
                None => allocate(account, byte_length, Contents::Any),
                // SAFETY: a living block of ours, by this function's contract.
                Some(old) => unsafe { reallocate(account, old, byte_length) },
            }
        }),
        AllocatorCommand::FREE => {
            if let Some(old) = NonNull::new(*block) {
                // SAFETY: a living block of ours, by this function's contract.
                unsafe { free(account, old) };
            }
            Ok(ptr::null_mut())
        }
        _ => Err(StatusCode::UNIMPLEMENTED),
    };
    match result {
        Ok(new) => {
            *block = new;
            Status::OK
        }
        Err(code) => Status::from_code(code),
    }
}

/// Reads the requested length.
///
/// # Safety
///
/// `params` is NULL or points at [`AllocParams`].
unsafe fn byte_length(params: *const c_void) -> Result<usize, StatusCode> {
    // SAFETY: by this function's contract.
    match unsafe { params.cast::<AllocParams>().as_ref() } {
        None | Some(AllocParams { byte_length: 0 }) => Err(StatusCode::INVALID_ARGUMENT),
        Some(params) => Ok(params.byte_length),
    }
}

/// What a new block holds.
#[derive(Clone, Copy)]
enum Contents {
    Any,
    Zero,
}

/// Returns the layout of a block and its unit.
fn layout(byte_length: usize) -> Result<Layout, StatusCode> {
    byte_length
        .checked_add(UNIT)
        .and_then(|size| Layout::from_size_align(size, UNIT).ok())
        .ok_or(StatusCode::RESOURCE_EXHAUSTED)
}

fn allocate(
    account: &Account,
    byte_length: usize,
    contents: Contents,
) -> Result<*mut c_void, StatusCode> {
    let layout = layout(byte_length)?;
    let unit = match contents {
        // SAFETY: the size is at least `UNIT`, so not zero.
        Contents::Any => unsafe { std::alloc::alloc(layout) },
        // SAFETY: as above.
        Contents::Zero => unsafe { std::alloc::alloc_zeroed(layout) },
    };
    if unit.is_null() {
        return Err(StatusCode::RESOURCE_EXHAUSTED);
    }
    account.add(byte_length);
    // SAFETY: a new allocation of `layout(byte_length)`.
    Ok(unsafe { start_block(unit, byte_length) })
}

/// # Safety
///
/// `block` came from [`allocate`] or [`reallocate`] and was not freed.
unsafe fn reallocate(
    account: &Account,
    block: NonNull<c_void>,
    byte_length: usize,
) -> Result<*mut c_void, StatusCode> {
    let new_layout = layout(byte_length)?;
    // SAFETY: a living block, by this function's contract.
    let (unit, old_length, old_layout) = unsafe { find_unit(block) };
    // SAFETY: `unit` was allocated with `old_layout`; the new size was checked by `layout`.
    let unit = unsafe { std::alloc::realloc(unit, old_layout, new_layout.size()) };
    if unit.is_null() {
        return Err(StatusCode::RESOURCE_EXHAUSTED);
    }
    account.remove(old_length);
    account.add(byte_length);
    // SAFETY: an allocation of `layout(byte_length)`.
    Ok(unsafe { start_block(unit, byte_length) })
}

/// # Safety
///
/// `block` came from [`allocate`] or [`reallocate`] and was not freed.
unsafe fn free(account: &Account, block: NonNull<c_void>) {
    // SAFETY: a living block, by this function's contract.
    let (unit, byte_length, layout) = unsafe { find_unit(block) };
    account.remove(byte_length);
    // SAFETY: `unit` was allocated with `layout`.
    unsafe { std::alloc::dealloc(unit, layout) };
}

/// Writes the length into the unit and returns the block behind it.
///
/// # Safety
///
/// `unit` is an allocation of `layout(byte_length)`.
unsafe fn start_block(unit: *mut u8, byte_length: usize) -> *mut c_void {
    // SAFETY: the unit is `UNIT` bytes, aligned to `UNIT`, and ours.
    unsafe { unit.cast::<usize>().write(byte_length) };
    // SAFETY: the allocation is longer than `UNIT`.
    unsafe { unit.add(UNIT) }.cast()
}

/// Returns the unit in front of a block, the block's length, and the layout of both.
///
/// # Safety
///
/// `block` came from [`start_block`] and is still allocated.
unsafe fn find_unit(block: NonNull<c_void>) -> (*mut u8, usize, Layout) {
    // SAFETY: a unit is in front of each block.
    let unit = unsafe { block.as_ptr().cast::<u8>().sub(UNIT) };
    // SAFETY: `start_block` wrote the length there.
    let byte_length = unsafe { unit.cast::<usize>().read() };
    // SAFETY: `layout` accepted this length when the block was allocated.
    let layout = unsafe { Layout::from_size_align_unchecked(byte_length + UNIT, UNIT) };
    (unit, byte_length, layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls the control function as a plugin would.
    fn call(
        memory: &PluginMemory,
        command: AllocatorCommand,
        byte_length: usize,
        block: &mut *mut c_void,
    ) -> Status {
        let allocator = memory.allocator();
        let params = AllocParams { byte_length };
        // SAFETY: the account lives, the pointers are to locals, and tests pass blocks they own.
        unsafe {
            allocator.ctl.unwrap()(allocator.self_, command, (&raw const params).cast(), block)
        }
    }

    #[track_caller]
    fn check_code(status: Status, code: StatusCode) {
        assert_eq!(status, Status::from_code(code));
    }

    #[test]
    fn blocks_are_aligned_to_16_bytes_and_counted() {
        let memory = PluginMemory::default();
        let mut blocks = Vec::new();
        for byte_length in [1, 15, 16, 17, 4096, 1 << 20] {
            let mut block = ptr::null_mut();
            let status = call(&memory, AllocatorCommand::MALLOC, byte_length, &mut block);
            assert!(status.is_ok());
            assert_eq!(block.addr() % 16, 0);
            blocks.push(block);
        }
        assert_eq!(memory.live_blocks(), 6);
        assert_eq!(memory.live_bytes(), 1 + 15 + 16 + 17 + 4096 + (1 << 20));
        for mut block in blocks {
            assert!(call(&memory, AllocatorCommand::FREE, 0, &mut block).is_ok());
            assert!(block.is_null(), "FREE writes NULL back");
        }
        assert_eq!((memory.live_bytes(), memory.live_blocks()), (0, 0));
    }

    #[test]
    fn calloc_gives_zeros() {
        let memory = PluginMemory::default();
        let mut block = ptr::null_mut();
        assert!(call(&memory, AllocatorCommand::CALLOC, 1000, &mut block).is_ok());
        // SAFETY: a living block of 1000 bytes.
        let bytes = unsafe { std::slice::from_raw_parts(block.cast::<u8>(), 1000) };
        assert!(bytes.iter().all(|&byte| byte == 0));
        assert!(call(&memory, AllocatorCommand::FREE, 0, &mut block).is_ok());
    }

    #[test]
    fn realloc_of_null_allocates_and_keeps_contents_when_it_grows_and_shrinks() {
        let memory = PluginMemory::default();
        let mut block = ptr::null_mut();
        assert!(call(&memory, AllocatorCommand::REALLOC, 4, &mut block).is_ok());
        // SAFETY: a living block of 4 bytes.
        unsafe { block.cast::<u32>().write(0x1234_5678) };
        for byte_length in [100_000, 5, 4] {
            assert!(call(&memory, AllocatorCommand::REALLOC, byte_length, &mut block).is_ok());
            assert_eq!(
                (memory.live_bytes(), memory.live_blocks()),
                (byte_length, 1)
            );
            assert_eq!(block.addr() % 16, 0);
            // SAFETY: a living block of at least 4 bytes.
            assert_eq!(unsafe { block.cast::<u32>().read() }, 0x1234_5678);
        }
        assert!(call(&memory, AllocatorCommand::FREE, 0, &mut block).is_ok());
        assert_eq!(memory.live_bytes(), 0);
    }

    #[test]
    fn a_length_of_zero_is_an_invalid_argument_and_leaves_the_block_alone() {
        let memory = PluginMemory::default();
        for command in [
            AllocatorCommand::MALLOC,
            AllocatorCommand::CALLOC,
            AllocatorCommand::REALLOC,
        ] {
            let mut block = ptr::null_mut();
            let status = call(&memory, command, 0, &mut block);
            check_code(status, StatusCode::INVALID_ARGUMENT);
            assert!(block.is_null());
        }
    }

    #[test]
    fn a_huge_length_is_resource_exhausted_and_leaves_the_block_alone() {
        let memory = PluginMemory::default();
        let mut block = ptr::null_mut();
        assert!(call(&memory, AllocatorCommand::MALLOC, 8, &mut block).is_ok());
        let before = block;
        for byte_length in [usize::MAX, usize::MAX - 15, usize::MAX / 2, 1 << 62] {
            for command in [
                AllocatorCommand::MALLOC,
                AllocatorCommand::CALLOC,
                AllocatorCommand::REALLOC,
            ] {
                let status = call(&memory, command, byte_length, &mut block);
                check_code(status, StatusCode::RESOURCE_EXHAUSTED);
                assert_eq!(block, before);
            }
        }
        assert_eq!((memory.live_bytes(), memory.live_blocks()), (8, 1));
        assert!(call(&memory, AllocatorCommand::FREE, 0, &mut block).is_ok());
    }

    #[test]
    fn freeing_null_does_nothing() {
        let memory = PluginMemory::default();
        let mut block = ptr::null_mut();
        assert!(call(&memory, AllocatorCommand::FREE, 0, &mut block).is_ok());
        assert_eq!(memory.live_blocks(), 0);
    }

    #[test]
    fn an_unknown_command_is_unimplemented() {
        let memory = PluginMemory::default();
        for command in [-1, 4, 99, i32::MIN, i32::MAX] {
            let mut block = ptr::null_mut();
            let status = call(&memory, AllocatorCommand(command), 8, &mut block);
            check_code(status, StatusCode::UNIMPLEMENTED);
        }
    }

    #[test]
    fn null_arguments_are_refused() {
        let memory = PluginMemory::default();
        let allocator = memory.allocator();
        let params = AllocParams { byte_length: 8 };
        let params = (&raw const params).cast();
        let mut block = ptr::null_mut();
        let command = AllocatorCommand::MALLOC;
        // SAFETY: NULL is allowed for each of the three.
        check_code(
            unsafe { control(ptr::null_mut(), command, params, &raw mut block) },
            StatusCode::INVALID_ARGUMENT,
        );
        // SAFETY: as above.
        check_code(
            unsafe { control(allocator.self_, command, ptr::null(), &raw mut block) },
            StatusCode::INVALID_ARGUMENT,
        );
        // SAFETY: as above.
        check_code(
            unsafe { control(allocator.self_, command, params, ptr::null_mut()) },
            StatusCode::INVALID_ARGUMENT,
        );
    }
}
