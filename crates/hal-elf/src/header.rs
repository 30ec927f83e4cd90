//! The file header and the whereabouts of the two header tables.
//!
//! The identification bytes choose class and byte order first; everything after is read through
//! the structures of that class. Facts: the ELF specification; acceptance: `docs/abi.md`, section 10.1.

use core::fmt;
use core::mem::size_of;

use object::elf;
use object::endian::Endianness;
use object::pod;
use object::read::elf::{FileHeader, SectionHeader};

use crate::error::ElfError;
use crate::machine::{ByteOrder, Class, Machine, Target};

/// An `e_type` value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FileType(pub u16);

impl FileType {
    /// Object code for a linker: `ET_REL`.
    pub const RELOCATABLE: Self = Self(1);
    /// A program at a fixed address: `ET_EXEC`.
    pub const EXECUTABLE: Self = Self(2);
    /// Code and data that run at any address: `ET_DYN`. The only type that can be loaded here.
    pub const SHARED_OBJECT: Self = Self(3);
    /// A memory dump: `ET_CORE`.
    pub const CORE: Self = Self(4);
}

impl fmt::Display for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::RELOCATABLE => f.write_str("relocatable object"),
            Self::EXECUTABLE => f.write_str("executable"),
            Self::SHARED_OBJECT => f.write_str("shared object"),
            Self::CORE => f.write_str("core dump"),
            Self(other) => write!(f, "file type {other:#x}"),
        }
    }
}

/// The file header, in host byte order and independent of the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Machine, word size and byte order.
    pub target: Target,
    /// `EI_OSABI`. Not checked when a plain file is loaded.
    pub os_abi: u8,
    /// What kind of file it is.
    pub file_type: FileType,
    /// `e_flags`, whose meaning depends on the machine. Not checked when a file is loaded.
    pub flags: u32,
    /// `e_entry`, an address in the file's own numbering. Not used.
    pub entry: u64,
    /// Sections in the section header table, `None` when the file has no such table. Loading does
    /// not need one.
    pub section_header_count: Option<u64>,
}

/// The class and byte order that the identification bytes ask for.
///
/// Layout of the 16 bytes: magic 0..4, `EI_CLASS` 4, `EI_DATA` 5. What follows does not matter here.
pub(crate) fn read_identification(bytes: &[u8]) -> Result<(Class, ByteOrder), ElfError> {
    const SIZE: usize = 16;
    let ident = bytes.first_chunk::<SIZE>().ok_or(ElfError::TooShort {
        byte_length: bytes.len(),
        needed: SIZE,
    })?;
    let [m0, m1, m2, m3, class, data, ..] = *ident;
    let magic = [m0, m1, m2, m3];
    if magic != elf::ELFMAG {
        return Err(ElfError::Magic { found: magic });
    }
    let class = match elf::FileClass(class) {
        elf::ELFCLASS32 => Class::Elf32,
        elf::ELFCLASS64 => Class::Elf64,
        elf::FileClass(found) => return Err(ElfError::Class { found }),
    };
    let byte_order = match elf::DataEncoding(data) {
        elf::ELFDATA2LSB => ByteOrder::Little,
        elf::ELFDATA2MSB => ByteOrder::Big,
        elf::DataEncoding(found) => return Err(ElfError::ByteOrder { found }),
    };
    Ok((class, byte_order))
}

/// Reads the file header and the program header table of a file whose class is that of `E`.
pub(crate) fn read_header<E>(
    bytes: &[u8],
    class: Class,
    byte_order: ByteOrder,
) -> Result<(Header, &[E::ProgramHeader]), ElfError>
where
    E: FileHeader<Endian = Endianness>,
{
    let endian = byte_order.endianness();
    let (raw, _) = pod::from_bytes::<E>(bytes).map_err(|()| ElfError::TooShort {
        byte_length: bytes.len(),
        needed: size_of::<E>(),
    })?;
    expect_field(
        "e_version",
        raw.e_version(endian).into(),
        elf::EV_CURRENT.0.into(),
    )?;
    expect_field(
        "e_ehsize",
        raw.e_ehsize(endian).into(),
        size_of::<E>() as u64,
    )?;
    let program_headers = program_headers(raw, endian, bytes)?;
    let section_header_count = section_header_count(raw, endian, bytes)?;
    let header = Header {
        target: Target {
            machine: Machine(raw.e_machine(endian).0),
            class,
            byte_order,
        },
        os_abi: raw.e_ident().os_abi.0,
        file_type: FileType(raw.e_type(endian).0),
        flags: raw.e_flags(endian).0,
        entry: raw.e_entry(endian).into(),
        section_header_count,
    };
    Ok((header, program_headers))
}

fn program_headers<'a, E>(
    raw: &E,
    endian: Endianness,
    bytes: &'a [u8],
) -> Result<&'a [E::ProgramHeader], ElfError>
where
    E: FileHeader<Endian = Endianness>,
{
    let count = raw.e_phnum(endian);
    if count == 0 {
        return Ok(&[]);
    }
    if count == elf::PN_XNUM {
        return Err(ElfError::ProgramHeaderCount);
    }
    expect_field(
        "e_phentsize",
        raw.e_phentsize(endian).into(),
        size_of::<E::ProgramHeader>() as u64,
    )?;
    table(
        "program header",
        bytes,
        raw.e_phoff(endian).into(),
        count.into(),
    )
}

/// Returns the number of section headers after checking that the table is inside the file.
///
/// A count of 0 beside a table offset means that the true count stands in section 0.
fn section_header_count<E>(
    raw: &E,
    endian: Endianness,
    bytes: &[u8],
) -> Result<Option<u64>, ElfError>
where
    E: FileHeader<Endian = Endianness>,
{
    let offset: u64 = raw.e_shoff(endian).into();
    if offset == 0 {
        return Ok(None);
    }
    expect_field(
        "e_shentsize",
        raw.e_shentsize(endian).into(),
        size_of::<E::SectionHeader>() as u64,
    )?;
    let mut count = u64::from(raw.e_shnum(endian));
    if count == 0 {
        let first: &[E::SectionHeader] = table("section header", bytes, offset, 1)?;
        count = first
            .first()
            .map_or(0, |section| section.sh_size(endian).into());
    }
    table::<E::SectionHeader>("section header", bytes, offset, count)?;
    Ok(Some(count))
}

/// Returns `count` structures at a file offset, or the error that names the table.
fn table<'a, T: pod::Pod>(
    name: &'static str,
    bytes: &'a [u8],
    offset: u64,
    count: u64,
) -> Result<&'a [T], ElfError> {
    let outside = ElfError::TableOutsideFile {
        table: name,
        offset,
        count,
        file_length: bytes.len(),
    };
    let (Ok(start), Ok(count)) = (usize::try_from(offset), usize::try_from(count)) else {
        return Err(outside);
    };
    let Some(rest) = bytes.get(start..) else {
        return Err(outside);
    };
    match pod::slice_from_bytes(rest, count) {
        Ok((entries, _)) => Ok(entries),
        Err(()) => Err(outside),
    }
}

fn expect_field(field: &'static str, found: u64, expected: u64) -> Result<(), ElfError> {
    if found == expected {
        return Ok(());
    }
    Err(ElfError::HeaderField {
        field,
        expected,
        found,
    })
}
