//! Tests of whole files through the public interface: fixtures of IREE's compiler, files built byte
//! by byte, and, where there is a C compiler, files of the system's linker.

#![expect(
    clippy::unwrap_used,
    reason = "a helper of a test may panic like the test itself"
)]

mod builder;
mod dynamic;
mod fixtures;
mod headers;
#[cfg(unix)]
mod image;
mod layout;
mod relocations;
mod robustness;

use hal_elf::{ElfError, ElfFile, LoadPlan};

/// The page size that tests plan for, whatever the host's is.
const PAGE_SIZE: usize = 4096;

/// Parses and plans a file, and writes its image into a heap buffer as if it ran at `load_address`.
fn write_image(bytes: &[u8], load_address: u64) -> Result<Vec<u8>, ElfError> {
    let file = ElfFile::parse(bytes)?;
    let plan = LoadPlan::new(&file, PAGE_SIZE)?;
    let mut memory = vec![0; plan.byte_length()];
    plan.write_image(&mut memory, load_address)?;
    Ok(memory)
}

/// The error of parsing a file.
#[track_caller]
fn parse_error(bytes: &[u8]) -> ElfError {
    match ElfFile::parse(bytes) {
        Ok(_) => panic!("the file was parsed"),
        Err(error) => error,
    }
}

/// The error of planning, or relocating, a file that can be described.
#[track_caller]
fn load_error(bytes: &[u8]) -> ElfError {
    if let Err(error) = ElfFile::parse(bytes) {
        panic!("the file cannot be described: {error}");
    }
    match write_image(bytes, 0x7F00_0000_0000) {
        Ok(_) => panic!("the image was written"),
        Err(error) => error,
    }
}
