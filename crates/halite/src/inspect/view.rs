//! The data of an ELF file as it will be in memory, read by address: [`ElfView`].
//!
//! Addresses are the file's own numbering, as if it were loaded where it asks to be. A pointer in the data is what its
//! relocation says. Nothing is copied or mapped, so files are read that no loader here would take: those for other
//! machines, and those that need other libraries.
#![forbid(unsafe_code)]

use core::cell::Cell;

use hal_elf::{ByteOrder, ElfFile, RelocationKind, Segment, SegmentKind};

use super::names::lossy;

/// Longest string that is read, in bytes.
const MAX_STRING_LENGTH: usize = 0xFFFF;

/// What may be read in all: this many bytes for each byte of the file, and these. A hostile file can make many strings
/// and tables of the same bytes.
const BUDGET_PER_BYTE: u64 = 16;
const SPARE_BUDGET: u64 = 64 << 10;

/// The data of an ELF file, read by address.
pub(super) struct ElfView<'a> {
    bytes: &'a [u8],
    byte_order: ByteOrder,
    word_size: u64,
    /// The loadable segments, by address.
    segments: Vec<Segment>,
    /// The places of relocations and what they will point at, by address.
    pointers: Vec<(u64, Pointer)>,
    /// Whether a place without a relocation of its own may hold an address (`DT_RELR`).
    has_packed_relocations: bool,
    /// Bytes that may still be read.
    budget: Cell<u64>,
}

/// What a word of the data points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    /// Nothing.
    Null,
    /// An address in the file's own numbering; whether there is anything is another question.
    To(u64),
    /// Something that is not in the file, or not an address.
    Elsewhere,
}

/// Why a structure was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Nothing in the data has its form.
    NotFound,
    /// More than one place has its form.
    Ambiguous,
    /// The file makes so much of the same bytes that the search was given up.
    GivenUp,
}

impl<'a> ElfView<'a> {
    /// Returns a view of a file.
    pub(super) fn new(file: &ElfFile<'a>) -> Self {
        let mut segments: Vec<Segment> = file
            .segments()
            .iter()
            .filter(|segment| segment.kind == SegmentKind::LOAD)
            .copied()
            .collect();
        segments.sort_by_key(|segment| segment.address);
        let byte_length = file.bytes().len() as u64;
        let mut view = Self {
            bytes: file.bytes(),
            byte_order: file.target().byte_order,
            word_size: file.target().class.word_size() as u64,
            segments,
            pointers: Vec::new(),
            has_packed_relocations: file.packed_relocation_count() != 0,
            budget: Cell::new(u64::MAX),
        };
        view.pointers = view.read_relocations(file);
        view.budget = Cell::new(byte_length * BUDGET_PER_BYTE + SPARE_BUDGET);
        view
    }

    /// Returns the bytes of a pointer.
    pub(super) fn word_size(&self) -> u64 {
        self.word_size
    }

    /// Finds the one structure that `read` makes of the address of a word in the data.
    pub(super) fn find_only<T>(&self, read: impl FnMut(u64) -> Option<T>) -> Result<T, Search> {
        let mut found = self.data_words().filter_map(read);
        let (first, second) = (found.next(), found.next());
        if self.is_exhausted() {
            return Err(Search::GivenUp);
        }
        match (first, second) {
            (Some(structure), None) => Ok(structure),
            (Some(_), Some(_)) => Err(Search::Ambiguous),
            (None, _) => Err(Search::NotFound),
        }
    }

    /// Returns whether reading was given up because the file makes too much of the same bytes.
    fn is_exhausted(&self) -> bool {
        self.budget.get() == 0
    }

    /// Returns the addresses of all whole words in segments that hold data, as long as reading is not given up.
    fn data_words(&self) -> impl Iterator<Item = u64> + '_ {
        let data = self
            .segments
            .iter()
            .filter(|segment| !segment.flags.is_executable());
        let words = data.flat_map(|segment| {
            let end = segment.address.saturating_add(segment.file_size);
            let start = segment
                .address
                .checked_next_multiple_of(self.word_size)
                .unwrap_or(end);
            (start..end).step_by(usize::try_from(self.word_size).unwrap_or(8))
        });
        // Segments may overlap, so that their words are many more than those of the file.
        words.take_while(|_| !self.is_exhausted())
    }

    /// Returns whether the address is that of code.
    pub(super) fn is_code(&self, address: u64) -> bool {
        self.segment_at(address)
            .is_some_and(|segment| segment.flags.is_executable())
    }

    /// Returns `length` bytes that the file has for an address.
    pub(super) fn bytes(&self, address: u64, length: u64) -> Option<&'a [u8]> {
        self.spend(length)?;
        let rest = self.bytes_from(address)?;
        rest.get(..usize::try_from(length).ok()?)
    }

    /// Returns the number of `length` bytes, at most 8, at an address.
    pub(super) fn number(&self, address: u64, length: u64) -> Option<u64> {
        let bytes = self.bytes(address, length)?;
        let push = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        Some(match self.byte_order {
            ByteOrder::Little => bytes.iter().rev().fold(0, push),
            ByteOrder::Big => bytes.iter().fold(0, push),
        })
    }

    /// Returns the 32-bit number at an address.
    pub(super) fn u32(&self, address: u64) -> Option<u32> {
        self.number(address, 4)
            .and_then(|value| u32::try_from(value).ok())
    }

    /// Returns what the word at an address points at.
    pub(super) fn pointer(&self, address: u64) -> Option<Pointer> {
        let raw = self.number(address, self.word_size)?;
        if let Ok(index) = self
            .pointers
            .binary_search_by_key(&address, |&(place, _)| place)
        {
            return Some(self.pointers[index].1);
        }
        Some(match raw {
            0 => Pointer::Null,
            raw if self.has_packed_relocations => Pointer::To(raw),
            _ => Pointer::Elsewhere,
        })
    }

    /// Returns the string at an address, without its terminator.
    pub(super) fn string(&self, address: u64) -> Option<&'a [u8]> {
        let rest = self.bytes_from(address)?;
        let window = &rest[..rest.len().min(MAX_STRING_LENGTH + 1)];
        let length = window.iter().position(|byte| *byte == 0)?;
        self.spend(length as u64 + 1)?;
        Some(&window[..length])
    }

    /// Returns the string that the word at an address points at; the inner `None` is a NULL.
    pub(super) fn optional_string(&self, address: u64) -> Option<Option<String>> {
        match self.pointer(address)? {
            Pointer::To(string) => Some(Some(lossy(self.string(string)?))),
            Pointer::Null => Some(None),
            Pointer::Elsewhere => None,
        }
    }

    /// Takes what is read from the budget, or returns `None` once it is used up.
    fn spend(&self, length: u64) -> Option<()> {
        let left = self.budget.get().checked_sub(length);
        self.budget.set(left.unwrap_or(0));
        left.map(drop)
    }

    fn segment_at(&self, address: u64) -> Option<&Segment> {
        let after = self
            .segments
            .partition_point(|segment| segment.address <= address);
        self.segments[..after]
            .last()
            .filter(|segment| address - segment.address < segment.memory_size)
    }

    /// Returns the bytes that the file has from an address to the end of its segment.
    fn bytes_from(&self, address: u64) -> Option<&'a [u8]> {
        let segment = self.segment_at(address)?;
        let skip = address - segment.address;
        let start = usize::try_from(segment.file_offset.checked_add(skip)?).ok()?;
        let length = usize::try_from(segment.file_size.checked_sub(skip)?).ok()?;
        self.bytes.get(start..)?.get(..length)
    }

    /// Finds out what the places of relocations will point at. The last one of a place counts.
    fn read_relocations(&self, file: &ElfFile<'a>) -> Vec<(u64, Pointer)> {
        let mut pointers: Vec<(u64, Pointer)> = Vec::with_capacity(file.relocations().len());
        for relocation in file.relocations() {
            let kind = RelocationKind {
                machine: file.target().machine,
                number: relocation.number,
            };
            let addend = match relocation.addend {
                Some(addend) => Some(addend.cast_unsigned()),
                None => self.number(relocation.offset, self.word_size),
            };
            let symbol = || {
                let index = usize::try_from(relocation.symbol).ok()?;
                let symbol = file
                    .symbols()
                    .get(index)
                    .filter(|symbol| !symbol.is_undefined());
                symbol.map(|symbol| symbol.value)
            };
            let address = match kind.name().map_or(Meaning::Other, Meaning::of) {
                Meaning::Base => addend,
                Meaning::Symbol => symbol(),
                Meaning::SymbolAddend => symbol()
                    .zip(addend)
                    .map(|(symbol, addend)| symbol.wrapping_add(addend)),
                Meaning::Other => None,
            };
            pointers.push((
                relocation.offset,
                address.map_or(Pointer::Elsewhere, Pointer::To),
            ));
        }
        pointers.reverse();
        // Stable, so that of one place the last relocation stays.
        pointers.sort_by_key(|&(place, _)| place);
        pointers.dedup_by_key(|&mut (place, _)| place);
        pointers
    }
}

/// What a relocation makes of its place, as far as that is an address.
enum Meaning {
    /// The load bias and the addend.
    Base,
    /// The address of the symbol.
    Symbol,
    /// The address of the symbol and the addend.
    SymbolAddend,
    /// Something else.
    Other,
}

impl Meaning {
    /// Tells by the name in the machine's ABI document (`docs/abi.md`, section "Relocations").
    fn of(name: &str) -> Self {
        if name.ends_with("_RELATIVE") {
            return Self::Base;
        }
        match name {
            "R_X86_64_64" | "R_AARCH64_ABS64" | "R_RISCV_64" | "R_RISCV_32" | "R_386_32"
            | "R_ARM_ABS32" => Self::SymbolAddend,
            "R_X86_64_GLOB_DAT" | "R_AARCH64_GLOB_DAT" | "R_386_GLOB_DAT" | "R_ARM_GLOB_DAT" => {
                Self::Symbol
            }
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inspect::testing::{CODE, Image};

    #[test]
    fn pointers_are_what_their_relocations_say() {
        let mut image = Image::exporting("f");
        let name = image.string("name");
        let pointer = image.pointer(name);
        let null = image.word(0);
        let number = image.word(0x1234);
        let code = image.pointer(CODE);
        let bytes = image.build();
        let file = ElfFile::parse(&bytes).unwrap();
        let view = ElfView::new(&file);
        assert_eq!(view.pointer(pointer), Some(Pointer::To(name)));
        assert_eq!(view.pointer(null), Some(Pointer::Null));
        assert_eq!(view.pointer(number), Some(Pointer::Elsewhere));
        assert_eq!(view.u32(number), Some(0x1234));
        assert_eq!(view.string(name), Some(&b"name"[..]));
        assert_eq!(view.pointer(code), Some(Pointer::To(CODE)));
        assert!(view.is_code(CODE) && !view.is_code(name));
    }

    #[test]
    fn addresses_outside_the_file_have_nothing() {
        let bytes = Image::exporting("f").build();
        let file = ElfFile::parse(&bytes).unwrap();
        let view = ElfView::new(&file);
        for address in [0x40_0000, CODE + 16, u64::MAX, u64::MAX - 3] {
            assert_eq!(view.number(address, 4), None, "{address:#x}");
            assert_eq!(view.string(address), None, "{address:#x}");
        }
        assert_eq!(view.bytes(CODE, 17), None);
    }

    #[test]
    fn reading_ends_when_the_budget_is_used_up() {
        let mut image = Image::exporting("f");
        let data = image.bytes(&[1; 4096]);
        let bytes = image.build();
        let file = ElfFile::parse(&bytes).unwrap();
        let view = ElfView::new(&file);
        let reads = (0..1_000_000)
            .take_while(|_| view.bytes(data, 4096).is_some())
            .count();
        assert!((16..64).contains(&reads), "{reads}");
        assert_eq!(view.find_only(|_| Some(())), Err(Search::GivenUp));
    }
}
