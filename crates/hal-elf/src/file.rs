//! [`ElfFile`]: everything an ELF file says about itself, checked.
//!
//! Describing a file is safe and host-independent. It runs nothing, maps nothing and allocates no
//! more than a small multiple of the file.

use std::collections::BTreeMap;

use object::elf::{FileHeader32, FileHeader64};
use object::endian::Endianness;
use object::read::elf::FileHeader;

use crate::dynamic::Dynamic;
use crate::error::ElfError;
use crate::header::{self, Header};
use crate::machine::{ByteOrder, Class, Target};
use crate::relocation::{Relocation, RelocationKind};
use crate::segment::Segment;
use crate::symbol::Symbol;

/// A parsed ELF file of any machine, class and byte order, borrowing the file's bytes.
///
/// The bytes need no alignment. Sections are not needed and not read, so a file without a section
/// header table is as good as any; symbols and relocations are the dynamic ones.
///
/// # Examples
///
/// ```no_run
/// use hal_elf::ElfFile;
///
/// let bytes = std::fs::read("kernel.so")?;
/// let file = ElfFile::parse(&bytes)?;
/// println!("{}, {}", file.header().target, file.header().file_type);
/// for symbol in file.exported_symbols() {
///     println!("{}", String::from_utf8_lossy(symbol.name));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ElfFile<'a> {
    bytes: &'a [u8],
    header: Header,
    segments: Vec<Segment>,
    dynamic: Option<Dynamic<'a>>,
}

impl<'a> ElfFile<'a> {
    /// Parses and checks a file.
    ///
    /// Loadable segments, the dynamic section and every table it names must be well-formed. Whether
    /// the file can be loaded is another question: see [`LoadPlan::new`](crate::LoadPlan::new).
    ///
    /// # Errors
    ///
    /// An [`ElfError`] that names the field, segment or table at fault.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ElfError> {
        let (class, byte_order) = header::read_identification(bytes)?;
        match class {
            Class::Elf32 => Self::parse_class::<FileHeader32<Endianness>>(bytes, class, byte_order),
            Class::Elf64 => Self::parse_class::<FileHeader64<Endianness>>(bytes, class, byte_order),
        }
    }

    fn parse_class<E>(
        bytes: &'a [u8],
        class: Class,
        byte_order: ByteOrder,
    ) -> Result<Self, ElfError>
    where
        E: FileHeader<Endian = Endianness>,
    {
        let (header, program_headers) = header::read_header::<E>(bytes, class, byte_order)?;
        let segments = program_headers
            .iter()
            .enumerate()
            .map(|(index, raw)| {
                Segment::read(index, raw, byte_order.endianness(), class, bytes.len())
            })
            .collect::<Result<Vec<_>, _>>()?;
        let dynamic = Dynamic::read::<E>(header.target, &segments, bytes)?;
        Ok(Self {
            bytes,
            header,
            segments,
            dynamic,
        })
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the file header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the machine, word size and byte order the file is for.
    #[must_use]
    pub fn target(&self) -> Target {
        self.header.target
    }

    /// Returns every program header, loadable or not, in file order.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Returns whether the file has a dynamic section. Without one it has no symbols and no
    /// relocations here, and cannot be loaded.
    #[must_use]
    pub fn has_dynamic_section(&self) -> bool {
        self.dynamic.is_some()
    }

    /// Returns the names of the libraries the file asks for (`DT_NEEDED`), in file order.
    #[must_use]
    pub fn needed_libraries(&self) -> &[&'a [u8]] {
        self.dynamic.as_ref().map_or(&[], |dynamic| &dynamic.needed)
    }

    /// Returns the name the file gives itself (`DT_SONAME`).
    #[must_use]
    pub fn soname(&self) -> Option<&'a [u8]> {
        self.dynamic.as_ref().and_then(|dynamic| dynamic.soname)
    }

    /// Returns the dynamic symbols, with the reserved symbol 0 first; a position is a symbol index.
    #[must_use]
    pub fn symbols(&self) -> &[Symbol<'a>] {
        self.dynamic
            .as_ref()
            .and_then(|dynamic| dynamic.symbols.as_deref())
            .unwrap_or_default()
    }

    /// Returns the symbols the file defines for others, in table order.
    pub fn exported_symbols(&self) -> impl Iterator<Item = &Symbol<'a>> {
        self.symbols()
            .iter()
            .skip(1)
            .filter(|symbol| symbol.is_exported())
    }

    /// Returns the symbols others must define, weak ones included, in table order.
    pub fn undefined_symbols(&self) -> impl Iterator<Item = &Symbol<'a>> {
        self.symbols()
            .iter()
            .skip(1)
            .filter(|symbol| symbol.is_undefined())
    }

    /// Returns the relocations in the order they are applied, except the packed ones.
    #[must_use]
    pub fn relocations(&self) -> &[Relocation] {
        self.dynamic
            .as_ref()
            .map_or(&[], |dynamic| &dynamic.relocations.entries)
    }

    /// Returns how many relocations of each type there are, except the packed ones.
    #[must_use]
    pub fn relocation_counts(&self) -> BTreeMap<RelocationKind, usize> {
        let mut counts = BTreeMap::new();
        for relocation in self.relocations() {
            let kind = RelocationKind {
                machine: self.header.target.machine,
                number: relocation.number,
            };
            *counts.entry(kind).or_insert(0) += 1;
        }
        counts
    }

    /// Returns how many places the packed relocations (`DT_RELR`) adjust.
    #[must_use]
    pub fn packed_relocation_count(&self) -> usize {
        self.dynamic
            .as_ref()
            .map_or(0, |dynamic| dynamic.relocations.packed_places().count())
    }

    pub(crate) fn dynamic(&self) -> Option<&Dynamic<'a>> {
        self.dynamic.as_ref()
    }
}
