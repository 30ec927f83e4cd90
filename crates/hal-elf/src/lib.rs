//! Parses, checks, maps and relocates freestanding ELF and FatELF images.
//!
//! IREE's compiler puts native code into small shared objects that need nothing from their
//! surroundings: no libraries, no symbols, no C runtime. This crate describes such files
//! ([`ElfFile`]), plans how to lay them out in memory ([`LoadPlan`]) and loads them ([`Image`]),
//! without a system linker and on any file the linkers in use can make. Facts about the format
//! beyond the ELF specification are in `docs/abi.md`, section 10.
//!
//! **Structure is checked, code is trusted.** Any bytes may be described and planned: the result is
//! a value or an [`ElfError`] that names what is wrong, in memory bounded by a constant times the
//! input plus [`MAX_EXTRA_IMAGE_BYTES`]. Running a file is the one thing that takes trust, and
//! [`Image::load`] is the one door: it is `unsafe`.
//!
//! # Examples
//!
//! ```no_run
//! use hal_elf::Image;
//!
//! let bytes = std::fs::read("kernel.so")?;
//! // Sound because `kernel.so` is a file of our own that has no initializers.
//! let image = unsafe { Image::load(&bytes) }?;
//! let query = image.symbol(c"iree_hal_executable_library_query").ok_or("nothing to query")?;
//! println!("{query:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | what it holds |
//! |---|---|
//! | `machine` | machines, classes, byte orders, targets |
//! | `header`, `segment`, `dynamic`, `hash`, `symbol`, `relocation` | one ELF concept each, read and checked |
//! | `file` | [`ElfFile`], which joins them |
//! | `layout`, `relocate`, `plan` | the memory image as numbers and bytes: [`LoadPlan`] |
//! | `image`, `sys` | the mapped image: [`Image`], and the system calls under it |
//! | `fatelf` | [`FatElf`], several files in one |
//! | `error` | [`ElfError`] and its status codes |
//!
//! # Systems
//!
//! Describing works everywhere. Loading works on Unix systems whose processor is x86, x86-64 or
//! AArch64, and on Linux on RISC-V; elsewhere it is [`ElfError::UnsupportedHost`].

#![deny(unsafe_code)]

mod dynamic;
mod error;
mod fatelf;
mod file;
mod hash;
mod header;
#[expect(
    unsafe_code,
    reason = "turning a file into running code is the crate's purpose"
)]
mod image;
mod layout;
mod machine;
mod plan;
mod relocate;
mod relocation;
mod segment;
mod symbol;
#[cfg_attr(
    unix,
    expect(unsafe_code, reason = "mapping memory and synchronizing caches")
)]
mod sys;

pub use error::{ElfError, Sanitizer, StringFault, UndefinedSymbols};
pub use fatelf::{FatElf, FatElfError, FatElfRecord, is_fat_elf};
pub use file::ElfFile;
pub use header::{FileType, Header};
pub use image::Image;
pub use layout::{
    MAX_EXTRA_IMAGE_BYTES, MAX_IMAGE_ALIGNMENT, MAX_IMAGE_BYTES_PER_FILE_BYTE, PageRun, Protection,
};
pub use machine::{ByteOrder, Class, Machine, Target};
pub use plan::LoadPlan;
pub use relocation::{Relocation, RelocationKind};
pub use segment::{Segment, SegmentFlags, SegmentKind};
pub use symbol::{MAX_NAME_LENGTH, Symbol, SymbolBinding, SymbolKind};
