//! Relocation tables: what is to be adjusted, not how.
//!
//! REL, RELA and RELR tables of both classes become one list of [`Relocation`] and one list of packed
//! words. How a type is applied is `relocate`'s concern. Facts: the ELF specification, "Relocation".

use core::fmt;

use object::elf::{self, RelocationType};
use object::endian::Endianness;
use object::read::elf::{FileHeader, Rel, Rela, Relr};

use crate::error::ElfError;
use crate::machine::{ByteOrder, Class, Machine, Target};

/// One relocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Relocation {
    /// `r_offset`: the address of the place, in the file's own numbering.
    pub offset: u64,
    /// The addend of a RELA entry, `None` for a REL entry, whose addend is at the place.
    pub addend: Option<i64>,
    /// The type number, whose meaning depends on the machine.
    pub number: u32,
    /// The index of the symbol, 0 for none.
    pub symbol: u32,
}

impl Relocation {
    pub(crate) fn from_rel<R: Rel<Endian = Endianness>>(raw: &R, endian: Endianness) -> Self {
        Self {
            offset: raw.r_offset(endian).into(),
            addend: None,
            number: raw.r_type(endian).0,
            symbol: raw.r_sym(endian),
        }
    }

    pub(crate) fn from_rela<R: Rela<Endian = Endianness>>(raw: &R, target: Target) -> Self {
        let endian = target.byte_order.endianness();
        // One machine splits `r_info` in its own way.
        let is_mips64el = target.machine == Machine(elf::EM_MIPS.0)
            && target.class == Class::Elf64
            && target.byte_order == ByteOrder::Little;
        Self {
            offset: raw.r_offset(endian).into(),
            addend: Some(raw.r_addend(endian).into()),
            number: raw.r_type(endian, is_mips64el).0,
            symbol: raw.r_sym(endian, is_mips64el),
        }
    }
}

/// A relocation type of one machine. Prints as name and number where the name is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelocationKind {
    /// The machine that gives the number its meaning.
    pub machine: Machine,
    /// The type number.
    pub number: u32,
}

impl RelocationKind {
    /// Returns the name in the machine's ABI document, such as `R_X86_64_RELATIVE`, or `None` when
    /// the number, or the machine, has no name here.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let names = match self.machine {
            Machine::X86_64 => &elf::NAMES_R_X86_64,
            Machine::X86_32 => &elf::NAMES_R_386,
            Machine::ARM_64 => &elf::NAMES_R_AARCH64,
            Machine::ARM_32 => &elf::NAMES_R_ARM,
            Machine::RISCV => &elf::NAMES_R_RISCV,
            _ => return None,
        };
        names.name(RelocationType(self.number))
    }
}

impl fmt::Display for RelocationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.number),
            None => write!(f, "type {} of {}", self.number, self.machine),
        }
    }
}

/// Every relocation of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Relocations {
    /// REL and RELA entries, those of `DT_JMPREL` last.
    pub(crate) entries: Vec<Relocation>,
    /// The words of `DT_RELR`.
    pub(crate) packed: Vec<u64>,
    pub(crate) class: Class,
}

impl Relocations {
    /// One past the highest symbol index that an entry names.
    pub(crate) fn symbols_used(&self) -> u64 {
        self.entries
            .iter()
            .map(|entry| u64::from(entry.symbol) + 1)
            .max()
            .unwrap_or(0)
    }

    /// Checks that every entry names a symbol that exists.
    pub(crate) fn check_symbols(
        &self,
        machine: Machine,
        symbol_count: usize,
    ) -> Result<(), ElfError> {
        let missing = |entry: &&Relocation| {
            entry.symbol != 0
                && usize::try_from(entry.symbol).is_ok_and(|index| index >= symbol_count)
        };
        match self.entries.iter().find(missing) {
            None => Ok(()),
            Some(entry) => Err(ElfError::RelocationSymbol {
                kind: RelocationKind {
                    machine,
                    number: entry.number,
                },
                offset: entry.offset,
                symbol: entry.symbol,
                symbol_count,
            }),
        }
    }

    /// The places of the packed relocations, each an address to which the load bias is added.
    pub(crate) fn packed_places(&self) -> impl Iterator<Item = u64> + '_ {
        PackedPlaces {
            words: self.packed.iter(),
            word_size: self.class.word_size() as u64,
            bits: 0,
            place: 0,
            next: 0,
        }
    }
}

/// Reads the words of a RELR table.
pub(crate) fn read_relr<E>(words: &[E::Relr], endian: Endianness) -> Vec<u64>
where
    E: FileHeader<Endian = Endianness>,
{
    words.iter().map(|word| word.get(endian).into()).collect()
}

/// Unpacks RELR words.
///
/// An even word is an address: relocate it, and let the window start at the word after it. An odd
/// word is a bitmap over the window: bit `i`, for `i` from 1, stands for the window's word `i - 1`;
/// the window then moves on by as many words as the bitmap covers. Addresses wrap around, since a
/// hostile table can make them; each is checked when it is used.
struct PackedPlaces<'w> {
    words: core::slice::Iter<'w, u64>,
    word_size: u64,
    /// What is left of the bitmap.
    bits: u64,
    /// The address of the lowest of `bits`.
    place: u64,
    /// Where the next window starts.
    next: u64,
}

impl Iterator for PackedPlaces<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.bits == 0 {
            let word = *self.words.next()?;
            if word & 1 == 0 {
                self.next = word.wrapping_add(self.word_size);
                return Some(word);
            }
            self.bits = word >> 1;
            self.place = self.next;
            let covered = self.word_size * 8 - 1;
            self.next = self.next.wrapping_add(covered * self.word_size);
        }
        let skip = u64::from(self.bits.trailing_zeros());
        let place = self.place.wrapping_add(skip * self.word_size);
        self.bits = self.bits >> skip >> 1;
        self.place = place.wrapping_add(self.word_size);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(class: Class, packed: &[u64]) -> Vec<u64> {
        let relocations = Relocations {
            entries: Vec::new(),
            packed: packed.to_vec(),
            class,
        };
        relocations.packed_places().collect()
    }

    #[test]
    fn an_even_relr_word_is_a_place() {
        assert_eq!(places(Class::Elf64, &[0x1000, 0x2000]), [0x1000, 0x2000]);
    }

    #[test]
    fn a_relr_bitmap_counts_words_after_the_place() {
        // Bits 1 and 3: the first and third word after 0x1000.
        assert_eq!(
            places(Class::Elf64, &[0x1000, 0b1011]),
            [0x1000, 0x1008, 0x1018]
        );
        assert_eq!(
            places(Class::Elf32, &[0x1000, 0b1011]),
            [0x1000, 0x1004, 0x100C]
        );
    }

    #[test]
    fn consecutive_relr_bitmaps_move_the_window() {
        let expected = [0x1000, 0x1008 + 63 * 8, 0x1008 + 2 * 63 * 8 - 8];
        assert_eq!(
            places(Class::Elf64, &[0x1000, 1, 0x8000_0000_0000_0001 | 0b10]),
            { [expected[0], expected[1], expected[2]] }
        );
    }

    #[test]
    fn hostile_relr_addresses_wrap_instead_of_overflowing() {
        assert_eq!(places(Class::Elf64, &[u64::MAX - 1, u64::MAX]).len(), 64);
    }

    #[test]
    fn a_kind_prints_name_and_number() {
        let kind = |machine, number| RelocationKind { machine, number }.to_string();
        assert_eq!(kind(Machine::X86_64, 37), "R_X86_64_IRELATIVE (37)");
        assert_eq!(kind(Machine::X86_64, 255), "type 255 of x86-64");
        assert_eq!(kind(Machine::ARM_64, 1027), "R_AARCH64_RELATIVE (1027)");
    }

    #[test]
    fn the_highest_symbol_in_use_bounds_the_table() {
        let entry = |symbol| Relocation {
            offset: 0,
            addend: None,
            number: 1,
            symbol,
        };
        let relocations = Relocations {
            entries: vec![entry(2), entry(7)],
            packed: Vec::new(),
            class: Class::Elf64,
        };
        assert_eq!(relocations.symbols_used(), 8);
        assert!(relocations.check_symbols(Machine::X86_64, 8).is_ok());
        assert!(matches!(
            relocations.check_symbols(Machine::X86_64, 7),
            Err(ElfError::RelocationSymbol {
                symbol: 7,
                symbol_count: 7,
                ..
            })
        ));
    }
}
