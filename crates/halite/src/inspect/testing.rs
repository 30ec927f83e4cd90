//! Fixtures of the repository, and small ELF images made word by word.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use vm_bytecode::{Archive, BytecodeVersion, Features, ModuleDef};

use super::{Content, Elf, Module, describe};

/// Returns the bytes of a file, by its path from the root of the repository.
pub(super) fn repository_file(path: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read(root.join(path)).unwrap()
}

/// Describes a module among the fixtures.
pub(super) fn fixture_module(path: &str) -> Module {
    module(&repository_file(&format!("tests/fixtures/{path}")))
}

#[track_caller]
pub(super) fn module(bytes: &[u8]) -> Module {
    match describe(bytes).unwrap().content {
        Content::Module(module) => *module,
        other => panic!("not a module: {other:?}"),
    }
}

/// Returns a fixture whose bytecode says to be of another version, as the file packs it.
pub(super) fn with_bytecode_version(path: &str, packed: u32) -> Vec<u8> {
    let wanted = BytecodeVersion::from_packed(packed);
    patched(path, 0x0011_0000, packed, |def| {
        def.bytecode_version == wanted
    })
}

/// Returns a fixture of features `UNWIND` that needs other features.
pub(super) fn with_features(path: &str, bits: u32) -> Vec<u8> {
    let wanted = Features::from_bits(bits);
    patched(path, Features::UNWIND.bits(), bits, |def| {
        def.features == wanted
    })
}

/// Replaces the one number `old` of a fixture that makes its description fit.
fn patched(path: &str, old: u32, new: u32, fits: impl Fn(&ModuleDef) -> bool) -> Vec<u8> {
    let file = repository_file(&format!("tests/fixtures/{path}"));
    let old = old.to_le_bytes();
    for place in (0..file.len() - 4).filter(|place| file[*place..].starts_with(&old)) {
        let mut patched = file.clone();
        patched[place..place + 4].copy_from_slice(&new.to_le_bytes());
        let archive = Archive::parse(&patched);
        let def = archive.map(|archive| ModuleDef::parse(&patched, archive));
        if matches!(def, Ok(Ok(def)) if fits(&def)) {
            return patched;
        }
    }
    panic!("the number was not found")
}

#[track_caller]
pub(super) fn elf(bytes: &[u8]) -> Elf {
    match describe(bytes).unwrap().content {
        Content::Elf(elf) => *elf,
        other => panic!("not an ELF image: {other:?}"),
    }
}

/// Where the data of an image starts, in the file and in memory.
const DATA: usize = 0x1000;
/// Where its code is in memory.
pub(super) const CODE: u64 = 0x80_0000;

/// A 64-bit little-endian shared object for x86-64 that exports one symbol.
pub(super) struct Image {
    symbol: &'static str,
    data: Vec<u8>,
    /// Places and what they point at.
    relocations: Vec<(u64, u64)>,
}

impl Image {
    pub(super) fn exporting(symbol: &'static str) -> Self {
        Self {
            symbol,
            data: Vec::new(),
            relocations: Vec::new(),
        }
    }

    /// Returns the address of what is added next.
    pub(super) fn here(&self) -> u64 {
        (DATA + self.data.len()) as u64
    }

    /// Adds bytes, padded to whole words, and returns their address.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> u64 {
        let address = self.here();
        self.data.extend(bytes);
        self.data.resize(self.data.len().next_multiple_of(8), 0);
        address
    }

    /// Adds a string with its terminator.
    pub(super) fn string(&mut self, text: &str) -> u64 {
        self.bytes(&[text.as_bytes(), b"\0"].concat())
    }

    /// Adds a number and returns its address.
    pub(super) fn word(&mut self, value: u64) -> u64 {
        self.bytes(&value.to_le_bytes())
    }

    /// Adds this many zeros.
    pub(super) fn zeros(&mut self, count: usize) {
        self.bytes(&vec![0; count * 8]);
    }

    /// Adds a pointer and returns its address.
    pub(super) fn pointer(&mut self, to: u64) -> u64 {
        let place = self.word(0);
        self.relocations.push((place, to));
        place
    }

    /// Returns the file.
    pub(super) fn build(&self) -> Vec<u8> {
        let words = |values: &[u64]| -> Vec<u8> {
            values
                .iter()
                .flat_map(|value| value.to_le_bytes())
                .collect()
        };
        let rela_address = self.here();
        let rela: Vec<u8> = self
            .relocations
            .iter()
            // R_X86_64_RELATIVE.
            .flat_map(|&(place, to)| words(&[place, 8, to]))
            .collect();
        let data_length = DATA + self.data.len() + rela.len();
        let code_offset = data_length.next_multiple_of(0x1000);

        let strings = [b"\0", self.symbol.as_bytes(), b"\0"].concat();
        let (symtab, hash, strtab, dynamic): (usize, usize, usize, usize) =
            (0x200, 0x280, 0x300, 0x400);
        // The name is at 1; a global function in section 1.
        let symbol = words(&[1 | 0x12 << 32 | 1 << 48, CODE, 0]);
        let hash_table: Vec<u8> = [1u32, 2, 1, 0, 0]
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        let dynamic_table = words(&[
            6,
            symtab as u64,
            11,
            24,
            4,
            hash as u64,
            5,
            strtab as u64,
            10,
            strings.len() as u64,
            7,
            rela_address,
            8,
            rela.len() as u64,
            9,
            24,
            0,
            0,
        ]);

        let mut file = vec![0; DATA];
        let mut put = |offset: usize, bytes: &[u8]| {
            file[offset..][..bytes.len()].copy_from_slice(bytes);
        };
        put(0, b"\x7FELF\x02\x01\x01");
        // A shared object for x86-64, version 1.
        put(16, &words(&[3 | 62 << 16 | 1 << 32, 0, 64, 0]));
        // The sizes of this header and of program headers, of which there are three.
        put(48, &words(&[64 << 32 | 56 << 48, 3 | 64 << 16]));
        let segment = |kind: u64, flags: u64, offset: usize, address: u64, length: usize| {
            let (offset, length) = (offset as u64, length as u64);
            words(&[
                kind | flags << 32,
                offset,
                address,
                address,
                length,
                length,
                0x1000,
            ])
        };
        put(64, &segment(1, 6, 0, 0, data_length));
        put(120, &segment(1, 5, code_offset, CODE, 16));
        put(
            176,
            &segment(2, 6, dynamic, dynamic as u64, dynamic_table.len()),
        );
        put(symtab + 24, &symbol);
        put(hash, &hash_table);
        put(strtab, &strings);
        put(dynamic, &dynamic_table);
        file.extend(&self.data);
        file.extend(rela);
        file.resize(code_offset + 16, 0xC3);
        file
    }
}
