//! Program headers: what they say, what is checked, and how an address becomes file bytes.
//!
//! Every loadable segment is checked as the file is parsed, so that code past this point can add an
//! address and a size without overflow. Whether the segments fit together is `layout`'s concern.

use core::fmt;

use object::endian::Endianness;
use object::read::elf::ProgramHeader;

use crate::error::ElfError;
use crate::machine::Class;

/// A `p_type` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SegmentKind(pub u32);

impl SegmentKind {
    /// Bytes that are part of the image: `PT_LOAD`.
    pub const LOAD: Self = Self(1);
    /// The dynamic section: `PT_DYNAMIC`.
    pub const DYNAMIC: Self = Self(2);
    /// The thread-local storage template: `PT_TLS`.
    pub const TLS: Self = Self(7);
    /// Memory that becomes read-only once relocated: `PT_GNU_RELRO`.
    pub const GNU_RELRO: Self = Self(0x6474_E552);
}

impl fmt::Display for SegmentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0 => "NULL",
            1 => "LOAD",
            2 => "DYNAMIC",
            3 => "INTERP",
            4 => "NOTE",
            6 => "PHDR",
            7 => "TLS",
            0x6474_E550 => "GNU_EH_FRAME",
            0x6474_E551 => "GNU_STACK",
            0x6474_E552 => "GNU_RELRO",
            0x6474_E553 => "GNU_PROPERTY",
            other => return write!(f, "{other:#x}"),
        })
    }
}

/// A `p_flags` value: which access the segment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct SegmentFlags(pub u32);

impl SegmentFlags {
    /// Returns whether the segment asks to be executed: `PF_X`.
    #[must_use]
    pub const fn is_executable(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether the segment asks to be written: `PF_W`.
    #[must_use]
    pub const fn is_writable(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns whether the segment asks to be read: `PF_R`.
    #[must_use]
    pub const fn is_readable(self) -> bool {
        self.0 & 4 != 0
    }
}

impl fmt::Display for SegmentFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |set, letter| if set { letter } else { '-' };
        write!(
            f,
            "{}{}{}",
            letter(self.is_readable(), 'r'),
            letter(self.is_writable(), 'w'),
            letter(self.is_executable(), 'x')
        )
    }
}

/// One program header. All sizes are in bytes, all addresses in the file's own numbering.
///
/// Invariant for kind [`SegmentKind::LOAD`] inside an [`ElfFile`](crate::ElfFile): the file range is
/// inside the file, `file_size <= memory_size`, `address + memory_size` does not overflow the class,
/// `alignment` is 0 or a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// What the segment is for.
    pub kind: SegmentKind,
    /// The access it asks for.
    pub flags: SegmentFlags,
    /// Where its bytes start in the file.
    pub file_offset: u64,
    /// Where it starts in memory.
    pub address: u64,
    /// How many bytes the file holds.
    pub file_size: u64,
    /// How many bytes it takes in memory; those past `file_size` are zero.
    pub memory_size: u64,
    /// The alignment it asks for; 0 and 1 both mean none.
    pub alignment: u64,
}

impl Segment {
    /// Reads one program header, checking it if it is loadable.
    pub(crate) fn read<P>(
        index: usize,
        raw: &P,
        endian: Endianness,
        class: Class,
        file_length: usize,
    ) -> Result<Self, ElfError>
    where
        P: ProgramHeader<Endian = Endianness>,
    {
        let segment = Self {
            kind: SegmentKind(raw.p_type(endian).0),
            flags: SegmentFlags(raw.p_flags(endian).0),
            file_offset: raw.p_offset(endian).into(),
            address: raw.p_vaddr(endian).into(),
            file_size: raw.p_filesz(endian).into(),
            memory_size: raw.p_memsz(endian).into(),
            alignment: raw.p_align(endian).into(),
        };
        if segment.kind == SegmentKind::LOAD {
            segment.check_loadable(index, class, file_length)?;
        }
        Ok(segment)
    }

    fn check_loadable(
        &self,
        index: usize,
        class: Class,
        file_length: usize,
    ) -> Result<(), ElfError> {
        let file_end = self.file_offset.checked_add(self.file_size);
        if file_end.is_none_or(|end| end > file_length as u64) {
            return Err(ElfError::SegmentOutsideFile {
                index,
                offset: self.file_offset,
                byte_length: self.file_size,
                file_length,
            });
        }
        if self.file_size > self.memory_size {
            return Err(ElfError::SegmentFileSize {
                index,
                file_size: self.file_size,
                memory_size: self.memory_size,
            });
        }
        let last_address = self.address.checked_add(self.memory_size);
        if last_address.is_none_or(|end| end > class.max_address()) {
            return Err(ElfError::SegmentAddress {
                index,
                address: self.address,
                memory_size: self.memory_size,
            });
        }
        if self.alignment != 0 && !self.alignment.is_power_of_two() {
            return Err(ElfError::SegmentAlignment {
                index,
                alignment: self.alignment,
            });
        }
        Ok(())
    }

    /// Returns the first address past the segment.
    pub(crate) const fn end(&self) -> u64 {
        self.address.saturating_add(self.memory_size)
    }

    /// Returns the file bytes of a loadable segment.
    pub(crate) fn file_bytes<'a>(&self, file: &'a [u8]) -> &'a [u8] {
        let start = usize::try_from(self.file_offset).ok();
        let length = usize::try_from(self.file_size).ok();
        start
            .zip(length)
            .and_then(|(start, length)| file.get(start..)?.get(..length))
            .expect("`check_loadable` put the range inside the file")
    }
}

/// The bytes that the file holds for the addresses from `address` to the end of the loadable
/// segment around it, `None` when no loadable segment has file bytes there.
pub(crate) fn bytes_from<'a>(
    segments: &[Segment],
    file: &'a [u8],
    address: u64,
) -> Option<&'a [u8]> {
    segments
        .iter()
        .filter(|segment| segment.kind == SegmentKind::LOAD)
        .find_map(|segment| {
            let skip = address.checked_sub(segment.address)?;
            if skip >= segment.file_size {
                return None;
            }
            segment.file_bytes(file).get(usize::try_from(skip).ok()?..)
        })
}

/// The `byte_length` bytes that the file holds at `address`; the error names the dynamic tag that
/// asked for them.
pub(crate) fn dynamic_table<'a>(
    segments: &[Segment],
    file: &'a [u8],
    tag: &'static str,
    address: u64,
    byte_length: u64,
) -> Result<&'a [u8], ElfError> {
    if byte_length == 0 {
        return Ok(&[]);
    }
    usize::try_from(byte_length)
        .ok()
        .zip(bytes_from(segments, file, address))
        .and_then(|(byte_length, bytes)| bytes.get(..byte_length))
        .ok_or(ElfError::TableOutsideSegments {
            tag,
            address,
            byte_length,
        })
}
