//! Dynamic sections: unusual ones that work, and wrong ones that are named.

use hal_abi::StatusCode;
use hal_elf::{ElfError, ElfFile, Sanitizer, StringFault};

use crate::builder::{
    Builder, DATA, DT_HASH, DT_INIT_ARRAY, DT_INIT_ARRAYSZ, DT_JMPREL, DT_NEEDED, DT_NULL,
    DT_PLTREL, DT_PLTRELSZ, DT_RELA, DT_RELAENT, DT_RELASZ, DT_RELR, DT_RELRSZ, DT_SONAME,
    DT_STRSZ, DT_STRTAB, DT_SYMENT, DT_SYMTAB, Hash, PT_TLS, R, Segment, TEXT, X86_64, load,
};
use crate::{load_error, parse_error};

/// A file whose tag has another value than the right one.
fn with_tag(tag: u64, value: u64) -> Vec<u8> {
    let mut builder = Builder::new(X86_64);
    builder.rela = vec![(DATA, 8, 0, 0)];
    builder.tags = vec![(tag, value)];
    builder.finish()
}

#[test]
fn a_gnu_hash_table_alone_gives_the_symbols() {
    // The default of most distributions' linkers.
    let mut builder = Builder::new(X86_64);
    builder.hash = Hash::Gnu;
    builder.export("second", TEXT + 1);
    let bytes = builder.finish();
    let file = ElfFile::parse(&bytes).unwrap();
    let names: Vec<_> = file.exported_symbols().map(|symbol| symbol.name).collect();
    assert_eq!(names, [&b"answer"[..], b"second"]);
    assert!(crate::write_image(&bytes, 0x1000).is_ok());
}

#[test]
fn a_gnu_hash_table_that_lists_nothing_does_not_hide_imports() {
    let mut builder = Builder::new(X86_64);
    builder.hash = Hash::EmptyGnu;
    builder.symbols.clear();
    builder.import("memset");
    builder.rela = vec![(DATA, 6, 1, 0)];
    let error = load_error(&builder.finish());
    let ElfError::Undefined(undefined) = error else {
        panic!("{error}")
    };
    assert_eq!(undefined.names, ["memset"]);
}

#[test]
fn a_file_without_hash_table_is_refused() {
    let mut builder = Builder::new(X86_64);
    builder.hash = Hash::None;
    let error = parse_error(&builder.finish());
    assert_eq!(
        error.to_string(),
        "the dynamic section has no DT_HASH or DT_GNU_HASH"
    );
}

#[test]
fn needed_libraries_and_the_own_name_are_listed() {
    let mut builder = Builder::new(X86_64);
    builder.tags = vec![(DT_NEEDED, 1), (DT_SONAME, 8), (DT_NEEDED, 3)];
    let bytes = builder.finish();
    let file = ElfFile::parse(&bytes).unwrap();
    assert_eq!(file.needed_libraries(), [&b"lib.so"[..], b"b.so"]);
    assert_eq!(file.soname(), Some(&b"self.so"[..]));
    // Needing no symbol of it, the file loads without the library.
    assert!(crate::write_image(&bytes, 0x1000).is_ok());
}

#[test]
fn undefined_symbols_are_all_named_at_once() {
    let mut builder = Builder::new(X86_64);
    for name in ["fmaf", "memset", "expf"] {
        builder.import(name);
    }
    let weak = ("__gmon_start__".into(), 0, 0, 0x20);
    builder.symbols.push(weak);
    let error = load_error(&builder.finish());
    assert_eq!(
        error.to_string(),
        "undefined symbols: fmaf, memset, expf, __gmon_start__"
    );
    assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
}

#[test]
fn a_sanitizer_build_is_recognized() {
    for (name, sanitizer, word) in [
        ("__tsan_func_entry", Sanitizer::Thread, "ThreadSanitizer"),
        ("__asan_load4", Sanitizer::Address, "AddressSanitizer"),
        ("__msan_warning", Sanitizer::Memory, "MemorySanitizer"),
    ] {
        let mut builder = Builder::new(X86_64);
        builder.import("memset");
        builder.import(name);
        let error = load_error(&builder.finish());
        let message = error.to_string();
        assert!(message.contains(&format!("built with {word}")), "{message}");
        assert!(
            message.contains("memset") && message.contains(name),
            "{message}"
        );
        assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
        let ElfError::Undefined(undefined) = error else {
            panic!("{message}")
        };
        assert_eq!(undefined.sanitizer, Some(sanitizer));
    }
}

#[test]
fn a_message_does_not_grow_with_shared_names() {
    let mut builder = Builder::new(X86_64);
    builder.import("n".repeat(1000));
    let message = load_error(&builder.finish()).to_string();
    assert!(
        message.len() < 300 && message.ends_with("n..."),
        "{message}"
    );
}

#[test]
fn thread_local_storage_is_refused() {
    let mut builder = Builder::new(X86_64);
    builder.segments.push(Segment {
        kind: PT_TLS,
        ..load(R, DATA, 16)
    });
    let error = load_error(&builder.finish());
    assert!(matches!(
        error,
        ElfError::ThreadLocalStorage { memory_size: 16 }
    ));
    assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
}

#[test]
fn an_indirect_function_is_refused_by_name() {
    let mut builder = Builder::new(X86_64);
    builder.symbols.push(("memcpy".into(), TEXT, 1, 0x1A));
    let error = load_error(&builder.finish());
    assert!(
        error
            .to_string()
            .starts_with("symbol memcpy is an indirect function")
    );
    assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
}

#[test]
fn tags_after_the_null_tag_do_not_count() {
    // The first table the builder makes comes after, so the section ends empty.
    let bytes = with_tag(DT_NULL, 0);
    let file = ElfFile::parse(&bytes).unwrap();
    assert!(file.has_dynamic_section() && file.symbols().is_empty());
    let error = load_error(&bytes);
    assert!(matches!(error, ElfError::MissingTag { tag: "DT_SYMTAB" }));
}

#[test]
fn a_table_address_outside_the_segments_is_named() {
    for (tag, name) in [
        (DT_STRTAB, "DT_STRTAB"),
        (DT_SYMTAB, "DT_SYMTAB"),
        (DT_HASH, "DT_HASH"),
        (DT_RELA, "DT_RELA"),
    ] {
        for address in [0x3000, 1 << 63, u64::MAX] {
            let error = parse_error(&with_tag(tag, address));
            let ElfError::TableOutsideSegments {
                tag,
                address: found,
                ..
            } = error
            else {
                panic!("{name} at {address:#x}: {error}")
            };
            assert_eq!((tag, found), (name, address));
        }
    }
    let mut builder = Builder::new(X86_64);
    builder.tags = vec![(DT_JMPREL, u64::MAX), (DT_PLTRELSZ, 24), (DT_PLTREL, 7)];
    let error = parse_error(&builder.finish());
    assert!(matches!(
        error,
        ElfError::TableOutsideSegments {
            tag: "DT_JMPREL",
            ..
        }
    ));
    builder.tags = vec![(DT_RELR, u64::MAX - 7), (DT_RELRSZ, 8)];
    let error = parse_error(&builder.finish());
    assert!(matches!(
        error,
        ElfError::TableOutsideSegments { tag: "DT_RELR", .. }
    ));
}

#[test]
fn a_table_in_the_wrong_place_is_refused_or_read_within_the_image() {
    for tag in [DT_STRTAB, DT_SYMTAB, DT_HASH, DT_RELA] {
        let last_byte = crate::write_image(&with_tag(tag, 0x2FFF), 0x1000);
        assert!(last_byte.is_err(), "{tag}");
        // The headers of the file are bytes of the image too.
        let _ = crate::write_image(&with_tag(tag, 0), 0x1000);
    }
}

#[test]
fn a_table_longer_than_its_segment_is_named() {
    for (tag, value, name) in [
        (DT_STRSZ, u64::MAX, "DT_STRTAB"),
        (DT_RELASZ, 24 << 32, "DT_RELA"),
    ] {
        let error = parse_error(&with_tag(tag, value));
        let ElfError::TableOutsideSegments { tag, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(tag, name);
    }
}

#[test]
fn a_huge_symbol_count_is_refused_without_memory() {
    let mut bytes = Builder::new(X86_64).finish();
    let hash = bytes
        .windows(8)
        .position(|words| words == [1, 0, 0, 0, 2, 0, 0, 0])
        .unwrap();
    bytes[hash + 4..hash + 8].fill(0xFF);
    let error = parse_error(&bytes);
    assert!(
        matches!(
            error,
            ElfError::TableOutsideSegments {
                tag: "DT_SYMTAB",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn a_hash_table_cut_off_by_its_segment_is_refused() {
    let error = parse_error(&with_tag(DT_HASH, 0x2FFC));
    assert!(matches!(
        error,
        ElfError::HashTable {
            tag: "DT_HASH",
            address: 0x2FFC
        }
    ));
}

#[test]
fn entry_sizes_must_be_those_of_the_class() {
    for (tag, name) in [(DT_SYMENT, "DT_SYMENT"), (DT_RELAENT, "DT_RELAENT")] {
        for size in [0, 1, 16, 25, u64::MAX] {
            let error = parse_error(&with_tag(tag, size));
            assert_eq!(error.to_string(), format!("{name} is {size}, expected 24"));
        }
    }
}

#[test]
fn a_table_that_ends_inside_an_entry_is_refused() {
    let error = parse_error(&with_tag(DT_RELASZ, 25));
    assert_eq!(
        error.to_string(),
        "DT_RELA has 25 bytes, not a multiple of its entry size 24"
    );
}

#[test]
fn a_table_without_its_size_is_refused() {
    let mut builder = Builder::new(X86_64);
    for (tag, missing) in [
        (DT_JMPREL, "DT_PLTRELSZ"),
        (DT_INIT_ARRAY, "DT_INIT_ARRAYSZ"),
    ] {
        builder.tags = vec![(tag, 0x1000)];
        let error = parse_error(&builder.finish());
        assert_eq!(
            error.to_string(),
            format!("the dynamic section has no {missing}")
        );
    }
    builder.tags = vec![(DT_JMPREL, 0x1000), (DT_PLTRELSZ, 24)];
    let error = parse_error(&builder.finish());
    assert_eq!(error.to_string(), "the dynamic section has no DT_PLTREL");
    builder.tags = vec![(DT_JMPREL, 0x1000), (DT_PLTRELSZ, 24), (DT_PLTREL, 8)];
    assert!(matches!(
        parse_error(&builder.finish()),
        ElfError::JumpSlotFormat { found: 8 }
    ));
}

#[test]
fn a_symbol_name_outside_the_string_table_is_refused() {
    // The table ends with the name of symbol 1, "answer", and its terminator.
    let length = b"\0lib.so\0self.so\0answer\0".len() as u64;
    let fault = |size| match parse_error(&with_tag(DT_STRSZ, size)) {
        ElfError::String {
            user: "symbol",
            index: 1,
            fault,
            ..
        } => fault,
        error => panic!("{error}"),
    };
    assert_eq!(fault(length - 1), StringFault::NoTerminator);
    assert_eq!(fault(16), StringFault::OutsideTable { table_length: 16 });
    assert_eq!(fault(0), StringFault::OutsideTable { table_length: 0 });
    let error = parse_error(&with_tag(DT_NEEDED, 23));
    assert!(matches!(
        error,
        ElfError::String {
            user: "DT_NEEDED",
            offset: 23,
            ..
        }
    ));
}

#[test]
fn initializers_are_found_in_order_and_placeholders_skipped() {
    let mut builder = Builder::new(X86_64);
    builder.base = 0x4000_0000;
    builder.tags = vec![
        (crate::builder::DT_INIT, builder.base + TEXT + 0x10),
        (DT_INIT_ARRAY, builder.base + DATA),
        (DT_INIT_ARRAYSZ, 32),
    ];
    builder.put_word(DATA + 8, u64::MAX);
    let base = i64::try_from(builder.base + TEXT).unwrap();
    builder.rela = vec![
        (DATA + 16, 8, 0, base + 0x30),
        (DATA + 24, 8, 0, base + 0x20),
    ];
    let bytes = builder.finish();
    let file = ElfFile::parse(&bytes).unwrap();
    let plan = hal_elf::LoadPlan::new(&file, crate::PAGE_SIZE).unwrap();
    let mut memory = vec![0; plan.byte_length()];
    plan.write_image(&mut memory, 0x7F00_0000).unwrap();
    let initializers = plan.initializers(&memory, 0x7F00_0000).unwrap();
    assert_eq!(initializers, [0x1010, 0x1030, 0x1020]);
}

#[test]
fn an_initializer_that_is_not_code_is_refused() {
    let error = |tags: &[(u64, u64)]| {
        let mut builder = Builder::new(X86_64);
        builder.tags = tags.to_vec();
        builder.rela = vec![(DATA, 8, 0, i64::try_from(DATA).unwrap())];
        let bytes = builder.finish();
        let file = ElfFile::parse(&bytes).unwrap();
        let plan = hal_elf::LoadPlan::new(&file, crate::PAGE_SIZE).unwrap();
        let mut memory = vec![0; plan.byte_length()];
        plan.write_image(&mut memory, 0).unwrap();
        plan.initializers(&memory, 0).unwrap_err()
    };
    for address in [DATA, 0x3000, 1 << 63, u64::MAX] {
        let error = error(&[(crate::builder::DT_INIT, address)]);
        assert!(
            matches!(error, ElfError::Initializer { tag: "DT_INIT", .. }),
            "{error}"
        );
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }
    let array = |address, size| error(&[(DT_INIT_ARRAY, address), (DT_INIT_ARRAYSZ, size)]);
    assert!(matches!(
        array(DATA, 8),
        ElfError::Initializer {
            tag: "DT_INIT_ARRAY",
            address: DATA
        }
    ));
    for (address, size) in [
        (DATA, 7),
        (0x3000, 8),
        (0x2FFC, 8),
        (DATA, u64::MAX),
        (1 << 63, 8),
    ] {
        let error = array(address, size);
        assert!(
            matches!(error, ElfError::InitializerArray { .. }),
            "{error}"
        );
    }
}
