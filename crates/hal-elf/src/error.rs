//! What can be wrong with an ELF file, and the status code of each.
//!
//! Addresses in messages are in the file's own numbering unless they say otherwise. An error does
//! not know the name of the file; whoever opened it does.

use core::fmt;

use hal_abi::StatusCode;

use crate::fatelf::FatElfError;
use crate::header::FileType;
use crate::machine::Target;
use crate::relocation::RelocationKind;
use crate::symbol::Symbol;

/// Why a file cannot be described or loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ElfError {
    /// The file ends inside its own header.
    #[error("the file has {byte_length} bytes, too few for an ELF header of {needed}")]
    TooShort {
        /// Bytes in the file.
        byte_length: usize,
        /// Bytes in the header.
        needed: usize,
    },
    /// The file is not an ELF file.
    #[error("the file starts with bytes {found:02x?}, not with the ELF magic 7f 45 4c 46")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The word size is unknown.
    #[error("EI_CLASS is {found}, neither 1 (32-bit) nor 2 (64-bit)")]
    Class {
        /// The value in the file.
        found: u8,
    },
    /// The byte order is unknown.
    #[error("EI_DATA is {found}, neither 1 (little-endian) nor 2 (big-endian)")]
    ByteOrder {
        /// The value in the file.
        found: u8,
    },
    /// A header field has a value that no valid file has.
    #[error("{field} is {found}, expected {expected}")]
    HeaderField {
        /// The field's name in the ELF specification.
        field: &'static str,
        /// The only valid value.
        expected: u64,
        /// The value in the file.
        found: u64,
    },
    /// The file uses the escape for 65535 or more program headers.
    #[error("e_phnum is 65535, the escape for more program headers than a loadable file has")]
    ProgramHeaderCount,
    /// A header table is not inside the file.
    #[error(
        "the {table} table of {count} entries at file offset {offset:#x} is not inside the file of \
         {file_length:#x} bytes"
    )]
    TableOutsideFile {
        /// Which table.
        table: &'static str,
        /// Its file offset.
        offset: u64,
        /// Its number of entries.
        count: u64,
        /// Bytes in the file.
        file_length: usize,
    },
    /// A loadable segment's bytes are not inside the file.
    #[error(
        "segment {index} takes {byte_length:#x} bytes at file offset {offset:#x}, past the end of the \
         file of {file_length:#x} bytes"
    )]
    SegmentOutsideFile {
        /// The index of the program header.
        index: usize,
        /// `p_offset`.
        offset: u64,
        /// `p_filesz`.
        byte_length: u64,
        /// Bytes in the file.
        file_length: usize,
    },
    /// A loadable segment has more bytes in the file than in memory.
    #[error(
        "segment {index} has {file_size:#x} bytes in the file but only {memory_size:#x} in memory"
    )]
    SegmentFileSize {
        /// The index of the program header.
        index: usize,
        /// `p_filesz`.
        file_size: u64,
        /// `p_memsz`.
        memory_size: u64,
    },
    /// A loadable segment ends past the highest address.
    #[error(
        "segment {index} at address {address:#x} with {memory_size:#x} bytes ends past the highest address"
    )]
    SegmentAddress {
        /// The index of the program header.
        index: usize,
        /// `p_vaddr`.
        address: u64,
        /// `p_memsz`.
        memory_size: u64,
    },
    /// A loadable segment asks for an impossible alignment.
    #[error("segment {index} asks for alignment {alignment:#x}, not a power of two up to 16 MiB")]
    SegmentAlignment {
        /// The index of the program header.
        index: usize,
        /// `p_align`.
        alignment: u64,
    },
    /// Two loadable segments share bytes of memory.
    #[error("the segments at addresses {first:#x} and {second:#x} overlap")]
    SegmentsOverlap {
        /// The address of the lower segment.
        first: u64,
        /// The address of the higher segment.
        second: u64,
    },
    /// A table that the dynamic section names is not in the file bytes of one loadable segment.
    #[error(
        "{tag} is at address {address:#x} with {byte_length:#x} bytes, which no loadable segment holds"
    )]
    TableOutsideSegments {
        /// The tag that gives the address.
        tag: &'static str,
        /// The address.
        address: u64,
        /// Bytes needed there.
        byte_length: u64,
    },
    /// A tag states another entry size than the class has.
    #[error("{tag} is {found}, expected {expected}")]
    EntrySize {
        /// The tag.
        tag: &'static str,
        /// Bytes in an entry of this class.
        expected: u64,
        /// The value in the file.
        found: u64,
    },
    /// A table ends inside an entry.
    #[error("{tag} has {byte_length} bytes, not a multiple of its entry size {entry_size}")]
    PartialEntry {
        /// The tag that gives the address.
        tag: &'static str,
        /// Bytes in the table.
        byte_length: u64,
        /// Bytes in an entry.
        entry_size: u64,
    },
    /// The dynamic section lacks a tag that is needed.
    #[error("the dynamic section has no {tag}")]
    MissingTag {
        /// The tag.
        tag: &'static str,
    },
    /// There is no dynamic section, so nothing can be looked up.
    #[error("the file has no dynamic section")]
    MissingDynamicSection,
    /// A hash table is cut off or does not end.
    #[error("{tag} at address {address:#x} is cut off or has a chain without an end")]
    HashTable {
        /// The tag that gives the address.
        tag: &'static str,
        /// The address.
        address: u64,
    },
    /// A name is not in the string table.
    #[error("{user} {index} has its name at string table offset {offset:#x}")]
    String {
        /// What has the name: a symbol, or a tag.
        user: &'static str,
        /// Which one of them.
        index: usize,
        /// The offset in the string table.
        offset: u64,
        /// What is wrong there.
        #[source]
        fault: StringFault,
    },
    /// `DT_PLTREL` names no relocation format.
    #[error("DT_PLTREL is {found}, neither 7 (DT_RELA) nor 17 (DT_REL)")]
    JumpSlotFormat {
        /// The value in the file.
        found: u64,
    },
    /// Two tables share some of their bytes.
    #[error("the tables {first} and {second} overlap in part")]
    TablesOverlap {
        /// A tag that gives an address.
        first: &'static str,
        /// The other tag.
        second: &'static str,
    },
    /// A relocation names a symbol that is not there.
    #[error("relocation {kind} at {offset:#x} names symbol {symbol} of {symbol_count}")]
    RelocationSymbol {
        /// The relocation's type.
        kind: RelocationKind,
        /// The place it applies to.
        offset: u64,
        /// The symbol index.
        symbol: u32,
        /// Symbols in the table.
        symbol_count: usize,
    },
    /// A relocation table has the format of another machine.
    #[error("{target} uses {expected} relocations, found {found}")]
    RelocationFormat {
        /// The file's target.
        target: Target,
        /// The machine's format.
        expected: &'static str,
        /// The format in the file.
        found: &'static str,
    },
    /// A relocation is of a type that is not supported.
    #[error("relocation {kind} at {offset:#x} is not supported")]
    UnsupportedRelocation {
        /// The relocation's type.
        kind: RelocationKind,
        /// The place it applies to.
        offset: u64,
    },
    /// A relocation applies to memory that is not the image's.
    #[error("relocation {kind} at {offset:#x} with {width} bytes is not inside a loaded segment")]
    RelocationOutsideImage {
        /// The relocation's type.
        kind: RelocationKind,
        /// The place it applies to.
        offset: u64,
        /// Bytes at the place.
        width: usize,
    },
    /// A packed relocation applies to memory that is not the image's.
    #[error("the DT_RELR relocation at {offset:#x} is not inside a loaded segment")]
    PackedRelocationOutsideImage {
        /// The place it applies to.
        offset: u64,
    },
    /// A relocated value does not fit in its field.
    #[error("relocation {kind} at {offset:#x} gives {value:#x}, which does not fit")]
    RelocationOverflow {
        /// The relocation's type.
        kind: RelocationKind,
        /// The place it applies to.
        offset: u64,
        /// The value at the address the image runs at.
        value: u64,
    },
    /// A symbol that a relocation uses lies outside the image.
    #[error("symbol {name} has value {value:#x}, outside the image")]
    SymbolOutsideImage {
        /// The symbol's name, shortened if very long.
        name: String,
        /// `st_value`.
        value: u64,
    },
    /// The file needs symbols, and nothing can supply them.
    #[error("{0}")]
    Undefined(UndefinedSymbols),
    /// The file uses thread-local storage.
    #[error(
        "the file uses thread-local storage (PT_TLS of {memory_size:#x} bytes), which is not supported"
    )]
    ThreadLocalStorage {
        /// `p_memsz`.
        memory_size: u64,
    },
    /// The file chooses a function at load time.
    #[error("symbol {name} is an indirect function (STT_GNU_IFUNC), which is not supported")]
    IndirectFunction {
        /// The symbol's name, shortened if very long.
        name: String,
    },
    /// The file has no memory image.
    #[error("the file has no loadable segment with bytes in it")]
    NoLoadableSegment,
    /// The memory image is out of proportion to the file.
    #[error(
        "the image spans addresses {start:#x} to {end:#x}, more than the limit of {limit:#x} bytes"
    )]
    ImageTooLarge {
        /// The first address.
        start: u64,
        /// The address after the last.
        end: u64,
        /// Bytes allowed for a file of this length.
        limit: usize,
    },
    /// A page would have to be both writable and executable.
    #[error("the page at address {address:#x} would be writable and executable")]
    WritableAndExecutable {
        /// The page's address.
        address: u64,
    },
    /// The initializer array is not in memory, or not a whole number of words.
    #[error(
        "DT_INIT_ARRAY is at address {address:#x} with {byte_length:#x} bytes, not words of a loaded segment"
    )]
    InitializerArray {
        /// The address.
        address: u64,
        /// Bytes in the array.
        byte_length: u64,
    },
    /// An initializer is not code of the image.
    #[error("the initializer at address {address:#x} (from {tag}) is not in an executable segment")]
    Initializer {
        /// The tag that names it.
        tag: &'static str,
        /// Its address.
        address: u64,
    },
    /// The file cannot be placed at any address.
    #[error("the file type is {found}, only a shared object can be loaded")]
    FileType {
        /// The file's type.
        found: FileType,
    },
    /// The file is for another computer.
    #[error("the file is for {found}, the host is {expected}")]
    Target {
        /// The host.
        expected: Target,
        /// The file's target.
        found: Target,
    },
    /// The file's machine has no relocation rules here.
    #[error("loading images for {target} is not supported")]
    UnsupportedMachine {
        /// The file's target.
        target: Target,
    },
    /// The host has no way to make code executable here.
    #[error("loading ELF images is not supported on {system} on {architecture}")]
    UnsupportedHost {
        /// The operating system.
        system: &'static str,
        /// The processor architecture.
        architecture: &'static str,
    },
    /// Memory could not be reserved.
    #[error("cannot map {byte_length:#x} bytes of memory")]
    Map {
        /// Bytes asked for.
        byte_length: usize,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// Memory could not be protected.
    #[error("cannot protect {byte_length:#x} bytes at image offset {offset:#x} as {protection}")]
    Protect {
        /// The first byte, from the start of the image.
        offset: usize,
        /// Bytes to protect.
        byte_length: usize,
        /// The protection wanted.
        protection: crate::Protection,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// No member of a FatELF file can be used.
    #[error("the FatELF file has no usable member")]
    FatElf(#[from] FatElfError),
}

impl ElfError {
    /// Returns the status code that stands for this error across the runtime's boundaries.
    ///
    /// Codes: `docs/abi.md`, sections 10.1 to 10.8.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::TooShort { .. }
            | Self::Magic { .. }
            | Self::Class { .. }
            | Self::ByteOrder { .. }
            | Self::HeaderField { .. }
            | Self::ProgramHeaderCount
            | Self::TableOutsideFile { .. }
            | Self::SegmentOutsideFile { .. }
            | Self::SegmentFileSize { .. }
            | Self::SegmentAddress { .. }
            | Self::SegmentAlignment { .. }
            | Self::SegmentsOverlap { .. }
            | Self::TableOutsideSegments { .. }
            | Self::EntrySize { .. }
            | Self::PartialEntry { .. }
            | Self::MissingTag { .. }
            | Self::MissingDynamicSection
            | Self::HashTable { .. }
            | Self::String { .. }
            | Self::JumpSlotFormat { .. }
            | Self::TablesOverlap { .. }
            | Self::RelocationFormat { .. }
            | Self::NoLoadableSegment
            | Self::InitializerArray { .. }
            | Self::FileType { .. }
            | Self::Target { .. } => StatusCode::FAILED_PRECONDITION,
            Self::RelocationSymbol { .. }
            | Self::RelocationOutsideImage { .. }
            | Self::PackedRelocationOutsideImage { .. }
            | Self::RelocationOverflow { .. }
            | Self::SymbolOutsideImage { .. }
            | Self::Initializer { .. } => StatusCode::OUT_OF_RANGE,
            Self::UnsupportedRelocation { .. }
            | Self::ThreadLocalStorage { .. }
            | Self::IndirectFunction { .. }
            | Self::UnsupportedMachine { .. }
            | Self::UnsupportedHost { .. } => StatusCode::UNIMPLEMENTED,
            Self::Undefined(_) => StatusCode::UNAVAILABLE,
            Self::WritableAndExecutable { .. } => StatusCode::PERMISSION_DENIED,
            Self::ImageTooLarge { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::Map { source, .. } | Self::Protect { source, .. } => {
                if source.kind() == std::io::ErrorKind::PermissionDenied {
                    StatusCode::PERMISSION_DENIED
                } else {
                    StatusCode::RESOURCE_EXHAUSTED
                }
            }
            Self::FatElf(error) => error.status_code(),
        }
    }

    pub(crate) fn symbol_outside_image(symbol: &Symbol<'_>) -> Self {
        Self::SymbolOutsideImage {
            name: display_name(symbol.name),
            value: symbol.value,
        }
    }
}

/// What is wrong with a name in a string table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StringFault {
    /// The name starts past the table.
    #[error("the string table has {table_length:#x} bytes")]
    OutsideTable {
        /// Bytes in the table.
        table_length: usize,
    },
    /// The name does not end.
    #[error("the string has no terminator")]
    NoTerminator,
    /// The name is longer than any that is accepted.
    #[error("the string is longer than {limit} bytes")]
    TooLong {
        /// Bytes accepted.
        limit: usize,
    },
}

/// Every symbol that a file needs from others.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UndefinedSymbols {
    /// Their names in the order of the symbol table, each shortened if very long.
    pub names: Vec<String>,
    /// The sanitizer whose runtime some of them belong to.
    pub sanitizer: Option<Sanitizer>,
}

impl UndefinedSymbols {
    pub(crate) fn new<'a>(names: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut sanitizer = None;
        let names = names
            .map(|name| {
                sanitizer = sanitizer.or_else(|| Sanitizer::of_symbol(name));
                display_name(name)
            })
            .collect();
        Self { names, sanitizer }
    }
}

impl fmt::Display for UndefinedSymbols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(sanitizer) = self.sanitizer {
            write!(
                f,
                "the file was built with {sanitizer}, which the host was not; "
            )?;
        }
        write!(f, "undefined symbols: {}", self.names.join(", "))
    }
}

/// A compiler instrumentation that calls into a runtime library of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sanitizer {
    /// Finds invalid memory accesses.
    Address,
    /// Finds data races.
    Thread,
    /// Finds reads of uninitialized memory.
    Memory,
}

impl Sanitizer {
    /// Returns the sanitizer whose runtime defines a symbol of this name.
    #[must_use]
    pub fn of_symbol(name: &[u8]) -> Option<Self> {
        if name.starts_with(b"__asan_") {
            Some(Self::Address)
        } else if name.starts_with(b"__tsan_") {
            Some(Self::Thread)
        } else if name.starts_with(b"__msan_") {
            Some(Self::Memory)
        } else {
            None
        }
    }
}

impl fmt::Display for Sanitizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Address => "AddressSanitizer",
            Self::Thread => "ThreadSanitizer",
            Self::Memory => "MemorySanitizer",
        })
    }
}

/// A name for a message. Names may share bytes of the file, so a message that lists them all could
/// be far longer than the file; shortening each keeps it in proportion.
pub(crate) fn display_name(name: &[u8]) -> String {
    const SHOWN: usize = 256;
    let shown = String::from_utf8_lossy(&name[..name.len().min(SHOWN)]);
    if name.is_empty() {
        String::from("(unnamed)")
    } else if name.len() > SHOWN {
        format!("{shown}...")
    } else {
        shown.into_owned()
    }
}
