//! Machine code in memory, and the call of it: the crate's one room of `unsafe` code.
//!
//! Pages are written first and executable afterwards, never both.

#![expect(
    unsafe_code,
    reason = "calling code that was just made is one of the design's rooms"
)]

use core::fmt;
use core::sync::atomic::AtomicBool;

use memmap2::{Mmap, MmapMut};

use crate::check::check;
use crate::ir::{Loop, Operation, Width};
use crate::translate::machine_code;
use crate::{CompileError, MAX_BUFFERS, Span};

/// What the code of a loop is: a function of the register file, the addresses and the lengths of the buffers, and the
/// interrupt flag, which returns the code of the exit that it took. [`crate::translate`] makes it so.
pub(crate) type Entry = unsafe extern "C" fn(
    registers: *mut u8,
    addresses: *const *const u8,
    lengths: *const u64,
    interrupt: *const AtomicBool,
) -> u32;

/// A loop as machine code. Threads may share it.
///
/// Invariant: `memory` starts with an `Entry` that accesses at most the first `register_bytes` of the register file, in
/// buffers only elements that lie in their lengths, writes to buffers only where `is_written` says so, and calls nothing.
pub struct CompiledLoop {
    memory: Mmap,
    code_size: usize,
    register_bytes: usize,
    /// For each buffer, whether it is written.
    is_written: Box<[bool]>,
}

impl CompiledLoop {
    /// Compiles a loop.
    ///
    /// # Errors
    /// Fails when the loop is not well-formed, and when its code cannot be made or put into memory.
    pub fn compile(body: &Loop) -> Result<Self, CompileError> {
        check(body)?;
        let code = machine_code(body)?;
        let mut memory = MmapMut::map_anon(code.len()).map_err(CompileError::Memory)?;
        memory[..code.len()].copy_from_slice(&code);
        let memory = memory.make_exec().map_err(CompileError::Memory)?;
        Ok(Self {
            memory,
            code_size: code.len(),
            register_bytes: register_bytes(body),
            is_written: is_written(body),
        })
    }

    /// Runs the loop from its first block until it leaves, and returns the code of the exit. `None` when it cannot be
    /// run with these arguments: the register file is too short, there is another number of buffers, or one that the
    /// loop stores to is not writable. Nothing was changed then.
    ///
    /// A loop may run for ever; setting `interrupt` ends it at the next [`Operation::Poll`].
    #[must_use]
    #[inline]
    pub fn run(
        &self,
        registers: &mut [u8],
        buffers: &[Span<'_>],
        interrupt: &AtomicBool,
    ) -> Option<u32> {
        if registers.len() < self.register_bytes || buffers.len() != self.is_written.len() {
            return None;
        }
        let mut addresses = [core::ptr::null(); MAX_BUFFERS];
        let mut lengths = [0; MAX_BUFFERS];
        for (index, (span, is_written)) in buffers.iter().zip(&self.is_written).enumerate() {
            if *is_written && !span.is_writable() {
                return None;
            }
            addresses[index] = span.data();
            lengths[index] = span.length() as u64;
        }
        let start = self.memory.as_ptr();
        // SAFETY: `memory` starts with an `Entry` (the type's invariant), is executable, and lives as long as `self`.
        let entry = unsafe { core::mem::transmute::<*const u8, Entry>(start) };
        // SAFETY: the code accesses what the type's invariant says: registers that are there, as was just checked, and
        // are borrowed mutably; elements within the lengths of spans, which are valid for the whole call, and writes
        // only to those that may be written. Plain accesses of machine code to shared bytes are what relaxed atomic
        // accesses compile to. The flag is only read.
        let code = unsafe {
            entry(
                registers.as_mut_ptr(),
                addresses.as_ptr(),
                lengths.as_ptr(),
                interrupt,
            )
        };
        Some(code)
    }

    /// Returns the size of the code in bytes.
    #[must_use]
    pub fn code_size(&self) -> usize {
        self.code_size
    }
}

impl fmt::Debug for CompiledLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompiledLoop")
            .field("code_size", &self.code_size)
            .field("register_bytes", &self.register_bytes)
            .field("is_written", &self.is_written)
            .finish_non_exhaustive()
    }
}

/// Returns the end of the last place in the register file that the loop names.
fn register_bytes(body: &Loop) -> usize {
    let stores = body.exits.iter().flat_map(|exit| &exit.stores);
    let ends = body.loads.iter().chain(stores).map(|transfer| {
        let size = match body.variables[transfer.variable.0 as usize] {
            Width::Word => 4,
            Width::Pair => 8,
        };
        transfer.offset as usize + size
    });
    ends.max().unwrap_or(0)
}

/// Returns for each buffer whether the loop stores to it.
fn is_written(body: &Loop) -> Box<[bool]> {
    let mut is_written = vec![false; body.buffer_count as usize];
    let operations = body.blocks.iter().flat_map(|block| &block.operations);
    for operation in operations {
        if let Operation::Store { buffer, .. } = operation {
            is_written[buffer.0 as usize] = true;
        }
    }
    is_written.into()
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use crate::tests::{compile, straight};

    #[test]
    fn the_pages_of_a_loop_are_executable_and_not_writable() {
        let Some(code) = compile(&straight(Vec::new())) else {
            return;
        };
        let address = code.memory.as_ptr().addr();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mut permissions = maps.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let ends = [from, to].map(|end| usize::from_str_radix(end, 16).unwrap());
            (ends[0]..ends[1]).contains(&address).then_some(&rest[..3])
        });
        assert_eq!(permissions.next(), Some("r-x"));
    }
}
