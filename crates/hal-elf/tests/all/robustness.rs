//! Hostile files: every outcome is a value or an error. Nothing here runs foreign code.

use hal_elf::{ElfFile, FatElf, LoadPlan, SegmentKind, Target};
use proptest::prelude::*;

use crate::PAGE_SIZE;
use crate::builder::{ARM_32, Builder, DATA, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, Hash, X86_64};
use crate::fixtures::FIXTURES;

/// Does everything with a file that can be done without running it.
fn exercise(bytes: &[u8]) {
    let Ok(file) = ElfFile::parse(bytes) else {
        return;
    };
    let _ = (file.relocation_counts(), file.packed_relocation_count());
    let _ = file
        .undefined_symbols()
        .chain(file.exported_symbols())
        .count();
    let Ok(plan) = LoadPlan::new(&file, PAGE_SIZE) else {
        return;
    };
    let mut memory = vec![0; plan.byte_length()];
    if plan.write_image(&mut memory, 0x7F12_3456_7000).is_ok() {
        let _ = plan.initializers(&memory, 0x7F12_3456_7000);
    }
}

/// A built file with every kind of table the fixtures lack.
fn rich(target: Target) -> Vec<u8> {
    let mut builder = Builder::new(target);
    builder.hash = if target == X86_64 {
        Hash::Gnu
    } else {
        Hash::Sysv
    };
    builder.relr = vec![DATA, 0b1011];
    if target == X86_64 {
        builder.rela = vec![(DATA + 0x40, 1, 1, 0), (DATA + 0x48, 2, 1, 0)];
        builder.jump_slots = (vec![(DATA + 0x50, 7, 1, 0)], true);
    } else {
        builder.rel = vec![(DATA + 0x40, 2, 1, 0), (DATA + 0x48, 3, 1, 0)];
        builder.jump_slots = (vec![(DATA + 0x50, 22, 1, 0)], false);
    }
    builder.tags = vec![(DT_INIT_ARRAY, DATA), (DT_INIT_ARRAYSZ, 16)];
    builder.finish()
}

fn subjects() -> Vec<(String, Vec<u8>)> {
    let fixtures = FIXTURES
        .iter()
        .map(|&(name, bytes)| (name.to_owned(), bytes.to_vec()));
    let built = [X86_64, ARM_32].map(|target| (format!("built for {target}"), rich(target)));
    fixtures.chain(built).collect()
}

/// The parts of a file that the parser reads: everything before the code, and the dynamic section.
fn structure(bytes: &[u8]) -> Vec<usize> {
    let file = ElfFile::parse(bytes).unwrap();
    let range = |start: u64, size: u64| {
        usize::try_from(start).unwrap()..usize::try_from(start + size).unwrap()
    };
    let first = file
        .segments()
        .iter()
        .find(|segment| segment.kind == SegmentKind::LOAD)
        .unwrap();
    let dynamic = file
        .segments()
        .iter()
        .find(|segment| segment.kind == SegmentKind::DYNAMIC)
        .unwrap();
    let tables_end = first.file_size.min(0x600);
    range(first.file_offset, tables_end)
        .chain(range(dynamic.file_offset, dynamic.file_size))
        .collect()
}

#[test]
fn the_files_to_be_broken_are_whole() {
    for (name, bytes) in subjects() {
        assert!(crate::write_image(&bytes, 0x1000).is_ok(), "{name}");
    }
}

#[test]
fn a_changed_byte_anywhere_in_the_structure_is_harmless() {
    for (_, mut bytes) in subjects() {
        for at in structure(&bytes) {
            let original = bytes[at];
            for value in [
                0,
                1,
                0x7F,
                0x80,
                0xFF,
                original ^ 1,
                original.wrapping_add(8),
            ] {
                bytes[at] = value;
                exercise(&bytes);
            }
            bytes[at] = original;
        }
    }
}

#[test]
fn a_changed_word_anywhere_in_the_structure_is_harmless() {
    for (_, mut bytes) in subjects() {
        let places = structure(&bytes);
        for at in places
            .into_iter()
            .step_by(4)
            .filter(|at| at + 8 <= bytes.len())
            .collect::<Vec<_>>()
        {
            let original: [u8; 8] = *bytes[at..].first_chunk().unwrap();
            for value in [
                u64::MAX,
                u64::MAX - 7,
                1 << 63,
                0x7FFF_FFFF_FFFF_FFFF,
                0xFFFF_FFFF,
                0x1000,
            ] {
                bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
                exercise(&bytes);
            }
            bytes[at..at + 8].copy_from_slice(&original);
        }
    }
}

#[test]
fn a_file_cut_anywhere_is_harmless() {
    for (_, bytes) in subjects() {
        for length in (0..bytes.len()).step_by(16) {
            exercise(&bytes[..length]);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        exercise(&bytes);
        let _ = FatElf::parse(&bytes).and_then(|file| file.select(Target::HOST));
    }

    #[test]
    fn any_bytes_behind_a_valid_identification_are_parsed_or_refused(
        class in 1..=2_u8,
        byte_order in 1..=2_u8,
        rest in prop::collection::vec(any::<u8>(), 0..512),
    ) {
        let mut bytes = vec![0x7F, b'E', b'L', b'F', class, byte_order, 1];
        bytes.extend(rest);
        exercise(&bytes);
    }

    #[test]
    fn any_fat_table_is_parsed_or_refused(rest in prop::collection::vec(any::<u8>(), 0..256)) {
        let mut bytes = vec![0xFA, 0x70, 0x0E, 0x1F, 1, 0];
        bytes.extend(rest);
        let _ = FatElf::parse(&bytes).and_then(|file| file.select(Target::HOST));
    }

    #[test]
    fn several_changes_at_once_are_harmless(
        subject in 0..6_usize,
        changes in prop::collection::vec((0..0x700_usize, any::<u8>()), 1..8),
    ) {
        let mut bytes = subjects().swap_remove(subject).1;
        let length = bytes.len();
        for (at, value) in changes {
            bytes[at % length] = value;
        }
        exercise(&bytes);
    }
}
