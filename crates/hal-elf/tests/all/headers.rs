//! File headers and program headers that are wrong, or unusual and right.

use hal_abi::StatusCode;
use hal_elf::{ByteOrder, Class, ElfError, ElfFile, Machine, Target};

use crate::builder::{Builder, PT_LOAD, R, RW, RX, Segment, TEXT, X86_64, load, load_zeroes};
use crate::fixtures::MUL_X86_64;
use crate::{load_error, parse_error};

// Offsets of fields in a 64-bit file header and in a 64-bit program header.
const E_PHOFF: usize = 32;
const E_SHOFF: usize = 40;
const E_EHSIZE: usize = 52;
const E_PHENTSIZE: usize = 54;
const E_PHNUM: usize = 56;
const E_SHENTSIZE: usize = 58;
const E_SHNUM: usize = 60;
const P_OFFSET: usize = 8;
const P_VADDR: usize = 16;
const P_FILESZ: usize = 32;
const P_MEMSZ: usize = 40;
const P_ALIGN: usize = 48;

fn patched(bytes: &[u8], at: usize, patch: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

/// The fixture with a field of its first loadable segment, program header 1, replaced.
fn with_segment_field(field: usize, value: u64) -> Vec<u8> {
    patched(MUL_X86_64, 64 + 56 + field, &value.to_le_bytes())
}

#[test]
fn a_file_that_is_no_elf_file_is_refused_by_name() {
    let error = parse_error(b"PK\x03\x04 this is a zip file");
    assert_eq!(
        error.to_string(),
        "the file starts with bytes [50, 4b, 03, 04], not with the ELF magic 7f 45 4c 46"
    );
    assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    assert!(matches!(
        parse_error(b""),
        ElfError::TooShort { byte_length: 0, .. }
    ));
    assert!(matches!(
        parse_error(b"\x7FELF"),
        ElfError::TooShort {
            byte_length: 4,
            needed: 16
        }
    ));
    assert!(matches!(
        parse_error(&MUL_X86_64[..63]),
        ElfError::TooShort { needed: 64, .. }
    ));
}

#[test]
fn unknown_class_byte_order_and_version_are_refused() {
    for value in [0, 3, 255] {
        assert!(matches!(
            parse_error(&patched(MUL_X86_64, 4, &[value])),
            ElfError::Class { .. }
        ));
        assert!(matches!(
            parse_error(&patched(MUL_X86_64, 5, &[value])),
            ElfError::ByteOrder { .. }
        ));
    }
    let error = parse_error(&patched(MUL_X86_64, 20, &[2]));
    assert!(matches!(
        error,
        ElfError::HeaderField {
            field: "e_version",
            found: 2,
            ..
        }
    ));
}

#[test]
fn both_classes_and_byte_orders_are_described() {
    for class in [Class::Elf32, Class::Elf64] {
        for byte_order in [ByteOrder::Little, ByteOrder::Big] {
            let target = Target {
                machine: Machine(8),
                class,
                byte_order,
            };
            let bytes = Builder::new(target).finish();
            let file = ElfFile::parse(&bytes).unwrap();
            assert_eq!(file.target(), target);
            let names: Vec<_> = file.exported_symbols().map(|symbol| symbol.name).collect();
            assert_eq!(names, [b"answer"]);
            assert_eq!(file.segments().len(), 4);
        }
    }
}

#[test]
fn a_file_at_an_odd_address_is_described() {
    let mut shifted = vec![0; MUL_X86_64.len() + 1];
    shifted[1..].copy_from_slice(MUL_X86_64);
    assert_eq!(ElfFile::parse(&shifted[1..]).unwrap().symbols().len(), 2);
}

#[test]
fn a_file_without_section_headers_is_accepted() {
    let mut builder = Builder::new(X86_64);
    builder.with_section_headers = false;
    let bytes = builder.finish();
    assert_eq!(
        ElfFile::parse(&bytes)
            .unwrap()
            .header()
            .section_header_count,
        None
    );
    assert!(crate::write_image(&bytes, 0x1000).is_ok());
}

#[test]
fn a_section_header_table_that_is_there_must_be_in_the_file() {
    // IREE's own loader, and many tools, walk the table without looking.
    let length = MUL_X86_64.len() as u64;
    for offset in [length - 1, length, u64::MAX, u64::MAX - 63] {
        let error = parse_error(&patched(MUL_X86_64, E_SHOFF, &offset.to_le_bytes()));
        let ElfError::TableOutsideFile { table, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(table, "section header");
    }
    for size in [0, 63, 65] {
        let error = parse_error(&patched(MUL_X86_64, E_SHENTSIZE, &[size, 0]));
        assert!(matches!(
            error,
            ElfError::HeaderField {
                field: "e_shentsize",
                ..
            }
        ));
    }
}

#[test]
fn a_section_count_of_0_stands_in_the_first_section() {
    let bytes = patched(MUL_X86_64, E_SHNUM, &[0, 0]);
    assert_eq!(
        ElfFile::parse(&bytes)
            .unwrap()
            .header()
            .section_header_count,
        Some(0)
    );
    let table = u64::from_le_bytes(*MUL_X86_64[E_SHOFF..].first_chunk().unwrap());
    let sh_size = usize::try_from(table).unwrap() + 32;
    let bytes = patched(&bytes, sh_size, &5u64.to_le_bytes());
    assert_eq!(
        ElfFile::parse(&bytes)
            .unwrap()
            .header()
            .section_header_count,
        Some(5)
    );
    let bytes = patched(&bytes, sh_size, &u64::MAX.to_le_bytes());
    assert!(matches!(
        parse_error(&bytes),
        ElfError::TableOutsideFile { .. }
    ));
}

#[test]
fn a_program_header_table_past_the_file_is_refused_without_overflow() {
    let length = MUL_X86_64.len() as u64;
    for offset in [u64::MAX, u64::MAX - 55, 1 << 63, length - 1, length] {
        let error = parse_error(&patched(MUL_X86_64, E_PHOFF, &offset.to_le_bytes()));
        assert!(matches!(
            error,
            ElfError::TableOutsideFile {
                table: "program header",
                ..
            }
        ));
    }
    let error = parse_error(&patched(MUL_X86_64, E_PHNUM, &0xFFFE_u16.to_le_bytes()));
    assert!(matches!(
        error,
        ElfError::TableOutsideFile { count: 0xFFFE, .. }
    ));
    let error = parse_error(&patched(MUL_X86_64, E_PHNUM, &0xFFFF_u16.to_le_bytes()));
    assert!(matches!(error, ElfError::ProgramHeaderCount));
}

#[test]
fn header_sizes_must_be_those_of_the_class() {
    for size in [0_u16, 1, 55, 57, 0xFFFF] {
        let error = parse_error(&patched(MUL_X86_64, E_PHENTSIZE, &size.to_le_bytes()));
        let ElfError::HeaderField {
            field,
            expected,
            found,
        } = error
        else {
            panic!("{error}")
        };
        assert_eq!((field, expected, found), ("e_phentsize", 56, size.into()));
    }
    let error = parse_error(&patched(MUL_X86_64, E_EHSIZE, &[52, 0]));
    assert_eq!(error.to_string(), "e_ehsize is 52, expected 64");
}

#[test]
fn a_file_without_program_headers_is_described_but_not_loaded() {
    let bytes = patched(MUL_X86_64, E_PHNUM, &[0, 0]);
    assert_eq!(ElfFile::parse(&bytes).unwrap().segments(), []);
    assert!(matches!(
        load_error(&bytes),
        ElfError::MissingDynamicSection
    ));
}

#[test]
fn only_shared_objects_are_loaded() {
    let mut builder = Builder::new(X86_64);
    builder.file_type = 2;
    let error = load_error(&builder.finish());
    assert_eq!(
        error.to_string(),
        "the file type is executable, only a shared object can be loaded"
    );
    assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
}

#[test]
fn a_segment_outside_the_file_is_refused_without_overflow() {
    for offset in [
        u64::MAX,
        u64::MAX - 0x42F,
        1 << 63,
        MUL_X86_64.len() as u64 - 0x42F,
    ] {
        let error = parse_error(&with_segment_field(P_OFFSET, offset));
        assert!(
            matches!(error, ElfError::SegmentOutsideFile { index: 1, .. }),
            "{error}"
        );
    }
    let error = parse_error(&with_segment_field(P_FILESZ, u64::MAX));
    assert!(matches!(
        error,
        ElfError::SegmentOutsideFile { index: 1, .. }
    ));
}

#[test]
fn a_segment_with_more_bytes_in_the_file_than_in_memory_is_refused() {
    let error = parse_error(&with_segment_field(P_MEMSZ, 0x42F));
    assert!(matches!(
        error,
        ElfError::SegmentFileSize {
            index: 1,
            file_size: 0x430,
            memory_size: 0x42F
        }
    ));
}

#[test]
fn a_segment_past_the_highest_address_is_refused() {
    for address in [u64::MAX, u64::MAX - 0x42F] {
        let error = parse_error(&with_segment_field(P_VADDR, address));
        assert!(
            matches!(error, ElfError::SegmentAddress { index: 1, .. }),
            "{error}"
        );
    }
    let mut builder = Builder::new(crate::builder::X86_32);
    builder.segments.push(load_zeroes(RW, 0x3000, 0xFFFF_E000));
    assert!(matches!(
        parse_error(&builder.finish()),
        ElfError::SegmentAddress { index: 3, .. }
    ));
}

#[test]
fn an_alignment_that_is_no_power_of_two_is_refused() {
    for alignment in [3, 0x1001, u64::MAX] {
        let error = parse_error(&with_segment_field(P_ALIGN, alignment));
        assert!(matches!(error, ElfError::SegmentAlignment { index: 1, .. }));
    }
    for alignment in [0, 1, 2, 0x1000] {
        let bytes = with_segment_field(P_ALIGN, alignment);
        assert!(crate::write_image(&bytes, 0x1000).is_ok(), "{alignment}");
    }
}

#[test]
fn a_huge_alignment_is_refused_when_planned() {
    for alignment in [32 << 20, 1 << 63] {
        let error = load_error(&with_segment_field(P_ALIGN, alignment));
        assert!(matches!(error, ElfError::SegmentAlignment { index: 1, .. }));
    }
}

#[test]
fn a_small_file_cannot_ask_for_gigabytes() {
    for memory_size in [1 << 31, 1 << 40, 1 << 62] {
        let mut builder = Builder::new(X86_64);
        builder.segments[2].memory_size = memory_size;
        let error = load_error(&builder.finish());
        assert!(matches!(error, ElfError::ImageTooLarge { .. }), "{error}");
        assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
    }
    // Nor by lying far from the others.
    let mut builder = Builder::new(X86_64);
    builder.segments.push(load_zeroes(RW, 1 << 62, 1));
    let error = load_error(&builder.finish());
    assert!(matches!(error, ElfError::ImageTooLarge { .. }), "{error}");
}

#[test]
fn moderate_zero_filled_memory_is_granted() {
    let mut builder = Builder::new(X86_64);
    builder.segments[2].memory_size = 64 << 20;
    let memory = crate::write_image(&builder.finish(), 0x1000).unwrap();
    assert_eq!(memory.len(), (64 << 20) + 0x2000);
}

#[test]
fn a_segment_without_memory_takes_none() {
    // A linker emits one for an empty read-only section.
    let mut builder = Builder::new(X86_64);
    builder.segments.push(load_zeroes(R, 0x3000, 0));
    builder.segments.push(load_zeroes(RX, 0x9000, 0));
    let memory = crate::write_image(&builder.finish(), 0x1000).unwrap();
    assert_eq!(memory.len(), 0x3000);
}

#[test]
fn a_file_of_empty_segments_has_no_image() {
    let mut builder = Builder::new(X86_64);
    builder.segments = vec![load(R, 0, 0x1000)];
    let bytes = builder.finish();
    let p_filesz = 64 + P_FILESZ;
    let bytes = patched(&bytes, p_filesz, &[0; 16]);
    // Without file bytes there is no dynamic section to read either.
    assert!(matches!(
        parse_error(&bytes),
        ElfError::TableOutsideSegments {
            tag: "PT_DYNAMIC",
            ..
        }
    ));
}

#[test]
fn overlapping_segments_are_refused() {
    let mut builder = Builder::new(X86_64);
    builder.segments.push(Segment {
        kind: PT_LOAD,
        ..load(RW, TEXT + 0xFFF, 1)
    });
    let error = load_error(&builder.finish());
    assert!(matches!(
        error,
        ElfError::SegmentsOverlap {
            first: 0x1000,
            second: 0x1FFF
        }
    ));
}
