//! The dynamic section: from tags to symbols, relocations and initializers.
//!
//! All of it is read from the file's own bytes, through the loadable segments, so relocating an
//! image later cannot change what was checked here. Facts: the ELF specification, "Dynamic
//! Section"; `docs/abi.md`, section 10.3.

use core::mem::size_of;

use object::elf::{self, DynamicTag};
use object::endian::Endianness;
use object::pod::{self, Pod};
use object::read::elf::{Dyn, FileHeader};

use crate::error::ElfError;
use crate::hash::{self, SymbolCount};
use crate::machine::Target;
use crate::relocation::{self, Relocation, Relocations};
use crate::segment::{self, Segment, SegmentKind};
use crate::symbol::{self, Symbol};

/// An address and a size in bytes that two tags give together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TableRange {
    pub(crate) address: u64,
    pub(crate) byte_length: u64,
}

/// What the dynamic section describes.
#[derive(Clone, Debug)]
pub(crate) struct Dynamic<'a> {
    /// `DT_NEEDED`, in file order.
    pub(crate) needed: Vec<&'a [u8]>,
    /// `DT_SONAME`.
    pub(crate) soname: Option<&'a [u8]>,
    /// `DT_SYMTAB` with its reserved entry 0, `None` when the tag is absent.
    pub(crate) symbols: Option<Vec<Symbol<'a>>>,
    /// `DT_STRTAB`, empty when the tag is absent.
    pub(crate) strings: &'a [u8],
    /// Every relocation table.
    pub(crate) relocations: Relocations,
    /// `DT_INIT`.
    pub(crate) init: Option<u64>,
    /// `DT_INIT_ARRAY` and its size.
    pub(crate) init_array: Option<TableRange>,
}

impl<'a> Dynamic<'a> {
    /// Reads the section that the first `PT_DYNAMIC` segment points at, `None` when there is none.
    pub(crate) fn read<E>(
        target: Target,
        segments: &[Segment],
        file: &'a [u8],
    ) -> Result<Option<Self>, ElfError>
    where
        E: FileHeader<Endian = Endianness>,
    {
        let Some(segment) = segments
            .iter()
            .find(|segment| segment.kind == SegmentKind::DYNAMIC)
        else {
            return Ok(None);
        };
        let section = Section::<E>::read(target, segments, file, segment)?;
        let relocations = section.relocations()?;
        let symbols = section.symbols(&relocations)?;
        relocations.check_symbols(target.machine, symbols.as_ref().map_or(0, Vec::len))?;
        Ok(Some(Self {
            needed: section.strings_of(elf::DT_NEEDED)?,
            soname: section.strings_of(elf::DT_SONAME)?.first().copied(),
            symbols,
            strings: section.strings()?.unwrap_or_default(),
            relocations,
            init: section.value(elf::DT_INIT),
            init_array: section.range(elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ)?,
        }))
    }
}

/// The tags up to `DT_NULL`, with what is needed to follow them.
struct Section<'s, 'a, E: FileHeader> {
    entries: &'a [E::Dyn],
    target: Target,
    segments: &'s [Segment],
    file: &'a [u8],
}

impl<'s, 'a, E> Section<'s, 'a, E>
where
    E: FileHeader<Endian = Endianness>,
{
    fn read(
        target: Target,
        segments: &'s [Segment],
        file: &'a [u8],
        segment: &Segment,
    ) -> Result<Self, ElfError> {
        let bytes = segment::dynamic_table(
            segments,
            file,
            "PT_DYNAMIC",
            segment.address,
            segment.file_size,
        )?;
        let entries = whole_entries::<E::Dyn>(bytes);
        let endian = target.byte_order.endianness();
        let used = entries
            .iter()
            .position(|entry| entry.d_tag(endian) == elf::DT_NULL);
        let entries = &entries[..used.unwrap_or(entries.len())];
        Ok(Self {
            entries,
            target,
            segments,
            file,
        })
    }

    fn values(&self, tag: DynamicTag) -> impl Iterator<Item = u64> + '_ {
        let endian = self.endian();
        self.entries
            .iter()
            .filter(move |entry| entry.d_tag(endian) == tag)
            .map(move |entry| entry.d_val(endian).into())
    }

    fn value(&self, tag: DynamicTag) -> Option<u64> {
        self.values(tag).next()
    }

    fn required(&self, tag: DynamicTag) -> Result<u64, ElfError> {
        self.value(tag)
            .ok_or(ElfError::MissingTag { tag: tag_name(tag) })
    }

    fn endian(&self) -> Endianness {
        self.target.byte_order.endianness()
    }

    /// The range that an address tag and a size tag give, `None` without the address tag.
    fn range(&self, address: DynamicTag, size: DynamicTag) -> Result<Option<TableRange>, ElfError> {
        match self.value(address) {
            None => Ok(None),
            Some(address) => Ok(Some(TableRange {
                address,
                byte_length: self.required(size)?,
            })),
        }
    }

    /// Checks the entry size that a tag states against the size of `T`, if the tag is there.
    fn check_entry_size<T>(&self, tag: DynamicTag) -> Result<(), ElfError> {
        let expected = size_of::<T>() as u64;
        match self.value(tag) {
            Some(found) if found != expected => Err(ElfError::EntrySize {
                tag: tag_name(tag),
                expected,
                found,
            }),
            _ => Ok(()),
        }
    }

    /// The entries of the table at `range`, whose size must be a whole number of them.
    fn table<T: Pod>(&self, tag: DynamicTag, range: TableRange) -> Result<&'a [T], ElfError> {
        let tag = tag_name(tag);
        let bytes = segment::dynamic_table(
            self.segments,
            self.file,
            tag,
            range.address,
            range.byte_length,
        )?;
        pod::slice_from_all_bytes(bytes).map_err(|()| ElfError::PartialEntry {
            tag,
            byte_length: range.byte_length,
            entry_size: size_of::<T>() as u64,
        })
    }

    fn strings(&self) -> Result<Option<&'a [u8]>, ElfError> {
        match self.range(elf::DT_STRTAB, elf::DT_STRSZ)? {
            None => Ok(None),
            Some(range) => self.table(elf::DT_STRTAB, range).map(Some),
        }
    }

    /// The strings at the offsets that every tag of one kind gives, in file order.
    fn strings_of(&self, tag: DynamicTag) -> Result<Vec<&'a [u8]>, ElfError> {
        let Some(strings) = self.strings()? else {
            return match self.value(tag) {
                None => Ok(Vec::new()),
                Some(_) => Err(ElfError::MissingTag { tag: "DT_STRTAB" }),
            };
        };
        let string = |(index, offset)| {
            symbol::string(strings, offset).map_err(|fault| ElfError::String {
                user: tag_name(tag),
                index,
                offset,
                fault,
            })
        };
        self.values(tag).enumerate().map(string).collect()
    }

    fn relocations(&self) -> Result<Relocations, ElfError> {
        let mut entries = Vec::new();
        let rel = self.range(elf::DT_REL, elf::DT_RELSZ)?;
        if let Some(range) = rel {
            self.check_entry_size::<E::Rel>(elf::DT_RELENT)?;
            self.read_rel(elf::DT_REL, range, &mut entries)?;
        }
        let rela = self.range(elf::DT_RELA, elf::DT_RELASZ)?;
        if let Some(range) = rela {
            self.check_entry_size::<E::Rela>(elf::DT_RELAENT)?;
            self.read_rela(elf::DT_RELA, range, &mut entries)?;
        }
        if let Some(range) = self.range(elf::DT_JMPREL, elf::DT_PLTRELSZ)? {
            self.read_jump_slots(range, rel, rela, &mut entries)?;
        }
        let packed = match self.range(elf::DT_RELR, elf::DT_RELRSZ)? {
            None => Vec::new(),
            Some(range) => {
                self.check_entry_size::<E::Relr>(elf::DT_RELRENT)?;
                let words = self.table::<E::Relr>(elf::DT_RELR, range)?;
                relocation::read_relr::<E>(words, self.endian())
            }
        };
        Ok(Relocations {
            entries,
            packed,
            class: self.target.class,
        })
    }

    /// Reads `DT_JMPREL`, in the format that `DT_PLTREL` names.
    ///
    /// Some linkers let the table be the tail of the main one; its entries are then known already,
    /// and applying them twice would add twice.
    fn read_jump_slots(
        &self,
        range: TableRange,
        rel: Option<TableRange>,
        rela: Option<TableRange>,
        entries: &mut Vec<Relocation>,
    ) -> Result<(), ElfError> {
        let format = self.required(elf::DT_PLTREL)?;
        let has_addends = if format == tag_value(elf::DT_RELA) {
            true
        } else if format == tag_value(elf::DT_REL) {
            false
        } else {
            return Err(ElfError::JumpSlotFormat { found: format });
        };
        let main = if has_addends { rela } else { rel };
        match main.map_or(Overlap::None, |main| overlap(main, range)) {
            Overlap::Inside => Ok(()),
            Overlap::Partial => Err(ElfError::TablesOverlap {
                first: if has_addends { "DT_RELA" } else { "DT_REL" },
                second: "DT_JMPREL",
            }),
            Overlap::None if has_addends => self.read_rela(elf::DT_JMPREL, range, entries),
            Overlap::None => self.read_rel(elf::DT_JMPREL, range, entries),
        }
    }

    fn read_rel(
        &self,
        tag: DynamicTag,
        range: TableRange,
        entries: &mut Vec<Relocation>,
    ) -> Result<(), ElfError> {
        let table = self.table::<E::Rel>(tag, range)?;
        entries.extend(
            table
                .iter()
                .map(|raw| Relocation::from_rel(raw, self.endian())),
        );
        Ok(())
    }

    fn read_rela(
        &self,
        tag: DynamicTag,
        range: TableRange,
        entries: &mut Vec<Relocation>,
    ) -> Result<(), ElfError> {
        let table = self.table::<E::Rela>(tag, range)?;
        entries.extend(
            table
                .iter()
                .map(|raw| Relocation::from_rela(raw, self.target)),
        );
        Ok(())
    }

    fn symbols(&self, relocations: &Relocations) -> Result<Option<Vec<Symbol<'a>>>, ElfError> {
        let Some(address) = self.value(elf::DT_SYMTAB) else {
            return Ok(None);
        };
        self.check_entry_size::<E::Sym>(elf::DT_SYMENT)?;
        let strings = self
            .strings()?
            .ok_or(ElfError::MissingTag { tag: "DT_STRTAB" })?;
        let count = match self.symbol_count()? {
            SymbolCount::Exact(count) => count,
            SymbolCount::AtLeast(count) => count.max(relocations.symbols_used()),
        };
        let byte_length = count.saturating_mul(size_of::<E::Sym>() as u64);
        let table = self.table::<E::Sym>(
            elf::DT_SYMTAB,
            TableRange {
                address,
                byte_length,
            },
        )?;
        symbol::read(table, self.endian(), strings).map(Some)
    }

    /// Asks a hash table how many symbols there are, since no tag says so.
    fn symbol_count(&self) -> Result<SymbolCount, ElfError> {
        let (tag, address) = if let Some(address) = self.value(elf::DT_HASH) {
            (elf::DT_HASH, address)
        } else if let Some(address) = self.value(elf::DT_GNU_HASH) {
            (elf::DT_GNU_HASH, address)
        } else {
            return Err(ElfError::MissingTag {
                tag: "DT_HASH or DT_GNU_HASH",
            });
        };
        let bytes = segment::bytes_from(self.segments, self.file, address).ok_or(
            ElfError::TableOutsideSegments {
                tag: tag_name(tag),
                address,
                byte_length: 8,
            },
        )?;
        let count = if tag == elf::DT_HASH {
            hash::sysv_symbol_count(bytes, self.target)
        } else {
            hash::gnu_symbol_count(bytes, self.target)
        };
        count.ok_or(ElfError::HashTable {
            tag: tag_name(tag),
            address,
        })
    }
}

/// How a table lies to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overlap {
    None,
    Inside,
    Partial,
}

/// How `inner` lies to `outer`. An end past the highest address counts as that address; reading
/// such a table fails anyway.
fn overlap(outer: TableRange, inner: TableRange) -> Overlap {
    let end = |range: TableRange| range.address.saturating_add(range.byte_length);
    if inner.address >= outer.address && end(inner) <= end(outer) {
        Overlap::Inside
    } else if inner.address < end(outer) && outer.address < end(inner) {
        Overlap::Partial
    } else {
        Overlap::None
    }
}

/// The whole entries at the start of `bytes`; a rest too short for one is not looked at.
fn whole_entries<T: Pod>(bytes: &[u8]) -> &[T] {
    let (entries, _) = pod::slice_from_bytes(bytes, bytes.len() / size_of::<T>())
        .expect("the count was computed from the length, and raw ELF structs need no alignment");
    entries
}

fn tag_name(tag: DynamicTag) -> &'static str {
    tag.name().unwrap_or("an unnamed tag")
}

/// Returns a tag as the value that another tag uses to name it.
fn tag_value(tag: DynamicTag) -> u64 {
    tag.0.cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_inside_partly_inside_or_apart() {
        let range = |address, byte_length| TableRange {
            address,
            byte_length,
        };
        assert_eq!(overlap(range(100, 48), range(124, 24)), Overlap::Inside);
        assert_eq!(overlap(range(100, 48), range(100, 48)), Overlap::Inside);
        assert_eq!(overlap(range(100, 48), range(124, 48)), Overlap::Partial);
        assert_eq!(overlap(range(100, 48), range(90, 24)), Overlap::Partial);
        assert_eq!(overlap(range(100, 48), range(148, 24)), Overlap::None);
        assert_eq!(overlap(range(100, 48), range(76, 24)), Overlap::None);
    }
}
