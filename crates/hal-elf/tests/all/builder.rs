//! A builder of small ELF files, of either class and byte order, byte by byte.
//!
//! A built file is its own memory image: file offset and address differ by `base` only. The default
//! layout, which a test may replace, is one page each of
//!
//! | address | segment | contents |
//! |---|---|---|
//! | base + 0 | read | headers and every table of the dynamic section |
//! | base + 0x1000 | read, execute | code |
//! | base + 0x2000 | read, write | data |

use std::borrow::Cow;

use hal_elf::{ByteOrder, Class, Machine, Target};

pub(crate) const PT_LOAD: u32 = 1;
pub(crate) const PT_DYNAMIC: u32 = 2;
pub(crate) const PT_TLS: u32 = 7;
pub(crate) const PT_GNU_RELRO: u32 = 0x6474_E552;

pub(crate) const R: u32 = 4;
pub(crate) const RW: u32 = 6;
pub(crate) const RX: u32 = 5;
pub(crate) const RWX: u32 = 7;

pub(crate) const DT_NULL: u64 = 0;
pub(crate) const DT_NEEDED: u64 = 1;
pub(crate) const DT_PLTRELSZ: u64 = 2;
pub(crate) const DT_HASH: u64 = 4;
pub(crate) const DT_STRTAB: u64 = 5;
pub(crate) const DT_SYMTAB: u64 = 6;
pub(crate) const DT_RELA: u64 = 7;
pub(crate) const DT_RELASZ: u64 = 8;
pub(crate) const DT_RELAENT: u64 = 9;
pub(crate) const DT_STRSZ: u64 = 10;
pub(crate) const DT_SYMENT: u64 = 11;
pub(crate) const DT_INIT: u64 = 12;
pub(crate) const DT_SONAME: u64 = 14;
pub(crate) const DT_REL: u64 = 17;
pub(crate) const DT_RELSZ: u64 = 18;
pub(crate) const DT_RELENT: u64 = 19;
pub(crate) const DT_PLTREL: u64 = 20;
pub(crate) const DT_JMPREL: u64 = 23;
pub(crate) const DT_INIT_ARRAY: u64 = 25;
pub(crate) const DT_INIT_ARRAYSZ: u64 = 27;
pub(crate) const DT_RELRSZ: u64 = 35;
pub(crate) const DT_RELR: u64 = 36;
pub(crate) const DT_RELRENT: u64 = 37;
pub(crate) const DT_GNU_HASH: u64 = 0x6FFF_FEF5;

pub(crate) const X86_64: Target = Target {
    machine: Machine::X86_64,
    class: Class::Elf64,
    byte_order: ByteOrder::Little,
};
pub(crate) const X86_32: Target = Target {
    machine: Machine::X86_32,
    class: Class::Elf32,
    byte_order: ByteOrder::Little,
};
pub(crate) const ARM_64: Target = Target {
    machine: Machine::ARM_64,
    class: Class::Elf64,
    byte_order: ByteOrder::Little,
};
pub(crate) const ARM_32: Target = Target {
    machine: Machine::ARM_32,
    class: Class::Elf32,
    byte_order: ByteOrder::Little,
};
pub(crate) const RISCV_64: Target = Target {
    machine: Machine::RISCV,
    class: Class::Elf64,
    byte_order: ByteOrder::Little,
};
pub(crate) const RISCV_32: Target = Target {
    machine: Machine::RISCV,
    class: Class::Elf32,
    byte_order: ByteOrder::Little,
};

/// Where code goes by default, from the base.
pub(crate) const TEXT: u64 = 0x1000;
/// Where data goes by default, from the base.
pub(crate) const DATA: u64 = 0x2000;

/// Which hash tables a built file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hash {
    None,
    Sysv,
    Gnu,
    /// A GNU table that lists no symbol, as linkers make it for a file that exports nothing.
    EmptyGnu,
}

/// One program header; the address is from the base.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    pub(crate) kind: u32,
    pub(crate) flags: u32,
    pub(crate) start: u64,
    /// Where its bytes are in the file: at `start`, but for a segment without any.
    pub(crate) file_offset: u64,
    pub(crate) file_size: u64,
    pub(crate) memory_size: u64,
    pub(crate) alignment: u64,
}

/// A loadable segment whose bytes are all in the file, aligned to a small page.
pub(crate) fn load(flags: u32, start: u64, size: u64) -> Segment {
    Segment {
        kind: PT_LOAD,
        flags,
        start,
        file_offset: start,
        file_size: size,
        memory_size: size,
        alignment: 0x1000,
    }
}

/// A loadable segment of zeroes.
pub(crate) fn load_zeroes(flags: u32, start: u64, size: u64) -> Segment {
    Segment {
        file_offset: 0,
        file_size: 0,
        ..load(flags, start, size)
    }
}

/// One relocation: place, type, symbol and, in a RELA table, addend.
pub(crate) type Entry = (u64, u32, u32, i64);

/// A file under construction. All fields may be changed until [`Builder::finish`].
#[derive(Clone, Debug)]
pub(crate) struct Builder {
    pub(crate) target: Target,
    pub(crate) base: u64,
    pub(crate) file_type: u16,
    pub(crate) with_section_headers: bool,
    pub(crate) segments: Vec<Segment>,
    pub(crate) hash: Hash,
    /// Name, address, section index, binding and type, in table order; symbol 0 is added.
    pub(crate) symbols: Vec<(Cow<'static, str>, u64, u16, u8)>,
    pub(crate) rel: Vec<Entry>,
    pub(crate) rela: Vec<Entry>,
    /// The jump slots, and whether they have addends.
    pub(crate) jump_slots: (Vec<Entry>, bool),
    pub(crate) relr: Vec<u64>,
    /// Further tags, before the ones the builder makes, so that these win.
    pub(crate) tags: Vec<(u64, u64)>,
    memory: Vec<u8>,
}

impl Builder {
    /// A file of three pages that exports `answer`, a function that returns 42 on x86.
    pub(crate) fn new(target: Target) -> Self {
        let mut builder = Self {
            target,
            base: 0,
            file_type: 3,
            with_section_headers: true,
            segments: vec![
                load(R, 0, 0x1000),
                load(RX, TEXT, 0x1000),
                load(RW, DATA, 0x1000),
            ],
            hash: Hash::Sysv,
            symbols: Vec::new(),
            rel: Vec::new(),
            rela: Vec::new(),
            jump_slots: (Vec::new(), true),
            relr: Vec::new(),
            tags: Vec::new(),
            memory: vec![0; 0x3000],
        };
        // mov eax, 42; ret
        builder.put(TEXT, &[0xB8, 42, 0, 0, 0, 0xC3]);
        builder.export("answer", TEXT);
        builder
    }

    /// Adds an exported function.
    pub(crate) fn export(&mut self, name: impl Into<Cow<'static, str>>, address: u64) {
        self.symbols.push((name.into(), address, 1, 0x12));
    }

    /// Adds an undefined symbol.
    pub(crate) fn import(&mut self, name: impl Into<Cow<'static, str>>) {
        self.symbols.push((name.into(), 0, 0, 0x10));
    }

    /// Puts bytes at an address, from the base.
    pub(crate) fn put(&mut self, address: u64, bytes: &[u8]) {
        let start = usize::try_from(address).unwrap();
        let end = start + bytes.len();
        if self.memory.len() < end {
            self.memory.resize(end, 0);
        }
        self.memory[start..end].copy_from_slice(bytes);
    }

    /// Puts a word of the class at an address, from the base.
    pub(crate) fn put_word(&mut self, address: u64, value: u64) {
        let bytes = self.word(value);
        self.put(address, &bytes);
    }

    fn number(&self, value: u64, size: usize) -> Vec<u8> {
        match self.target.byte_order {
            ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
            ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
        }
    }

    fn word(&self, value: u64) -> Vec<u8> {
        self.number(value, self.target.class.word_size())
    }

    fn u16(&self, value: u64) -> Vec<u8> {
        self.number(value, 2)
    }

    fn u32(&self, value: u64) -> Vec<u8> {
        self.number(value, 4)
    }

    fn is_64(&self) -> bool {
        self.target.class == Class::Elf64
    }

    /// The bytes of the file.
    pub(crate) fn finish(&self) -> Vec<u8> {
        let mut file = self.clone();
        let mut tags = self.tags.clone();
        let mut cursor = 0x300;
        let mut place = |file: &mut Self, bytes: &[u8]| {
            let address = cursor;
            file.put(address, bytes);
            cursor = (address + bytes.len() as u64).next_multiple_of(8);
            assert!(
                cursor <= 0x1000,
                "the tables of a built file fit in its first page"
            );
            file.base + address
        };

        let (strings, names) = self.string_table();
        let symbols = self.symbol_table(&names);
        tags.push((DT_STRTAB, place(&mut file, &strings)));
        tags.push((DT_STRSZ, strings.len() as u64));
        tags.push((DT_SYMTAB, place(&mut file, &symbols)));
        tags.push((DT_SYMENT, if self.is_64() { 24 } else { 16 }));
        match self.hash {
            Hash::None => {}
            Hash::Sysv => tags.push((DT_HASH, place(&mut file, &self.sysv_hash()))),
            Hash::Gnu => tags.push((DT_GNU_HASH, place(&mut file, &self.gnu_hash()))),
            Hash::EmptyGnu => tags.push((DT_GNU_HASH, place(&mut file, &self.empty_gnu_hash()))),
        }
        let (jump_slots, jump_slots_have_addends) = &self.jump_slots;
        let tables = [
            (&self.rel, false, DT_REL, DT_RELSZ, Some(DT_RELENT)),
            (&self.rela, true, DT_RELA, DT_RELASZ, Some(DT_RELAENT)),
            (
                jump_slots,
                *jump_slots_have_addends,
                DT_JMPREL,
                DT_PLTRELSZ,
                None,
            ),
        ];
        for (entries, has_addends, address_tag, size_tag, entry_tag) in tables {
            if entries.is_empty() {
                continue;
            }
            let bytes = self.relocation_table(entries, has_addends);
            tags.push((address_tag, place(&mut file, &bytes)));
            tags.push((size_tag, bytes.len() as u64));
            if let Some(entry_tag) = entry_tag {
                tags.push((entry_tag, (bytes.len() / entries.len()) as u64));
            } else {
                tags.push((DT_PLTREL, if has_addends { DT_RELA } else { DT_REL }));
            }
        }
        if !self.relr.is_empty() {
            let bytes: Vec<u8> = self.relr.iter().flat_map(|&word| self.word(word)).collect();
            tags.push((DT_RELR, place(&mut file, &bytes)));
            tags.push((DT_RELRSZ, bytes.len() as u64));
            tags.push((DT_RELRENT, self.target.class.word_size() as u64));
        }
        tags.push((DT_NULL, 0));
        let dynamic: Vec<u8> = tags
            .iter()
            .flat_map(|&(tag, value)| [self.word(tag), self.word(value)].concat())
            .collect();
        let dynamic_address = place(&mut file, &dynamic) - self.base;
        let size = dynamic.len() as u64;
        file.segments.push(Segment {
            kind: PT_DYNAMIC,
            ..load(RW, dynamic_address, size)
        });
        file.write_headers();
        file.memory
    }

    fn write_headers(&mut self) {
        let (header_size, program_header_size, section_header_size) = if self.is_64() {
            (64, 56, 64)
        } else {
            (52, 32, 40)
        };
        let mut section_offset = 0;
        if self.with_section_headers {
            section_offset = self.memory.len() as u64;
            self.memory
                .resize(self.memory.len() + section_header_size, 0);
        }
        let class = if self.is_64() { 2 } else { 1 };
        let byte_order = if self.target.byte_order == ByteOrder::Little {
            1
        } else {
            2
        };
        let mut header = vec![0x7F, b'E', b'L', b'F', class, byte_order, 1, 0];
        header.resize(16, 0);
        header.extend(self.u16(self.file_type.into()));
        header.extend(self.u16(self.target.machine.0.into()));
        header.extend(self.u32(1));
        header.extend(self.word(0));
        header.extend(self.word(header_size));
        header.extend(self.word(section_offset));
        header.extend(self.u32(0));
        header.extend(self.u16(header_size));
        header.extend(self.u16(program_header_size));
        header.extend(self.u16(self.segments.len() as u64));
        header.extend(self.u16(section_header_size as u64));
        header.extend(self.u16(self.with_section_headers.into()));
        header.extend(self.u16(0));
        assert_eq!(header.len() as u64, header_size);
        for segment in &self.segments {
            let address = self.word(self.base + segment.start);
            let flags = self.u32(segment.flags.into());
            header.extend(self.u32(segment.kind.into()));
            if self.is_64() {
                header.extend(&flags);
            }
            header.extend(self.word(segment.file_offset));
            header.extend(&address);
            header.extend(&address);
            header.extend(self.word(segment.file_size));
            header.extend(self.word(segment.memory_size));
            if !self.is_64() {
                header.extend(&flags);
            }
            header.extend(self.word(segment.alignment));
        }
        assert!(
            header.len() <= 0x300,
            "the headers of a built file fit before its tables"
        );
        self.put(0, &header);
    }

    fn string_table(&self) -> (Vec<u8>, Vec<u64>) {
        // Two strings that tests of DT_NEEDED and DT_SONAME use, at 1 and 8.
        let mut strings = b"\0lib.so\0self.so\0".to_vec();
        let mut offsets = Vec::new();
        for (name, ..) in &self.symbols {
            offsets.push(strings.len() as u64);
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        (strings, offsets)
    }

    fn symbol_table(&self, names: &[u64]) -> Vec<u8> {
        let mut table = vec![0; if self.is_64() { 24 } else { 16 }];
        for (&(_, address, section, info), &name) in self.symbols.iter().zip(names) {
            let moves = section != 0 && section < 0xFF00;
            let value = if moves {
                self.base.wrapping_add(address)
            } else {
                address
            };
            table.extend(self.u32(name));
            if self.is_64() {
                table.extend([info, 0]);
                table.extend(self.u16(section.into()));
                table.extend(self.word(value));
                table.extend(self.word(0));
            } else {
                table.extend(self.word(value));
                table.extend(self.word(0));
                table.extend([info, 0]);
                table.extend(self.u16(section.into()));
            }
        }
        table
    }

    fn sysv_hash(&self) -> Vec<u8> {
        let count = self.symbols.len() as u64 + 1;
        let mut words = vec![1, count, u64::from(count > 1)];
        words.resize(3 + self.symbols.len() + 1, 0);
        words.iter().flat_map(|&word| self.u32(word)).collect()
    }

    /// A table of one bucket whose chain is every defined symbol; undefined ones must come first.
    fn gnu_hash(&self) -> Vec<u8> {
        let undefined = self
            .symbols
            .iter()
            .take_while(|symbol| symbol.2 == 0)
            .count();
        let defined = self.symbols.len() - undefined;
        let first = undefined as u64 + 1;
        let header = [1, first, 1, 6].map(|word| self.u32(word)).concat();
        let mut chain = vec![0x10; defined];
        *chain.last_mut().unwrap() |= 1;
        let chain = chain.iter().flat_map(|&word| self.u32(word)).collect();
        [header, self.word(u64::MAX), self.u32(first), chain].concat()
    }

    fn empty_gnu_hash(&self) -> Vec<u8> {
        let header = [1, 1, 1, 0].map(|word| self.u32(word)).concat();
        [header, self.word(0), self.u32(0)].concat()
    }

    fn relocation_table(&self, entries: &[Entry], has_addends: bool) -> Vec<u8> {
        let mut table = Vec::new();
        for &(offset, kind, symbol, addend) in entries {
            let (kind, symbol) = (u64::from(kind), u64::from(symbol));
            let info = if self.is_64() {
                symbol << 32 | kind
            } else {
                symbol << 8 | kind
            };
            table.extend(self.word(self.base.wrapping_add(offset)));
            table.extend(self.word(info));
            if has_addends {
                table.extend(self.word(addend.cast_unsigned()));
            }
        }
        table
    }
}
