//! Executables that IREE's compiler made; see `tests/fixtures/README.md`.

use hal_elf::{
    ElfFile, FileType, LoadPlan, Machine, Protection, RelocationKind, SegmentKind, SymbolKind,
};

use crate::PAGE_SIZE;

/// Every fixture: its name and its bytes.
pub(crate) const FIXTURES: [(&str, &[u8]); 4] = [
    (
        "mul-3.13.0-x86_64",
        include_bytes!("../fixtures/mul-3.13.0-x86_64.so"),
    ),
    (
        "mul-3.7.0-x86_64",
        include_bytes!("../fixtures/mul-3.7.0-x86_64.so"),
    ),
    (
        "mul-3.13.0-arm_64",
        include_bytes!("../fixtures/mul-3.13.0-arm_64.so"),
    ),
    (
        "mul-3.13.0-riscv_64",
        include_bytes!("../fixtures/mul-3.13.0-riscv_64.so"),
    ),
];

pub(crate) const MUL_X86_64: &[u8] = FIXTURES[0].1;
pub(crate) const MUL_ARM_64: &[u8] = FIXTURES[2].1;

#[track_caller]
fn check_description(
    bytes: &[u8],
    machine: Machine,
    arch: &str,
    relative: u32,
    relocations: usize,
) {
    let file = ElfFile::parse(bytes).unwrap();
    assert_eq!(file.target().machine, machine);
    assert_eq!(file.target().arch_name(), Some(arch));
    assert_eq!(file.header().file_type, FileType::SHARED_OBJECT);
    assert!(
        file.header()
            .section_header_count
            .is_some_and(|count| count > 10)
    );
    let loadable = file
        .segments()
        .iter()
        .filter(|segment| segment.kind == SegmentKind::LOAD);
    let flags: Vec<_> = loadable.map(|segment| segment.flags.to_string()).collect();
    assert_eq!(flags, ["r--", "r-x", "rw-"]);
    let exported: Vec<_> = file.exported_symbols().collect();
    assert_eq!(exported.len(), 1);
    assert_eq!(exported[0].name, b"iree_hal_executable_library_query");
    assert_eq!(exported[0].kind, SymbolKind::FUNCTION);
    assert_eq!(file.undefined_symbols().count(), 0);
    assert!(file.needed_libraries().is_empty());
    assert_eq!(file.packed_relocation_count(), 0);
    let counts: Vec<_> = file.relocation_counts().into_iter().collect();
    assert_eq!(
        counts,
        [(
            RelocationKind {
                machine,
                number: relative
            },
            relocations
        )]
    );
    assert!(counts[0].0.to_string().contains("RELATIVE"));
}

#[test]
fn an_executable_for_each_machine_is_described() {
    check_description(FIXTURES[0].1, Machine::X86_64, "x86_64", 8, 12);
    check_description(FIXTURES[1].1, Machine::X86_64, "x86_64", 8, 12);
    check_description(FIXTURES[2].1, Machine::ARM_64, "arm_64", 1027, 12);
    check_description(FIXTURES[3].1, Machine::RISCV, "riscv_64", 3, 12);
}

#[test]
fn an_executable_for_each_machine_is_relocated_on_any_host() {
    for (name, bytes) in FIXTURES {
        let load_address = 0x7000_0000_0000;
        let memory = crate::write_image(bytes, load_address).unwrap();
        let file = ElfFile::parse(bytes).unwrap();
        for relocation in file.relocations() {
            let at = usize::try_from(relocation.offset).unwrap();
            let stored = u64::from_le_bytes(*memory[at..].first_chunk().unwrap());
            let expected = load_address.wrapping_add_signed(relocation.addend.unwrap());
            assert_eq!(stored, expected, "{name}: {relocation:?}");
        }
    }
}

#[test]
fn relocated_data_of_an_executable_is_read_only() {
    for (name, bytes) in FIXTURES {
        let file = ElfFile::parse(bytes).unwrap();
        let plan = LoadPlan::new(&file, PAGE_SIZE).unwrap();
        let protections: Vec<_> = plan
            .page_runs()
            .iter()
            .map(|run| run.protection)
            .filter(|&protection| protection != Protection::None)
            .collect();
        let expected = [Protection::Read, Protection::ReadExecute, Protection::Read];
        assert_eq!(protections, expected, "{name}");
    }
}

#[test]
fn an_executable_fits_hosts_with_larger_pages_only_if_it_is_aligned_for_them() {
    let plan = |bytes, page_size| {
        let file = ElfFile::parse(bytes).unwrap();
        LoadPlan::new(&file, page_size).map(|plan| plan.byte_length())
    };
    assert_eq!(plan(MUL_ARM_64, 0x1_0000).unwrap(), 3 * 0x1_0000);
    // Code and relocated data are 4 KiB apart: on one larger page, but neither is written there.
    assert_eq!(plan(MUL_X86_64, 0x4000).unwrap(), 0x4000);
}
