//! How the segments of a file lie in memory: the span, its pages and their protection.
//!
//! A layout is plain numbers for one page size; it maps nothing. The rule to know: a page is never
//! both writable and executable, and a file that needs such a page has no layout.
//! Facts: `docs/abi.md`, section 10.2.

use core::fmt;
use core::ops::Range;

use crate::error::ElfError;
use crate::segment::{Segment, SegmentKind};

/// How many bytes of memory an image may take for each byte of its file, on top of
/// [`MAX_EXTRA_IMAGE_BYTES`].
pub const MAX_IMAGE_BYTES_PER_FILE_BYTE: usize = 16;

/// How many bytes of memory even the smallest file may ask for: room for large zero-filled data.
pub const MAX_EXTRA_IMAGE_BYTES: usize = 256 << 20;

/// The largest alignment that an image may ask for, in bytes.
pub const MAX_IMAGE_ALIGNMENT: u64 = 16 << 20;

/// What may be done with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protection {
    /// Nothing: a gap between segments.
    None,
    /// Reading.
    Read,
    /// Reading and writing.
    ReadWrite,
    /// Reading and executing.
    ReadExecute,
}

impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "---",
            Self::Read => "r--",
            Self::ReadWrite => "rw-",
            Self::ReadExecute => "r-x",
        })
    }
}

/// Whole pages with one protection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageRun {
    /// The bytes of the image, from its start.
    pub range: Range<usize>,
    /// What may be done with them.
    pub protection: Protection,
}

/// The memory image of a file for one page size.
///
/// Invariant: `segments` are sorted by address, not empty, and share no byte; `runs` cover the image
/// without gaps, in order.
#[derive(Clone, Debug)]
pub(crate) struct ImageLayout {
    start: u64,
    byte_length: usize,
    alignment: usize,
    segments: Vec<Segment>,
    runs: Vec<PageRun>,
}

impl ImageLayout {
    /// Lays out the loadable segments among `segments`.
    ///
    /// # Panics
    ///
    /// Panics if `page_size` is not a power of two.
    pub(crate) fn new(
        segments: &[Segment],
        file_length: usize,
        page_size: usize,
    ) -> Result<Self, ElfError> {
        assert!(page_size.is_power_of_two(), "a page size is a power of two");
        let loaded = sorted_loadable(segments)?;
        let (Some(first), Some(last)) = (loaded.first(), loaded.last()) else {
            return Err(ElfError::NoLoadableSegment);
        };
        let page = page_size as u64;
        let start = floor(first.address, page);
        let limit = file_length
            .saturating_mul(MAX_IMAGE_BYTES_PER_FILE_BYTE)
            .saturating_add(MAX_EXTRA_IMAGE_BYTES);
        let too_large = ElfError::ImageTooLarge {
            start,
            end: last.end(),
            limit,
        };
        let byte_length = (last.end() - start)
            .checked_next_multiple_of(page)
            .and_then(|length| usize::try_from(length).ok())
            .filter(|&length| length <= limit)
            .ok_or(too_large)?;
        let alignment = alignment(segments, page_size)?;
        let relro = segments
            .iter()
            .find(|segment| segment.kind == SegmentKind::GNU_RELRO);
        let relro = relro.map_or(0..0, |segment| segment.address..segment.end());
        let runs = page_runs(&loaded, &relro, start, page)?;
        Ok(Self {
            start,
            byte_length,
            alignment,
            segments: loaded,
            runs,
        })
    }

    /// Returns the address, in the file's own numbering, of the first byte: a page boundary.
    pub(crate) const fn start(&self) -> u64 {
        self.start
    }

    /// Returns the address of the first byte past the image, in the file's own numbering.
    pub(crate) const fn end(&self) -> u64 {
        self.start.saturating_add(self.byte_length as u64)
    }

    /// Returns the bytes of memory the image takes: whole pages.
    pub(crate) const fn byte_length(&self) -> usize {
        self.byte_length
    }

    /// Returns the alignment for the image: where it runs must differ from [`Self::start`] by a
    /// multiple of this.
    pub(crate) const fn alignment(&self) -> usize {
        self.alignment
    }

    /// Returns the loadable segments that take memory, sorted by address.
    pub(crate) fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns the protection of every page.
    pub(crate) fn runs(&self) -> &[PageRun] {
        &self.runs
    }

    /// Returns where in the image the `byte_length` bytes at `address` are, `None` unless all of
    /// them belong to one segment.
    pub(crate) fn memory_range(&self, address: u64, byte_length: u64) -> Option<Range<usize>> {
        let segment = self.segment_at(address)?;
        let end = address
            .checked_add(byte_length)
            .filter(|&end| end <= segment.end())?;
        let offset = |address: u64| usize::try_from(address - self.start).ok();
        Some(offset(address)?..offset(end)?)
    }

    /// Returns whether the byte at `address` belongs to an executable segment.
    pub(crate) fn is_executable(&self, address: u64) -> bool {
        self.segment_at(address)
            .is_some_and(|segment| segment.flags.is_executable())
    }

    fn segment_at(&self, address: u64) -> Option<&Segment> {
        let after = self
            .segments
            .partition_point(|segment| segment.address <= address);
        self.segments[..after]
            .last()
            .filter(|segment| address < segment.end())
    }
}

fn floor(address: u64, page: u64) -> u64 {
    address & !(page - 1)
}

/// The loadable segments that take memory, sorted by address; an error if two share a byte.
fn sorted_loadable(segments: &[Segment]) -> Result<Vec<Segment>, ElfError> {
    let mut loaded: Vec<Segment> = segments
        .iter()
        .filter(|segment| segment.kind == SegmentKind::LOAD && segment.memory_size > 0)
        .copied()
        .collect();
    loaded.sort_by_key(|segment| segment.address);
    match loaded
        .windows(2)
        .find(|pair| pair[1].address < pair[0].end())
    {
        None => Ok(loaded),
        Some(pair) => Err(ElfError::SegmentsOverlap {
            first: pair[0].address,
            second: pair[1].address,
        }),
    }
}

/// The largest alignment a loadable segment asks for, at least a page.
fn alignment(segments: &[Segment], page_size: usize) -> Result<usize, ElfError> {
    let loadable = segments
        .iter()
        .enumerate()
        .filter(|(_, segment)| segment.kind == SegmentKind::LOAD && segment.memory_size > 0);
    let mut largest = page_size;
    for (index, segment) in loadable {
        let alignment = usize::try_from(segment.alignment)
            .ok()
            .filter(|_| segment.alignment <= MAX_IMAGE_ALIGNMENT)
            .ok_or(ElfError::SegmentAlignment {
                index,
                alignment: segment.alignment,
            })?;
        largest = largest.max(alignment);
    }
    Ok(largest)
}

/// The access that some bytes need once the image is relocated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Access {
    read: bool,
    write: bool,
    execute: bool,
}

impl Access {
    /// The access a segment asks for, without the right to write if `relocated_only`. Whatever can
    /// be written or executed can be read as well: hardware rarely separates the two.
    const fn of(segment: &Segment, relocated_only: bool) -> Self {
        let write = segment.flags.is_writable() && !relocated_only;
        let execute = segment.flags.is_executable();
        let read = segment.flags.is_readable() || segment.flags.is_writable() || execute;
        Self {
            read,
            write,
            execute,
        }
    }

    const fn union(self, other: Self) -> Self {
        Self {
            read: self.read || other.read,
            write: self.write || other.write,
            execute: self.execute || other.execute,
        }
    }
}

/// Pages `range`, in addresses, with their access.
#[derive(Clone, Debug)]
struct Pages {
    range: Range<u64>,
    access: Access,
}

/// Computes the protection of every page from the first to the last segment.
///
/// A page that several segments share gets the union of what they need. Bytes inside `relro` need no
/// writing once relocated, so a page stays writable only if a writable byte lies outside it: data
/// that follows on the same page is never locked.
fn page_runs(
    segments: &[Segment],
    relro: &Range<u64>,
    start: u64,
    page: u64,
) -> Result<Vec<PageRun>, ElfError> {
    let mut pages = Vec::with_capacity(2 * segments.len());
    for segment in segments {
        let whole = segment.address..segment.end();
        let locked_start = relro.start.clamp(whole.start, whole.end);
        let locked_end = relro.end.clamp(locked_start, whole.end);
        let parts = [
            (whole.start..locked_start, Access::of(segment, false)),
            (locked_start..locked_end, Access::of(segment, true)),
            (locked_end..whole.end, Access::of(segment, false)),
        ];
        for (bytes, access) in parts.into_iter().filter(|(bytes, _)| !bytes.is_empty()) {
            cover(&mut pages, &bytes, access, page);
        }
    }
    let mut runs: Vec<PageRun> = Vec::with_capacity(pages.len());
    for Pages { range, access } in pages {
        let protection = match access {
            Access {
                write: true,
                execute: true,
                ..
            } => {
                return Err(ElfError::WritableAndExecutable {
                    address: range.start,
                });
            }
            Access { execute: true, .. } => Protection::ReadExecute,
            Access { write: true, .. } => Protection::ReadWrite,
            Access { read: true, .. } => Protection::Read,
            Access { .. } => Protection::None,
        };
        let offset = |address: u64| {
            usize::try_from(address - start).expect("the image length was checked to fit")
        };
        let range = offset(range.start)..offset(range.end);
        match runs.last_mut() {
            Some(last) if last.protection == protection => last.range.end = range.end,
            _ => runs.push(PageRun { range, protection }),
        }
    }
    Ok(runs)
}

/// Adds the pages around `bytes` to `pages`; `bytes` lie after all bytes added before, so the only
/// page that can be there already is the last one.
fn cover(pages: &mut Vec<Pages>, bytes: &Range<u64>, access: Access, page: u64) {
    let mut range = floor(bytes.start, page)..floor(bytes.end - 1, page) + page;
    if let Some(last) = pages.last_mut() {
        if last.range.end > range.start {
            let shared = last.range.end - page..last.range.end;
            let union = last.access.union(access);
            last.range.end = shared.start;
            if last.range.is_empty() {
                pages.pop();
            }
            range.start = shared.end;
            pages.push(Pages {
                range: shared,
                access: union,
            });
        } else if last.range.end < range.start {
            let gap = last.range.end..range.start;
            pages.push(Pages {
                range: gap,
                access: Access::default(),
            });
        }
    }
    if !range.is_empty() {
        pages.push(Pages { range, access });
    }
}
