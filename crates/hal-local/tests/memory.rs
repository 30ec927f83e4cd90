//! Loading and dropping leaves nothing behind. One test in a process of its own, so that nothing else
//! allocates meanwhile.

#![expect(
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fs;

use hal_local::{
    EmbeddedElfLoader, ExecutableData, ExecutableLoader, ExecutableParams, SystemLibraryLoader,
    Trust,
};

const EMBEDDED: &[u8] = include_bytes!("fixtures/mul_3_13_0.embedded.so");
const SYSTEM: &[u8] = include_bytes!("fixtures/mul_3_13_0.system.so");

/// What this process has of the system.
#[derive(Debug)]
struct Usage {
    resident_pages: usize,
    mappings: usize,
    open_files: usize,
}

impl Usage {
    fn now() -> Self {
        let sizes = fs::read_to_string("/proc/self/statm").unwrap();
        Self {
            resident_pages: sizes.split(' ').nth(1).unwrap().parse().unwrap(),
            mappings: fs::read_to_string("/proc/self/maps")
                .unwrap()
                .lines()
                .count(),
            open_files: fs::read_dir("/proc/self/fd").unwrap().count(),
        }
    }
}

#[track_caller]
fn check_flat(loader: &dyn ExecutableLoader, format: &str, file: &[u8], rounds: usize) {
    let round = || {
        let params = |bytes| ExecutableParams {
            format,
            data: ExecutableData::copy_of(bytes),
            constants: &[],
        };
        drop(loader.try_load(&params(file)).unwrap());
        assert!(loader.try_load(&params(&file[..file.len() / 8])).is_err());
    };
    (0..200).for_each(|_| round());
    let before = Usage::now();
    (0..rounds).for_each(|_| round());
    let after = Usage::now();
    // A block of 32 bytes lost in each round would already be 78 pages in ten thousand.
    assert!(
        after.resident_pages < before.resident_pages + 64,
        "{before:?} became {after:?}"
    );
    assert!(
        after.mappings < before.mappings + 8,
        "{before:?} became {after:?}"
    );
    assert_eq!(after.open_files, before.open_files);
}

#[test]
fn loading_and_dropping_ten_thousand_times_leaves_memory_flat() {
    // SAFETY: the files beside this test were made by a compiler.
    let trust = unsafe { Trust::native_code() };
    check_flat(
        &EmbeddedElfLoader::new(trust, None),
        "embedded-elf-x86_64",
        EMBEDDED,
        10_000,
    );
    check_flat(
        &SystemLibraryLoader::new(trust, None),
        "system-elf-x86_64",
        SYSTEM,
        2_000,
    );
}
