//! What the cross-crate tests and the fuzzer share: where the fixtures are, the fuzz targets, mutants of real
//! files, an allocator that counts, and a soak.

pub mod fuzz;
pub mod memory;
pub mod mutants;
pub mod soak;

use std::path::{Path, PathBuf};

/// Returns the folder of the committed fixtures; its `README.md` describes them.
#[must_use]
pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures")
}

/// The examples of the repository's README.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
