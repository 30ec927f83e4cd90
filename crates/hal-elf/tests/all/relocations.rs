//! The relocation types of every machine, applied to heap buffers.

use hal_abi::StatusCode;
use hal_elf::{ByteOrder, Class, ElfError, ElfFile, Machine, RelocationKind, Target};
use proptest::prelude::*;

use crate::builder::{
    ARM_32, ARM_64, Builder, DATA, DT_JMPREL, DT_PLTREL, DT_PLTRELSZ, DT_RELA, DT_RELASZ, RISCV_32,
    RISCV_64, TEXT, X86_32, X86_64,
};
use crate::load_error;

/// Where the image of a 64-bit file runs in these tests, and that of a 32-bit one.
const HIGH: u64 = 0x7FAB_0000_0000;
const LOW: u64 = 0x0BAB_0000;

/// Symbols of the test file: 1 is `answer`, 2 an absolute number.
const ANSWER: u32 = 1;
const NUMBER: u32 = 2;
const NUMBER_VALUE: u64 = 0x1234;

/// How a table gives its addends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Format {
    Rel,
    Rela,
}

fn builder(target: Target, format: Format, entries: &[crate::builder::Entry]) -> Builder {
    let mut builder = Builder::new(target);
    // An image base other than 0 tells the load bias from the load address.
    builder.base = 0x40_0000;
    builder
        .symbols
        .push(("number".into(), NUMBER_VALUE, 0xFFF1, 0x11));
    match format {
        Format::Rel => {
            builder.rel = entries.to_vec();
            for &(place, _, _, addend) in entries {
                builder.put_word(place, addend.cast_unsigned());
            }
        }
        Format::Rela => builder.rela = entries.to_vec(),
    }
    builder
}

fn load_address(target: Target) -> u64 {
    if target.class == Class::Elf64 {
        HIGH
    } else {
        LOW
    }
}

fn read(memory: &[u8], at: u64, size: usize, byte_order: ByteOrder) -> u64 {
    let at = usize::try_from(at).unwrap();
    let mut bytes = memory[at..at + size].to_vec();
    if byte_order == ByteOrder::Little {
        bytes.reverse();
    }
    bytes
        .iter()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// Applies one relocation at the start of the data and checks the word that results, all of it.
#[track_caller]
fn check(target: Target, format: Format, number: u32, symbol: u32, addend: i64, expected: u64) {
    let bytes = builder(target, format, &[(DATA, number, symbol, addend)]).finish();
    let memory = crate::write_image(&bytes, load_address(target)).unwrap();
    let size = target.class.word_size();
    let expected = if size == 4 {
        expected & 0xFFFF_FFFF
    } else {
        expected
    };
    let found = read(&memory, DATA, size, target.byte_order);
    assert_eq!(
        found, expected,
        "type {number}: {found:#x}, expected {expected:#x}"
    );
}

/// The addresses that a symbol or an address of the file has in the running image.
const S: u64 = HIGH + TEXT;
const S32: u64 = LOW + TEXT;
const B: u64 = HIGH - 0x40_0000;
const B32: u64 = LOW - 0x40_0000;

#[test]
fn x86_64_types_are_applied() {
    let check = |number, symbol, addend, expected| {
        check(X86_64, Format::Rela, number, symbol, addend, expected);
    };
    check(0, 0, 99, 0);
    check(1, ANSWER, 5, S + 5);
    check(1, 0, 7, 7);
    check(1, NUMBER, 1, NUMBER_VALUE + 1);
    check(2, ANSWER, -4, 0xFFFF_EFFC);
    check(6, ANSWER, 99, S);
    check(7, ANSWER, 99, S);
    check(8, 0, 0x40_2010, B + 0x40_2010);
    check(8, 0, -8, B - 8);
    check(10, NUMBER, 0, NUMBER_VALUE);
    check(11, NUMBER, -0x2000, 0xFFFF_F234);
    check(24, ANSWER, 1, 0xFFFF_FFFF_FFFF_F001);
}

#[test]
fn arm_64_types_are_applied() {
    let check = |number, symbol, addend, expected| {
        check(ARM_64, Format::Rela, number, symbol, addend, expected);
    };
    check(0, 0, 99, 0);
    check(257, ANSWER, 5, S + 5);
    check(1025, ANSWER, 6, S + 6);
    check(1026, ANSWER, 0, S);
    check(1027, 0, 0x40_2010, B + 0x40_2010);
}

#[test]
fn an_addend_in_the_entry_replaces_what_is_at_the_place() {
    let mut builder = builder(ARM_64, Format::Rela, &[(DATA, 257, ANSWER, 5)]);
    builder.put_word(DATA, 0x1111_1111);
    let memory = crate::write_image(&builder.finish(), HIGH).unwrap();
    assert_eq!(read(&memory, DATA, 8, ByteOrder::Little), S + 5);
}

#[test]
fn riscv_64_types_are_applied() {
    let check = |number, symbol, addend, expected| {
        check(RISCV_64, Format::Rela, number, symbol, addend, expected);
    };
    check(0, 0, 99, 0);
    check(1, NUMBER, 1, NUMBER_VALUE + 1);
    check(1, NUMBER, -0x2000, 0xFFFF_F234);
    check(2, ANSWER, 5, S + 5);
    check(3, 0, 0x40_2010, B + 0x40_2010);
    check(5, ANSWER, 99, S);
}

#[test]
fn riscv_32_types_are_applied() {
    let check = |number, symbol, addend, expected| {
        check(RISCV_32, Format::Rela, number, symbol, addend, expected);
    };
    check(1, ANSWER, 5, S32 + 5);
    check(3, 0, 0x40_2010, B32 + 0x40_2010);
    check(5, ANSWER, 99, S32);
}

#[test]
fn x86_32_types_are_applied() {
    let check = |number, symbol, addend, expected| {
        check(X86_32, Format::Rel, number, symbol, addend, expected);
    };
    check(0, 0, 99, 99);
    check(1, ANSWER, 5, S32 + 5);
    check(2, ANSWER, -4, 0xFFFF_EFFC);
    check(6, ANSWER, 99, S32);
    check(7, ANSWER, 99, S32);
    check(8, 0, 0x40_2010, B32 + 0x40_2010);
}

#[test]
fn arm_32_types_are_applied() {
    let check = |number, symbol, addend, expected| {
        check(ARM_32, Format::Rel, number, symbol, addend, expected);
    };
    check(0, 0, 99, 99);
    check(2, ANSWER, 5, S32 + 5);
    check(3, ANSWER, -4, 0xFFFF_EFFC);
    check(21, ANSWER, 99, S32);
    check(22, ANSWER, 99, S32);
    check(23, 0, 0x40_2010, B32 + 0x40_2010);
}

#[test]
fn a_big_endian_image_is_relocated_in_its_own_order() {
    let target = Target {
        byte_order: ByteOrder::Big,
        ..ARM_64
    };
    check(target, Format::Rela, 1027, 0, 0x40_2010, B + 0x40_2010);
    let target = Target {
        byte_order: ByteOrder::Big,
        ..ARM_32
    };
    check(target, Format::Rel, 2, ANSWER, -5, S32 - 5);
}

#[test]
fn jump_slots_are_relocated_on_every_machine() {
    for (target, number, has_addends) in [
        (X86_64, 7, true),
        (ARM_64, 1026, true),
        (RISCV_64, 5, true),
        (RISCV_32, 5, true),
        (X86_32, 7, false),
        (ARM_32, 22, false),
    ] {
        let mut builder = builder(target, Format::Rela, &[]);
        builder.jump_slots = (vec![(DATA + 8, number, ANSWER, 0)], has_addends);
        let memory = crate::write_image(&builder.finish(), load_address(target)).unwrap();
        let found = read(
            &memory,
            DATA + 8,
            target.class.word_size(),
            target.byte_order,
        );
        assert_eq!(found, load_address(target) + TEXT, "{target}");
    }
}

#[test]
fn jump_slots_inside_the_main_table_are_relocated_once() {
    let mut builder = builder(X86_32, Format::Rel, &[(DATA, 8, 0, 1), (DATA + 4, 8, 0, 2)]);
    // The tables come in this order: strings, symbols, hash, then the relocations.
    let bytes = builder.finish();
    let table = bytes
        .windows(8)
        .position(|entry| entry == [0, 0x20, 0x40, 0, 8, 0, 0, 0]);
    let second = builder.base + table.unwrap() as u64 + 8;
    builder.tags = vec![(DT_JMPREL, second), (DT_PLTRELSZ, 8), (DT_PLTREL, 17)];
    let bytes = builder.finish();
    assert_eq!(ElfFile::parse(&bytes).unwrap().relocations().len(), 2);
    let memory = crate::write_image(&bytes, LOW).unwrap();
    assert_eq!(read(&memory, DATA + 4, 4, ByteOrder::Little), B32 + 2);

    builder.tags = vec![(DT_JMPREL, second), (DT_PLTRELSZ, 16), (DT_PLTREL, 17)];
    let error = crate::parse_error(&builder.finish());
    assert!(matches!(
        error,
        ElfError::TablesOverlap {
            first: "DT_REL",
            second: "DT_JMPREL"
        }
    ));
}

#[test]
fn packed_relocations_add_the_bias() {
    for (target, word, base) in [(X86_64, 8, B), (X86_32, 4, B32), (RISCV_64, 8, B)] {
        let mut builder = builder(target, Format::Rela, &[]);
        // The word at the place, then the second and third after it.
        builder.relr = vec![builder.base + DATA, 0b1101];
        for index in 0..4 {
            builder.put_word(DATA + index * word, 0x40_1000 + index);
        }
        let bytes = builder.finish();
        assert_eq!(ElfFile::parse(&bytes).unwrap().packed_relocation_count(), 3);
        let memory = crate::write_image(&bytes, load_address(target)).unwrap();
        let size = target.class.word_size();
        for (index, is_moved) in [(0, true), (1, false), (2, true), (3, true)] {
            let expected = 0x40_1000 + index + if is_moved { base } else { 0 };
            let found = read(&memory, DATA + index * word, size, target.byte_order);
            assert_eq!(found, expected, "{target}, word {index}");
        }
    }
}

#[test]
fn packed_relocations_outside_the_segments_are_refused() {
    for offset in [0x3000, 0x2FFA, 1 << 62, u64::MAX - 1] {
        let mut builder = Builder::new(X86_64);
        builder.relr = vec![offset];
        let error = load_error(&builder.finish());
        assert!(
            matches!(error, ElfError::PackedRelocationOutsideImage { .. }),
            "{error}"
        );
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }
}

#[test]
fn a_place_outside_the_segments_is_refused() {
    for (place, number) in [
        (0x3000, 8),
        (0x2FF9, 8),
        (0x2FFD, 10),
        (1 << 63, 8),
        (u64::MAX, 8),
        (u64::MAX - 7, 8),
    ] {
        let mut builder = Builder::new(X86_64);
        builder.rela = vec![(place, number, 0, 0)];
        let error = load_error(&builder.finish());
        let ElfError::RelocationOutsideImage { offset, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(offset, place);
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }
}

#[test]
fn a_place_in_a_gap_between_segments_is_refused() {
    let mut builder = Builder::new(X86_64);
    builder.segments[1].file_size = 0x100;
    builder.segments[1].memory_size = 0x100;
    builder.rela = vec![(TEXT + 0x100, 8, 0, 0)];
    let error = load_error(&builder.finish());
    assert!(matches!(
        error,
        ElfError::RelocationOutsideImage { offset: 0x1100, .. }
    ));
}

#[test]
fn a_place_in_zero_filled_memory_is_relocated() {
    let mut builder = Builder::new(X86_64);
    builder.segments[2].memory_size = 0x2000;
    builder.rela = vec![(0x3FF8, 8, 0, 3)];
    let memory = crate::write_image(&builder.finish(), HIGH).unwrap();
    assert_eq!(read(&memory, 0x3FF8, 8, ByteOrder::Little), HIGH + 3);
}

#[test]
fn an_unsupported_type_is_named_with_its_place() {
    for (number, name) in [
        (37, "R_X86_64_IRELATIVE (37)"),
        (16, "R_X86_64_DTPMOD64 (16)"),
        (18, "R_X86_64_TPOFF64 (18)"),
        (5, "R_X86_64_COPY (5)"),
        (255, "type 255 of x86-64"),
    ] {
        let mut builder = Builder::new(X86_64);
        builder.rela = vec![(DATA + 0x10, number, 0, 0)];
        let bytes = builder.finish();
        let kind = RelocationKind {
            machine: Machine::X86_64,
            number,
        };
        assert_eq!(
            ElfFile::parse(&bytes).unwrap().relocation_counts()[&kind],
            1
        );
        let error = load_error(&bytes);
        assert_eq!(
            error.to_string(),
            format!("relocation {name} at 0x2010 is not supported")
        );
        assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
    }
}

#[test]
fn a_table_of_the_wrong_format_is_refused() {
    for (target, format) in [
        (X86_64, Format::Rel),
        (ARM_64, Format::Rel),
        (X86_32, Format::Rela),
    ] {
        let error = load_error(&builder(target, format, &[(DATA, 8, 0, 0)]).finish());
        assert!(
            matches!(error, ElfError::RelocationFormat { .. }),
            "{error}"
        );
        assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    }
}

#[test]
fn a_machine_without_rules_is_unimplemented() {
    let target = Target {
        machine: Machine(258),
        ..X86_64
    };
    let error = load_error(&Builder::new(target).finish());
    assert_eq!(
        error.to_string(),
        "loading images for LoongArch 64-bit little-endian is not supported"
    );
    assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
}

#[test]
fn a_symbol_index_past_the_table_is_refused() {
    for symbol in [3, 0x7FFF_FFFF, u32::MAX] {
        let bytes = builder(X86_64, Format::Rela, &[(DATA, 1, symbol, 0)]).finish();
        let error = crate::parse_error(&bytes);
        assert!(
            matches!(
                error,
                ElfError::RelocationSymbol {
                    symbol_count: 3,
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }
}

#[test]
fn a_value_that_does_not_fit_its_field_is_refused() {
    for (target, number) in [(X86_64, 10), (X86_64, 11), (RISCV_64, 1)] {
        let bytes = builder(target, Format::Rela, &[(DATA, number, ANSWER, 0)]).finish();
        let error = load_error(&bytes);
        assert!(
            matches!(error, ElfError::RelocationOverflow { .. }),
            "{error}"
        );
    }
    // Zero-extended, -1 is not the number it should be; sign-extended it is.
    let bytes = builder(X86_64, Format::Rela, &[(DATA, 10, 0, -1)]).finish();
    let error = load_error(&bytes);
    assert!(matches!(
        error,
        ElfError::RelocationOverflow {
            offset: 0x40_2000,
            value: u64::MAX,
            ..
        }
    ));
    assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    check(X86_64, Format::Rela, 11, 0, -1, 0xFFFF_FFFF);
}

#[test]
fn a_symbol_outside_the_image_is_refused_when_it_is_used() {
    for address in [0x3001, 1 << 62, u64::MAX] {
        let mut builder = Builder::new(X86_64);
        builder.export("stray", address);
        assert!(crate::write_image(&builder.finish(), HIGH).is_ok());
        builder.rela = vec![(DATA, 1, 2, 0)];
        let error = load_error(&builder.finish());
        assert!(
            error.to_string().starts_with("symbol stray has value"),
            "{error}"
        );
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }
    // One past the end is where linkers put an end marker.
    let mut builder = Builder::new(X86_64);
    builder.export("end", 0x3000);
    builder.rela = vec![(DATA, 1, 2, 0)];
    let memory = crate::write_image(&builder.finish(), HIGH).unwrap();
    assert_eq!(read(&memory, DATA, 8, ByteOrder::Little), HIGH + 0x3000);
}

#[test]
fn an_empty_relocation_table_may_lie_anywhere() {
    let mut builder = Builder::new(X86_64);
    builder.tags = vec![(DT_RELA, u64::MAX), (DT_RELASZ, 0)];
    assert!(crate::write_image(&builder.finish(), HIGH).is_ok());
}

/// A word of the data, by its index, and what a relocation stores there.
#[derive(Clone, Copy, Debug)]
struct Write {
    slot: u64,
    number: u32,
    symbol: u32,
    addend: i64,
}

fn a_write() -> impl Strategy<Value = Write> {
    let number = prop::sample::select(vec![0_u32, 1, 6, 7, 8, 24]);
    (0..64_u64, number, 0..=2_u32, any::<i64>()).prop_map(|(slot, number, symbol, addend)| Write {
        slot,
        number,
        symbol,
        addend,
    })
}

proptest! {
    #[test]
    fn x86_64_relocation_agrees_with_a_plain_oracle(
        writes in prop::collection::vec(a_write(), 0..40),
        load_address in any::<u32>().prop_map(|page| u64::from(page) << 12),
    ) {
        let entries: Vec<_> = writes
            .iter()
            .map(|write| (DATA + write.slot * 8, write.number, write.symbol, write.addend))
            .collect();
        let bytes = builder(X86_64, Format::Rela, &entries).finish();
        let memory = crate::write_image(&bytes, load_address).unwrap();

        let mut expected = [0_u64; 64];
        let bias = load_address.wrapping_sub(0x40_0000);
        for write in &writes {
            let symbol = [0, load_address + TEXT, NUMBER_VALUE][write.symbol as usize];
            let addend = write.addend.cast_unsigned();
            let place = load_address + DATA + write.slot * 8;
            let slot = &mut expected[usize::try_from(write.slot).unwrap()];
            *slot = match write.number {
                0 => *slot,
                1 => symbol.wrapping_add(addend),
                6 | 7 => symbol,
                8 => bias.wrapping_add(addend),
                _ => symbol.wrapping_add(addend).wrapping_sub(place),
            };
        }
        for (slot, &value) in expected.iter().enumerate() {
            prop_assert_eq!(read(&memory, DATA + slot as u64 * 8, 8, ByteOrder::Little), value);
        }
    }
}
