//! Memory mapping on Unix systems.
//!
//! An image costs one `mmap`, usually two or three `mprotect` and one `munmap`. Memory is written first and made executable afterwards; the two states are two types,
//! so that no Rust reference to the bytes can outlive the first.

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

use super::cache;
use crate::error::ElfError;
use crate::layout::{PageRun, Protection};

/// Returns the bytes in a page of the host.
pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// Zeroed pages that can be written but not executed.
#[derive(Debug)]
pub(crate) struct WritableMapping {
    pages: Pages,
}

impl WritableMapping {
    /// Maps `byte_length` bytes at an address that differs from `start` by a multiple of
    /// `alignment`. `byte_length` is a whole number of pages and not 0, `start` is a page boundary,
    /// `alignment` a power of two and at least a page.
    pub(crate) fn new(byte_length: usize, alignment: usize, start: u64) -> Result<Self, ElfError> {
        if !cache::IS_SUPPORTED {
            return Err(ElfError::UnsupportedHost {
                system: std::env::consts::OS,
                architecture: std::env::consts::ARCH,
            });
        }
        // An address with the right alignment is found inside a range that is larger by so much.
        let surplus = alignment - page_size();
        let mut pages =
            Pages::map(byte_length.saturating_add(surplus)).map_err(|source| ElfError::Map {
                byte_length,
                source,
            })?;
        let misfit = start.wrapping_sub(pages.base.addr().get() as u64) & (alignment as u64 - 1);
        pages.release_head(usize::try_from(misfit).expect("the misfit is below the alignment"));
        pages.release_tail(byte_length);
        Ok(Self { pages })
    }

    /// Returns the address of the first byte.
    pub(crate) fn address(&self) -> u64 {
        // The code of the image makes pointers of numbers that relocation computes from this one,
        // so the provenance of the mapping is exposed.
        self.pages.base.as_ptr().expose_provenance() as u64
    }

    /// Returns the bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: by the invariant of `Pages` the range is mapped, and in this state it is readable,
        // writable and was zeroed by the system. Nothing else refers to it: its address has been
        // given out as a number only and none of its code has run. The borrow of `self` keeps it so.
        unsafe { std::slice::from_raw_parts_mut(self.pages.base.as_ptr(), self.pages.byte_length) }
    }

    /// Gives every run of pages its protection and makes its code visible to the processor.
    ///
    /// Changing a protection costs microseconds, so neighbors that are not plain data first become
    /// read-only together: code between two read-only runs then takes two calls, not three.
    pub(crate) fn protect(self, runs: &[PageRun]) -> Result<Mapping, ElfError> {
        // Plain data stays in the state that all pages are in.
        let is_data = |run: &PageRun| run.protection == Protection::ReadWrite;
        for neighbors in runs.split(is_data) {
            if let [first, .., last] = neighbors {
                let range = first.range.start..last.range.end;
                self.pages.protect(&range, Protection::Read)?;
            }
            for run in neighbors {
                let is_done = run.protection == Protection::Read && neighbors.len() > 1;
                if !is_done {
                    self.pages.protect(&run.range, run.protection)?;
                }
            }
        }
        for run in runs
            .iter()
            .filter(|run| run.protection == Protection::ReadExecute)
        {
            let start = self.pages.at(run.range.start);
            // SAFETY: the loop above made exactly these bytes of the mapping readable.
            unsafe { cache::synchronize(start, run.range.len()) }
        }
        Ok(Mapping { pages: self.pages })
    }
}

/// Pages in their final protection, none of them writable and executable at once.
#[derive(Debug)]
pub(crate) struct Mapping {
    pages: Pages,
}

impl Mapping {
    /// Returns the bytes in the mapping.
    pub(crate) fn byte_length(&self) -> usize {
        self.pages.byte_length
    }

    /// Returns the address of the byte at `offset`.
    ///
    /// # Panics
    ///
    /// Panics if `offset` is not inside the mapping.
    pub(crate) fn at(&self, offset: usize) -> NonNull<c_void> {
        self.pages.at(offset).cast()
    }
}

/// Pages of our own, unmapped when dropped.
///
/// Invariant: the `byte_length` bytes at `base` were mapped by [`Pages::map`], nobody else unmaps or
/// remaps them, and `byte_length` is a whole number of pages.
#[derive(Debug)]
struct Pages {
    base: NonNull<u8>,
    byte_length: usize,
}

// SAFETY: `base` keeps the type from being `Send`. It is the address of a mapping, which belongs to
// the process and to no thread, and this value is its only owner.
unsafe impl Send for Pages {}
// SAFETY: `base` keeps the type from being `Sync`. A shared `Pages` does nothing with it but compute
// addresses and set protections, and the system orders the latter.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps zeroed pages that can be read and written.
    fn map(byte_length: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: with a null address the system chooses where, so no memory in use is affected.
        let mapped = unsafe { mmap_anonymous(null_mut(), byte_length, access, MapFlags::PRIVATE) }?;
        let base = NonNull::new(mapped.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, byte_length })
    }

    /// Unmaps the first `length` bytes, a whole number of pages less than all of them.
    fn release_head(&mut self, length: usize) {
        if length == 0 {
            return;
        }
        let head = self.base;
        self.base = self.at(length);
        self.byte_length -= length;
        // SAFETY: the pages were ours by the invariant, and the two lines above gave them up.
        let result = unsafe { munmap(head.as_ptr().cast(), length) };
        debug_assert!(
            result.is_ok(),
            "unmapping pages of an own mapping cannot fail"
        );
    }

    /// Unmaps everything after the first `length` bytes, a whole number of pages and not 0.
    fn release_tail(&mut self, length: usize) {
        if length == self.byte_length {
            return;
        }
        let tail = self.at(length);
        let tail_length = self.byte_length - length;
        self.byte_length = length;
        // SAFETY: the pages were ours by the invariant, and the line above gave them up.
        let result = unsafe { munmap(tail.as_ptr().cast(), tail_length) };
        debug_assert!(
            result.is_ok(),
            "unmapping pages of an own mapping cannot fail"
        );
    }

    /// Returns the address of the byte at `offset`.
    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(
            offset < self.byte_length,
            "offset {offset:#x} is past the mapping"
        );
        // SAFETY: the offset is inside the mapping, which is one allocation by the invariant.
        unsafe { self.base.add(offset) }
    }

    fn protect(&self, range: &Range<usize>, protection: Protection) -> Result<(), ElfError> {
        assert!(
            range.end <= self.byte_length,
            "the range ends past the mapping"
        );
        let flags = match protection {
            Protection::None => MprotectFlags::empty(),
            Protection::Read => MprotectFlags::READ,
            Protection::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
            Protection::ReadExecute => MprotectFlags::READ | MprotectFlags::EXEC,
        };
        let start = self.at(range.start);
        // SAFETY: the pages are ours by the invariant, and the range was checked to be inside. This
        // is called while a `WritableMapping` is consumed, so no reference to the bytes exists.
        let result = unsafe { mprotect(start.as_ptr().cast(), range.len(), flags) };
        result.map_err(|errno| ElfError::Protect {
            offset: range.start,
            byte_length: range.len(),
            protection,
            source: errno.into(),
        })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: by the invariant these pages are ours alone. Whoever uses an address inside them
        // promised, when the image was loaded, not to do so past this point.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.byte_length) };
        debug_assert!(
            result.is_ok(),
            "unmapping pages of an own mapping cannot fail"
        );
    }
}
