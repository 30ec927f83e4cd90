//! Tests of the schema: what the fixtures say, and flatbuffers with one thing spoiled.

use super::*;
use crate::testing::fixture;
use crate::{Container, DebugDatabase, LoadError, VerifiedModule};

fn parse(file: &[u8]) -> Result<ModuleDef, FieldError> {
    ModuleDef::parse(file, Archive::parse(file).unwrap())
}

/// Reads the root table of a file, whatever state it is in.
fn with_root<T>(file: &[u8], read: impl FnOnce(&Table<'_>) -> T) -> T {
    let range = Archive::parse(file).unwrap().flatbuffer();
    let buffer = FlatBuffer::new(&file[range.clone()], range.start);
    read(&buffer.root("BytecodeModuleDef").unwrap())
}

/// Returns the file offset of a field of an element of a vector of tables.
fn field_of_element(file: &[u8], vector: Field, index: usize, field: Field) -> usize {
    with_root(file, |root| {
        root.tables(vector, "")
            .unwrap()
            .get(index)
            .unwrap()
            .unwrap()
            .file_offset(field)
    })
}

#[test]
fn a_module_of_3_13_is_described() {
    let file = fixture("mul-3.13.0-stripped");
    let def = parse(&file).unwrap();
    assert_eq!(def.archive.container(), Container::Polyglot);
    assert_eq!((def.name.as_str(), def.version), ("module", 0));
    assert_eq!(def.bytecode_version.to_string(), "17.0");
    assert_eq!(def.features, Features::UNWIND);
    assert_eq!(def.types[0], "i32");
    let dependencies: Vec<_> = def
        .dependencies
        .iter()
        .map(|d| (d.name.as_str(), d.minimum_version, d.optional))
        .collect();
    assert_eq!(
        dependencies,
        [("hal_loader", 1, false), ("hal_inline", 0, false)]
    );
    let dispatch = def
        .imports
        .iter()
        .find(|import| import.full_name == "hal_loader.executable.dispatch")
        .unwrap();
    assert_eq!(dispatch.signature.calling_convention, "0rIiiiCiDCrIID_v");
    let exports: Vec<_> = def
        .exports
        .iter()
        .map(|export| export.name.as_str())
        .collect();
    assert_eq!(exports, ["mul", "__init"]);
    let declaration = def.signatures[0].attribute("iree.abi.declaration").unwrap();
    assert!(declaration.starts_with("sync func @mul("), "{declaration}");
    assert_eq!((def.global_bytes, def.global_refs), (0, 1));
    assert!(!def.has_debug_database);
    let executable = &def.rodata[0];
    assert_eq!(executable.placement, RodataPlacement::External);
    assert!(executable.range.start.is_multiple_of(64));
    assert!(file[executable.range.clone()].starts_with(b"\x7FELF"));
    assert_eq!(&file[def.rodata[1].range.clone()], b"embedded-elf-x86_64");
    assert_eq!(def.byte_length(), executable.range.end);
}

#[test]
fn a_flat_module_of_2_9_is_described() {
    let file = fixture("mul-2.9.0-flat");
    let def = parse(&file).unwrap();
    assert_eq!(def.archive.container(), Container::Flat);
    assert_eq!(def.bytecode_version.to_string(), "15.0");
    let executable = def
        .rodata
        .iter()
        .find(|segment| segment.placement == RodataPlacement::External)
        .unwrap();
    assert_eq!(executable.range.start, def.archive.rodata_base());
    assert!(file[executable.range.clone()].starts_with(b"\x7FELF"));
}

#[test]
fn source_locations_are_found_by_function_and_offset() {
    let file = fixture("loop-2.9.0");
    let def = parse(&file).unwrap();
    let debug = DebugDatabase::new(&def, &file).unwrap();
    assert_eq!(
        debug.function_name(0).as_deref(),
        Some(def.exports[0].name.as_str())
    );
    let location = debug.location(0, 8).unwrap();
    assert!(location.contains("loop.mlir:"), "{location}");
    assert_eq!(debug.location(99, 8), None);
}

#[test]
fn a_database_with_only_the_last_function_is_not_taken_for_the_first() {
    let file = fixture("mul-3.13.0-async");
    let def = parse(&file).unwrap();
    let debug = DebugDatabase::new(&def, &file).unwrap();
    let names: Vec<_> = (0u32..)
        .zip(&def.functions)
        .map(|(ordinal, _)| debug.function_name(ordinal))
        .collect();
    for (ordinal, name) in (0u32..).zip(&names) {
        assert!(
            name.is_none() || name.as_deref() == def.export_name(ordinal),
            "{names:?}"
        );
    }
}

#[test]
fn spoiled_debug_databases_only_lose_locations() {
    let mut file = fixture("loop-2.9.0");
    let offset = with_root(&file, |root| {
        root.table(DEBUG_DATABASE, "")
            .unwrap()
            .unwrap()
            .file_offset(Field(2, "functions"))
    });
    file[offset..offset + 4].fill(0xFF);
    let module = VerifiedModule::load(&file).unwrap();
    let debug = DebugDatabase::new(module.def(), &file).unwrap();
    assert_eq!(debug.location(0, 8), None);
}

#[test]
fn external_rodata_whose_end_wraps_is_refused() {
    const SEGMENTS: Field = module::RODATA_SEGMENTS;
    const OFFSET: Field = Field(3, "external_data_offset");
    const LENGTH: Field = Field(4, "external_data_length");
    let file = fixture("mul-3.13.0-stripped");
    let [offset_at, length_at] =
        [OFFSET, LENGTH].map(|field| field_of_element(&file, SEGMENTS, 0, field));
    let available = (file.len() - Archive::parse(&file).unwrap().rodata_base()) as u64;
    let cases = [
        (u64::MAX - 15, 32),
        (0, u64::MAX),
        (u64::MAX, 0),
        (available, 1),
        (1, available),
        (available + 1, 0),
    ];
    for (offset, length) in cases {
        let mut file = file.clone();
        file[offset_at..offset_at + 8].copy_from_slice(&u64::to_le_bytes(offset));
        file[length_at..length_at + 8].copy_from_slice(&u64::to_le_bytes(length));
        let problem = parse(&file).unwrap_err().problem;
        assert!(
            matches!(problem, Problem::OutsideFile { .. }),
            "{offset:#x}, {length:#x}: {problem}"
        );
    }
}

#[test]
fn rodata_after_the_end_of_a_cut_file_is_refused() {
    let file = fixture("mul-2.9.0-flat");
    let flatbuffer_end = Archive::parse(&file).unwrap().flatbuffer().end;
    let problem = parse(&file[..flatbuffer_end]).unwrap_err().problem;
    assert!(
        matches!(problem, Problem::OutsideFile { available: 0, .. }),
        "{problem}"
    );
}

#[test]
fn a_negative_export_ordinal_is_refused() {
    let mut file = fixture("mul-2.9.0-flat");
    // The ordinal of the first export is the default and absent.
    let at = field_of_element(
        &file,
        module::EXPORTED_FUNCTIONS,
        1,
        Field(1, "internal_ordinal"),
    );
    file[at..at + 4].fill(0xFF);
    let error = parse(&file).unwrap_err();
    assert_eq!(
        (error.field, error.problem),
        ("internal_ordinal", Problem::Negative { found: -1 })
    );
}

#[test]
fn the_smallest_wrong_files_are_refused() {
    for bytes in [
        &[0u8, 0, 0, 0, 10][..],
        &[0xFF; 4],
        &[10, 0, 0, 0, 0, 0, 0, 0, 10],
    ] {
        assert!(
            matches!(VerifiedModule::load(bytes), Err(LoadError::Archive(_))),
            "{bytes:?}"
        );
    }
    // A root offset of every kind behind a sound prefix and identifier.
    for root in [0u32, 1, 4, 8, 12, 0x7FFF_FFFF, 0xFFFF_FFFC, u32::MAX] {
        let file = [
            &12u32.to_le_bytes()[..],
            &root.to_le_bytes(),
            b"IREE",
            &[0; 4],
        ]
        .concat();
        assert!(
            matches!(VerifiedModule::load(&file), Err(LoadError::Schema(_))),
            "{root:#x}"
        );
    }
}

/// Makes a flatbuffer whose types are `count` times the same table with a name of `name_length` bytes.
fn file_with_shared_types(count: u32, name_length: u32) -> Vec<u8> {
    fn halves(buffer: &mut Vec<u8>, values: &[u16]) {
        buffer.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }
    fn words(buffer: &mut Vec<u8>, values: &[u32]) {
        buffer.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    }

    let mut buffer = Vec::new();
    words(&mut buffer, &[24, u32::from_le_bytes(*b"IREE")]); // 0: the root is at 24.
    halves(&mut buffer, &[14, 12, 4, 0, 0, 0, 8, 0]); // 8: vtable of the root, slots 0 and 4.
    words(&mut buffer, &[16, 8, 12]); // 24: the root: its vtable at 8, the name at 36, the types at 44.
    words(&mut buffer, &[1, u32::from(b'm')]); // 36: the name.
    words(&mut buffer, &[count]); // 44: the types.
    for index in 0..count {
        words(&mut buffer, &[(count - index) * 4]); // All lead to the end of the vector.
    }
    words(&mut buffer, &[(-8i32).cast_unsigned(), 12]); // The type: its vtable 8 bytes on, its name 16 bytes on.
    halves(&mut buffer, &[6, 8, 4, 0]);
    words(&mut buffer, &[name_length]);
    buffer.extend(core::iter::repeat_n(b'x', name_length as usize));
    buffer.push(0);

    let mut file = u32::try_from(buffer.len()).unwrap().to_le_bytes().to_vec();
    file.extend(buffer);
    file
}

#[test]
fn tables_that_share_their_bytes_cannot_make_a_small_file_large() {
    let def = parse(&file_with_shared_types(3, 5)).unwrap();
    assert_eq!(def.types, ["xxxxx"; 3]);
    let error = parse(&file_with_shared_types(10_000, 4_000)).unwrap_err();
    assert_eq!(error.problem, Problem::TooManyVisits);
    assert_eq!(error.status_code(), StatusCode::RESOURCE_EXHAUSTED);
}

#[test]
fn an_empty_or_very_long_type_name_is_refused() {
    let error = parse(&file_with_shared_types(1, 0)).unwrap_err();
    assert_eq!(
        (error.table, error.field, error.problem),
        ("TypeDef", "full_name", Problem::Empty)
    );
    let error = parse(&file_with_shared_types(1, 4097)).unwrap_err();
    assert_eq!(error.problem, Problem::LongName { length: 4097 });
}

#[test]
fn a_vector_longer_than_the_file_is_refused() {
    let mut file = file_with_shared_types(1, 1);
    for count in [1000, 0x4000_0000, u32::MAX] {
        file[48..52].copy_from_slice(&u32::to_le_bytes(count));
        let problem = parse(&file).unwrap_err().problem;
        assert!(
            matches!(problem, Problem::PastEnd { .. }),
            "{count:#x}: {problem}"
        );
    }
}
