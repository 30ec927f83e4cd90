//! How segments share pages, and what protection the pages get.

use hal_abi::StatusCode;
use hal_elf::{ElfError, ElfFile, LoadPlan, Protection};
use proptest::prelude::*;

use crate::PAGE_SIZE;
use crate::builder::{
    Builder, DATA, PT_GNU_RELRO, PT_LOAD, R, RW, RWX, RX, Segment, TEXT, X86_64, load,
};
use crate::fixtures::MUL_ARM_64;

/// The page runs of a file as text, one letter triple and page count each.
fn runs(bytes: &[u8], page_size: usize) -> Result<String, ElfError> {
    let file = ElfFile::parse(bytes).unwrap();
    let plan = LoadPlan::new(&file, page_size)?;
    let runs = plan.page_runs().iter();
    let text = runs.map(|run| format!("{} {}", run.protection, run.range.len() / page_size));
    Ok(text.collect::<Vec<_>>().join(", "))
}

fn with_relro(start: u64, size: u64) -> Vec<u8> {
    let mut builder = Builder::new(X86_64);
    builder.segments[2] = load(RW, DATA, 0x3000);
    builder.put(0x4FFF, &[0]);
    builder.segments.push(Segment {
        kind: PT_GNU_RELRO,
        ..load(R, start, size)
    });
    builder.finish()
}

#[test]
fn each_segment_gets_its_own_protection() {
    let bytes = Builder::new(X86_64).finish();
    assert_eq!(runs(&bytes, PAGE_SIZE).unwrap(), "r-- 1, r-x 1, rw- 1");
}

#[test]
fn a_gap_between_segments_cannot_be_touched() {
    assert_eq!(
        runs(MUL_ARM_64, PAGE_SIZE).unwrap(),
        "r-- 1, --- 15, r-x 1, --- 15, r-- 1"
    );
}

#[test]
fn segments_that_share_a_page_keep_their_bytes() {
    // IREE's own loader zeroes the earlier one.
    let mut builder = Builder::new(X86_64);
    builder.segments = vec![
        load(R, 0, 0x1100),
        load(RX, 0x1100, 0x400),
        load(RW, DATA, 0x800),
    ];
    builder.put(0x10FF, &[0xAA, 0xBB]);
    let bytes = builder.finish();
    assert_eq!(runs(&bytes, PAGE_SIZE).unwrap(), "r-- 1, r-x 1, rw- 1");
    let memory = crate::write_image(&bytes, 0).unwrap();
    assert_eq!(memory[0x10FF..0x1101], [0xAA, 0xBB]);
    assert_eq!(memory[0x300..0x1000], bytes[0x300..0x1000]);
}

#[test]
fn segments_are_rounded_out_to_pages() {
    let mut builder = Builder::new(X86_64);
    builder.segments = vec![
        load(R, 0x40, 0xF00),
        load(RX, 0x1010, 0x20),
        load(RW, 0x2FFE, 4),
    ];
    builder.put(0x3001, &[7]);
    let bytes = builder.finish();
    assert_eq!(runs(&bytes, PAGE_SIZE).unwrap(), "r-- 1, r-x 1, rw- 2");
    assert_eq!(crate::write_image(&bytes, 0).unwrap()[0x3001], 7);
}

#[test]
fn segments_out_of_order_are_laid_out_by_address() {
    let mut builder = Builder::new(X86_64);
    builder.segments.reverse();
    assert_eq!(
        runs(&builder.finish(), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, rw- 1"
    );
}

#[test]
fn a_segment_that_is_writable_and_executable_is_refused() {
    let mut builder = Builder::new(X86_64);
    builder.segments[1].flags = RWX;
    let error = runs(&builder.finish(), PAGE_SIZE).unwrap_err();
    assert!(matches!(
        error,
        ElfError::WritableAndExecutable { address: TEXT }
    ));
    assert_eq!(error.status_code(), StatusCode::PERMISSION_DENIED);
}

#[test]
fn a_page_shared_by_code_and_data_is_refused() {
    let mut builder = Builder::new(X86_64);
    builder.segments = vec![
        load(R, 0, 0x1000),
        load(RX, TEXT, 0x40),
        load(RW, TEXT + 0x40, 0x40),
    ];
    let error = runs(&builder.finish(), PAGE_SIZE).unwrap_err();
    assert!(matches!(
        error,
        ElfError::WritableAndExecutable { address: TEXT }
    ));
    // Segments on 4 KiB pages of their own share one on a host with larger pages.
    let error = runs(&Builder::new(X86_64).finish(), 0x4000).unwrap_err();
    assert!(matches!(
        error,
        ElfError::WritableAndExecutable { address: 0 }
    ));
}

#[test]
fn whole_relro_pages_become_read_only() {
    assert_eq!(
        runs(&with_relro(DATA, 0x2000), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, r-- 2, rw- 1"
    );
    assert_eq!(
        runs(&with_relro(DATA, 0x3000), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, r-- 3"
    );
    assert_eq!(
        runs(&with_relro(DATA, 0), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, rw- 3"
    );
}

#[test]
fn data_on_the_last_relro_page_stays_writable() {
    assert_eq!(
        runs(&with_relro(DATA, 0x1FFF), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, r-- 1, rw- 2"
    );
    assert_eq!(
        runs(&with_relro(DATA, 0xFFF), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, rw- 3"
    );
    assert_eq!(
        runs(&with_relro(DATA + 1, 0x1FFF), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, rw- 1, r-- 1, rw- 1"
    );
}

#[test]
fn a_relro_range_that_is_longer_than_its_segment_is_cut() {
    // IREE's files state the range up to the page boundary.
    assert_eq!(
        runs(&with_relro(0x1F00, 1 << 40), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, r-- 3"
    );
}

#[test]
fn a_segment_without_any_right_cannot_be_touched() {
    let mut builder = Builder::new(X86_64);
    builder.segments.push(load(0, 0x3000, 0x1000));
    builder.put(0x3FFF, &[0]);
    assert_eq!(
        runs(&builder.finish(), PAGE_SIZE).unwrap(),
        "r-- 1, r-x 1, rw- 1, --- 1"
    );
}

#[test]
fn the_largest_alignment_of_the_segments_is_the_images() {
    let mut builder = Builder::new(X86_64);
    builder.segments[2].alignment = 0x2_0000;
    let bytes = builder.finish();
    let file = ElfFile::parse(&bytes).unwrap();
    assert_eq!(
        LoadPlan::new(&file, PAGE_SIZE).unwrap().alignment(),
        0x2_0000
    );
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    gap: u64,
    size: u64,
    flags: u32,
}

fn a_piece() -> impl Strategy<Value = Piece> {
    let near = prop_oneof![Just(0_u64), 1..0x1800_u64];
    (near.clone(), near, 0..8_u32).prop_map(|(gap, size, flags)| Piece { gap, size, flags })
}

proptest! {
    #[test]
    fn page_runs_agree_with_a_byte_by_byte_oracle(
        pieces in prop::collection::vec(a_piece(), 0..8),
        relro in (0..0x8000_u64, 0..0x4000_u64),
    ) {
        let mut builder = Builder::new(X86_64);
        builder.segments = vec![load(R, 0, 0x1000)];
        let relro = 0x1000 + relro.0..0x1000 + relro.0 + relro.1;
        // What each byte of memory asks for, in the bits of segment flags.
        let mut bytes_wanted = vec![4_u32; 0x1000];
        for piece in pieces {
            let start = bytes_wanted.len() as u64 + piece.gap;
            builder.segments.push(Segment { kind: PT_LOAD, ..load(piece.flags, start, piece.size) });
            if piece.size == 0 {
                continue;
            }
            bytes_wanted.resize(usize::try_from(start).unwrap(), 0);
            for address in start..start + piece.size {
                bytes_wanted.push(match (relro.contains(&address), piece.flags & 2) {
                    // What was written may still be read.
                    (true, 2) => (piece.flags - 2) | 4,
                    _ => piece.flags,
                });
            }
        }
        let end = builder.segments.iter().map(|segment| segment.start + segment.file_size).max().unwrap();
        builder.put(end, &[]);
        let size = relro.end - relro.start;
        builder.segments.push(Segment { kind: PT_GNU_RELRO, ..load(R, relro.start, size) });
        let file = builder.finish();
        let file = ElfFile::parse(&file).unwrap();
        let plan = LoadPlan::new(&file, PAGE_SIZE);

        let pages: Vec<u32> = bytes_wanted
            .chunks(PAGE_SIZE)
            .map(|page| page.iter().fold(0, |union, flags| union | flags))
            .collect();
        let conflict = pages.iter().position(|flags| flags & 3 == 3);
        match (plan, conflict) {
            (Err(ElfError::WritableAndExecutable { address }), Some(page)) => {
                prop_assert_eq!(address, (page * PAGE_SIZE) as u64);
            }
            (Ok(plan), None) => {
                prop_assert_eq!(plan.byte_length(), pages.len() * PAGE_SIZE);
                let mut next = 0;
                for run in plan.page_runs() {
                    prop_assert_eq!(run.range.start, next);
                    next = run.range.end;
                    for page in run.range.clone().step_by(PAGE_SIZE) {
                        let expected = match pages[page / PAGE_SIZE] {
                            flags if flags & 1 != 0 => Protection::ReadExecute,
                            flags if flags & 2 != 0 => Protection::ReadWrite,
                            flags if flags & 4 != 0 => Protection::Read,
                            _ => Protection::None,
                        };
                        prop_assert_eq!(run.protection, expected);
                    }
                }
                prop_assert_eq!(next, plan.byte_length());
            }
            (plan, conflict) => prop_assert!(false, "{:?}, expected conflict {:?}", plan, conflict),
        }
    }
}
