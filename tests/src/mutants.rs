//! Mutants of real files: modules, executables, plugins and arrays with flipped bits, cut ends and edited fields.
//!
//! A mutant is known by its number alone, so that one that breaks something can be made again. No machine code of a
//! mutant runs: bytecode is run with a budget, images are laid out in a block of the heap.
#![expect(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    reason = "a value that is missing ends the campaign"
)]

use std::ops::Range;

use hal_elf::{ElfFile, SegmentKind};
use vm_bytecode::Archive;

use crate::fuzz::{Outcome, Target, fixtures};

/// Files of one kind, and what is done with their mutants.
#[derive(Debug)]
pub struct Kind {
    /// What they are.
    pub name: &'static str,
    /// The targets that mutants are given to, with what stands before the file there.
    targets: &'static [(&'static str, &'static [u8])],
    files: Vec<File>,
}

/// A file and where its numbers are.
#[derive(Debug)]
struct File {
    bytes: Vec<u8>,
    fields: Vec<Range<usize>>,
}

/// A mutant of a file.
#[derive(Debug)]
pub struct Mutant<'a> {
    kind: &'a Kind,
    /// What was done to the file, for people.
    pub history: String,
    bytes: Vec<u8>,
}

/// All kinds. `plugins` are the bytes of built sample plugins, of which the repository holds only the sources.
#[must_use]
pub fn kinds(plugins: Vec<Vec<u8>>) -> Vec<Kind> {
    let images = || {
        let mut images = fixtures("crates/hal-elf/tests/fixtures", ".so");
        images.extend(fixtures("crates/hal-local/tests/fixtures", ".so"));
        images
    };
    let kind = |name, targets, files: Vec<Vec<u8>>, fields: fn(&[u8]) -> Vec<Range<usize>>| {
        let file = |bytes: Vec<u8>| File {
            fields: fields(&bytes),
            bytes,
        };
        let files = files.into_iter().filter(|bytes| !bytes.is_empty());
        Kind {
            name,
            targets,
            files: files.map(file).collect(),
        }
    };
    let arrays = Target::find("npy").unwrap().inputs();
    let arrays = arrays.into_iter().map(|(_, bytes)| bytes).collect();
    let fat = Target::find("fat_elf").unwrap().inputs();
    let fat = fat.into_iter().map(|(_, bytes)| bytes).collect();
    let mut modules = fixtures("tests/fixtures", ".vmfb");
    modules.extend(fixtures("crates/vm-bytecode/tests/fixtures", ".vmfb"));
    let mut kinds = vec![
        kind(
            "modules",
            &[("verify", b""), ("inspect", b""), ("session", b"")],
            modules,
            module_fields,
        ),
        kind(
            "bytecode",
            // The target takes a whole file after this byte.
            &[("verify", b""), ("run", b"\xFF")],
            [
                fixtures("crates/vm-bytecode/tests/ops", ".vmfb"),
                fixtures("crates/vm-vmvx/tests", ".vmfb"),
            ]
            .concat(),
            module_fields,
        ),
        kind(
            "executables",
            &[
                ("elf_parse", b""),
                ("elf_relocate", b"\x7F"),
                ("inspect", b""),
            ],
            images(),
            image_fields,
        ),
        kind(
            "fat executables",
            &[("fat_elf", b""), ("inspect", b"")],
            fat,
            every_word,
        ),
        kind(
            "arrays",
            &[("npy", b""), ("inspect", b"")],
            arrays,
            every_word,
        ),
        kind(
            "plugins",
            &[
                ("elf_parse", b""),
                ("elf_relocate", b"\x7F"),
                ("inspect", b""),
            ],
            plugins,
            image_fields,
        ),
    ];
    kinds.retain(|kind| !kind.files.is_empty());
    kinds
}

/// Makes the mutant of a number.
#[must_use]
pub fn mutant(kinds: &[Kind], number: u64) -> Mutant<'_> {
    let mut random = Random(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D);
    let kind = &kinds[usize::try_from(number).unwrap_or(0) % kinds.len()];
    let index = random.below(kind.files.len());
    let file = &kind.files[index];
    let mut bytes = file.bytes.clone();
    let mut history = format!("{} {index}", kind.name);
    for _ in 0..=random.below(3) {
        mutate(&mut bytes, &file.fields, &mut random, &mut history);
    }
    Mutant {
        kind,
        history,
        bytes,
    }
}

impl Mutant<'_> {
    /// Returns the name of its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.kind.name
    }

    /// Gives the mutant to all targets of its kind, and returns the furthest that it came.
    #[must_use]
    pub fn exercise(&self) -> Outcome {
        let mut furthest = Outcome::Refused;
        for (target, prefix) in self.kind.targets {
            let target = Target::find(target).unwrap();
            let outcome = target.exercise(&[prefix, &self.bytes[..]].concat());
            furthest = match (furthest, outcome) {
                (Outcome::Ran, _) | (_, Outcome::Ran) => Outcome::Ran,
                (Outcome::Taken, _) | (_, Outcome::Taken) => Outcome::Taken,
                _ => Outcome::Refused,
            };
        }
        furthest
    }
}

/// Changes a file once.
fn mutate(bytes: &mut Vec<u8>, fields: &[Range<usize>], random: &mut Random, history: &mut String) {
    if bytes.is_empty() {
        return;
    }
    let fields: Vec<Range<usize>> = fields
        .iter()
        .filter(|field| field.end <= bytes.len())
        .cloned()
        .collect();
    let is_fielded = !fields.is_empty();
    match random.below(10) {
        0..=1 => {
            let (at, bit) = (random.below(bytes.len()), random.below(8));
            bytes[at] ^= 1 << bit;
            *history += &format!(", bit {bit} of {at:#x} flipped");
        }
        2 => {
            bytes.truncate(random.below(bytes.len()));
            *history += &format!(", cut to {:#x}", bytes.len());
        }
        3 => {
            let length = random.below(64).min(bytes.len() - 1);
            let (from, to) = (
                random.below(bytes.len() - length),
                random.below(bytes.len() - length),
            );
            bytes.copy_within(from..from + length, to);
            *history += &format!(", {length} bytes copied from {from:#x} to {to:#x}");
        }
        4 if is_fielded => {
            let one = fields[random.below(fields.len())].clone();
            let other = fields[random.below(fields.len())].clone();
            let length = one.len().min(other.len());
            let value = bytes[one.clone()][..length].to_vec();
            bytes[other.start..other.start + length].copy_from_slice(&value);
            *history += &format!(", field {:#x} copied to {:#x}", one.start, other.start);
        }
        _ if is_fielded => {
            let field = fields[random.below(fields.len())].clone();
            let mut wide = [0; 8];
            wide[..field.len()].copy_from_slice(&bytes[field.clone()]);
            let old = u64::from_le_bytes(wide);
            let value = value_near(old, bytes.len() as u64, random);
            *history += &format!(", field {:#x} from {old:#x} to {value:#x}", field.start);
            let length = field.len();
            bytes[field].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        _ => {
            let at = random.below(bytes.len());
            bytes[at] = random.byte();
            *history += &format!(", byte {at:#x} set to {:#x}", bytes[at]);
        }
    }
}

/// Returns a value that lengths, offsets, counts and indices go wrong with.
fn value_near(old: u64, length: u64, random: &mut Random) -> u64 {
    match random.below(16) {
        0 => 0,
        1 => old.wrapping_add(1),
        2 => old.wrapping_sub(1),
        3 => u64::MAX,
        4 => 0x7FFF_FFFF,
        5 => 0x8000_0000,
        6 => 1 << 63,
        7 => length,
        8 => length.wrapping_sub(old),
        9 => length.wrapping_sub(1),
        10 => old.wrapping_mul(2),
        11 => old ^ 0x8000,
        12 => 0xFFFF_FFFC,
        13 => old.wrapping_add(8),
        14 => 0u64.wrapping_sub(random.below(64) as u64),
        _ => random.next(),
    }
}

/// The numbers of a module: the words of its description, and the operands of its instructions.
fn module_fields(bytes: &[u8]) -> Vec<Range<usize>> {
    let flatbuffer = Archive::parse(bytes).map_or(0..bytes.len(), |archive| archive.flatbuffer());
    let small = |width: usize| {
        let flatbuffer = flatbuffer.clone();
        let starts = flatbuffer
            .step_by(width)
            .filter(move |at| at + width <= bytes.len());
        starts.map(move |at| at..at + width).filter(move |field| {
            // Offsets, counts, lengths and indices are small; text and floats are not.
            bytes[field.clone()][width - 1] == 0
        })
    };
    let headers = (0..flatbuffer.start / 4).map(|word| word * 4..word * 4 + 4);
    headers.chain(small(4)).chain(small(2)).collect()
}

/// The numbers of an image: headers, segments, and the tables in and after them.
fn image_fields(bytes: &[u8]) -> Vec<Range<usize>> {
    let Ok(file) = ElfFile::parse(bytes) else {
        return every_word(bytes);
    };
    let is_64 = bytes[4] == 2;
    let mut fields = vec![16..18, 18..20, 20..24];
    if is_64 {
        fields.extend([24..32, 32..40, 40..48]);
        fields.extend((52..64).step_by(2).map(|at| at..at + 2));
    } else {
        fields.extend([24..28, 28..32, 32..36]);
        fields.extend((40..52).step_by(2).map(|at| at..at + 2));
    }
    let width = if is_64 { 8 } else { 4 };
    let words = |range: Range<usize>| {
        let end = range.end.min(bytes.len());
        (range.start..end.saturating_sub(width - 1))
            .step_by(width)
            .map(move |at| at..at + width)
    };
    let header_end = if is_64 { 64 } else { 52 };
    let size = if is_64 { 56 } else { 32 };
    fields.extend(words(header_end..header_end + size * file.segments().len()));
    for segment in file.segments() {
        let start = usize::try_from(segment.file_offset).unwrap();
        let length = usize::try_from(segment.file_size).unwrap();
        // Code is not looked at; tables come first in the segment that holds them.
        let length = match segment.kind {
            SegmentKind::DYNAMIC => length,
            SegmentKind::LOAD => length.min(0x800),
            _ => 0,
        };
        fields.extend(words(start..start + length));
    }
    fields
}

/// All words of a file, wherever they may be.
fn every_word(bytes: &[u8]) -> Vec<Range<usize>> {
    let words = (0..bytes.len().min(0x400) / 4).map(|word| word * 4..word * 4 + 4);
    words.collect()
}

/// The SplitMix64 generator: good enough to choose, and the same everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        let limit = limit.max(1) as u64;
        usize::try_from(self.next() % limit).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
