//! What a file is and holds, without running any of it: [`describe`].
//!
//! Any bytes may be described. Modules are described even if they do not verify, executables and plugins for any
//! machine: tables that a loader would be handed by a call are looked for in the data of the file (see [`Library`]).
//! Whether a module would run here is another question, answered by [`check()`].
//!
//! # The JSON form
//!
//! With the feature `serde` all types here are `serde::Serialize`; `halite inspect --json` prints a [`Description`]. `docs/inspect.md` is the
//! schema. Fields may be added to it, they are not renamed or removed without raising [`SCHEMA_VERSION`].
#![forbid(unsafe_code)]

mod check;
mod disassembly;
mod elf;
mod executable;
mod fat_elf;
mod library;
mod module;
mod names;
mod plugin;
mod release;
mod target;
#[cfg(test)]
mod testing;
mod view;

use hal_elf::{ElfError, FatElfError};
#[cfg(feature = "serde")]
use serde::Serialize;
use vm::StatusCode;
use vm_bytecode::{ArchiveError, FieldError, FileKind};

use crate::npy::{self, NpyError};

pub use check::{Area, Check, Problem, check};
pub use disassembly::{DisassembleError, disassemble};
pub use elf::Elf;
pub use executable::{Executable, ExecutableContent};
pub use fat_elf::{FatElf, FatElfMember};
pub use library::{Library, LibraryExport, LibraryImport};
pub use module::{
    Attributes, Dependency, ExecutionModel, Export, Import, Module, ModuleSummary, Rodata,
};
pub use names::NameList;
pub use plugin::{PluginHeader, plugin_feature_names};
pub use release::ReleaseRange;
pub use target::CompilationTarget;

/// Version of the JSON form of a [`Description`].
pub const SCHEMA_VERSION: u32 = 1;

/// What a file is and holds.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Description {
    /// [`SCHEMA_VERSION`].
    pub schema: u32,
    /// Length of the file.
    pub byte_length: usize,
    /// What it is.
    #[cfg_attr(feature = "serde", serde(flatten))]
    pub content: Content,
}

/// A kind of file, and what one of this kind holds.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Content {
    /// A compiled program (`.vmfb`).
    Module(Box<Module>),
    /// An ELF image: an executable library, a plugin, or any other.
    Elf(Box<Elf>),
    /// ELF images for several machines.
    FatElf(FatElf),
    /// A NumPy array.
    Npy(Array),
    /// A file that is known by its first bytes only.
    Other {
        /// What it looks like, such as `MLIR text, which must be compiled first`.
        what: String,
    },
}

/// What the header of a NumPy array says.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct Array {
    /// Version of the format, such as `1.0`.
    pub version: String,
    /// The dtype, as the header spells it.
    pub dtype: String,
    /// The type of a tensor's elements, as `--input=` spells it; `None` if tensors have no such elements.
    pub element_type: Option<String>,
    /// The dimensions.
    pub shape: Vec<usize>,
    /// Whether the first index varies fastest, which tensors do not have.
    pub fortran_order: bool,
    /// Bytes after the header. More than the elements take means that more arrays follow.
    pub data_byte_length: usize,
}

/// Why a file cannot be described.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// The file is none of the known kinds.
    #[error("the file is of no known kind")]
    Unknown {
        /// What is missing for it to be a module.
        #[source]
        source: ArchiveError,
    },
    /// The file is a module whose description is damaged.
    #[error("the module is damaged")]
    Module(#[source] FieldError),
    /// The file is a damaged ELF image.
    #[error("the ELF image is damaged")]
    Elf(#[source] ElfError),
    /// The file is a damaged FatELF file.
    #[error("the FatELF file is damaged")]
    FatElf(#[source] FatElfError),
    /// The file is a damaged NumPy array.
    #[error("the NumPy array is damaged")]
    Npy(#[source] NpyError),
}

impl DescribeError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        let abi = |code: hal_abi::StatusCode| StatusCode::from_low_bits(code.0);
        match self {
            Self::Unknown { source } => source.status_code(),
            Self::Module(source) => source.status_code(),
            Self::Elf(source) => abi(source.status_code()),
            Self::FatElf(source) => abi(source.status_code()),
            Self::Npy(source) => source.status_code(),
        }
    }
}

/// Describes the file that holds `bytes`.
///
/// Runs nothing of it and maps nothing. Time and memory are bounded by a constant times the length, plus a constant.
///
/// # Examples
/// ```
/// use halite::inspect::{Content, describe};
///
/// let description = describe(b"func.func @f() { return }")?;
/// assert!(matches!(description.content, Content::Other { .. }));
/// # Ok::<(), halite::inspect::DescribeError>(())
/// ```
///
/// # Errors
/// Fails when the file is of no known kind, or of a known one and damaged.
pub fn describe(bytes: &[u8]) -> Result<Description, DescribeError> {
    Ok(Description {
        schema: SCHEMA_VERSION,
        byte_length: bytes.len(),
        content: describe_content(bytes)?,
    })
}

fn describe_content(bytes: &[u8]) -> Result<Content, DescribeError> {
    match FileKind::guess(bytes) {
        Some(FileKind::Elf) => {
            let elf = elf::describe(bytes).map_err(DescribeError::Elf)?;
            return Ok(Content::Elf(Box::new(elf)));
        }
        Some(FileKind::FatElf) => {
            let fat_elf = fat_elf::describe(bytes).map_err(DescribeError::FatElf)?;
            return Ok(Content::FatElf(fat_elf));
        }
        Some(FileKind::Npy) => {
            let array = describe_array(bytes).map_err(DescribeError::Npy)?;
            return Ok(Content::Npy(array));
        }
        _ => {}
    }
    match vm_bytecode::Archive::parse(bytes) {
        Ok(archive) => {
            let module = module::describe(bytes, archive).map_err(DescribeError::Module)?;
            Ok(Content::Module(Box::new(module)))
        }
        Err(ArchiveError::OtherKind { kind }) => Ok(Content::Other {
            what: kind.to_string(),
        }),
        Err(source) => Err(DescribeError::Unknown { source }),
    }
}

fn describe_array(bytes: &[u8]) -> Result<Array, NpyError> {
    let mut rest = bytes;
    let header = npy::Header::read(&mut rest)?;
    let (major, minor) = header.version;
    Ok(Array {
        version: format!("{major}.{minor}"),
        element_type: header
            .element_type()
            .ok()
            .map(|element_type| element_type.to_string()),
        dtype: header.descr,
        shape: header.shape,
        fortran_order: header.fortran_order,
        data_byte_length: rest.len(),
    })
}

/// Returns an error and its causes as one line.
#[must_use]
pub fn error_line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        line = format!("{line}: {cause}");
        next = cause.source();
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_array_is_described_by_its_header() {
        let tensor = crate::Tensor::from_slice(&[2, 3], &[1f32; 6]).unwrap();
        let mut file = Vec::new();
        npy::write(&mut file, &tensor).unwrap();
        let Content::Npy(array) = describe(&file).unwrap().content else {
            panic!("not an array")
        };
        assert_eq!(array.shape, [2, 3]);
        assert_eq!(array.element_type.as_deref(), Some("f32"));
        assert_eq!(array.data_byte_length, 24);
        assert!(describe(&file[..9]).is_err());
    }

    #[test]
    fn files_that_are_known_by_their_magic_are_named() {
        for (file, expected) in [
            (&b""[..], "an empty file"),
            (b"module @m {", "MLIR text, which must be compiled first"),
            (b"MZ\x90\x00", "a Windows image"),
        ] {
            let Content::Other { what } = describe(file).unwrap().content else {
                panic!("{file:?}")
            };
            assert_eq!(what, expected);
        }
    }

    #[test]
    fn bytes_of_no_known_kind_are_an_error() {
        let error = describe(&[0xFF, 1, 2, 3, 0, 0]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
        assert!(error_line(&error).starts_with("the file is of no known kind: "));
    }

    proptest! {
        #[test]
        fn spoiled_files_are_described_or_refused(
            path in prop::sample::select(vec![
                "tests/fixtures/3.13.0/llvm-cpu/plugin.vmfb",
                "tests/fixtures/2.9.0/llvm-cpu/mul.vmfb",
                "tests/fixtures/3.13.0/vmvx/mul.vmfb",
                "crates/hal-local/tests/fixtures/scale_add_3_13_0.embedded.so",
                "crates/hal-local/tests/fixtures/mul_3_7_0.embedded.so",
            ]),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        ) {
            let mut file = testing::repository_file(path);
            for (place, byte) in changes {
                let place = place.index(file.len());
                file[place] = byte;
            }
            let _ = describe(&file);
            let _ = check(&file, None);
            let _ = disassemble(&file, None);
        }

        #[test]
        fn any_bytes_are_described_or_refused(
            magic in prop::sample::select(vec![&b""[..], b"\x7FELF\x02\x01\x01", b"\xFA\x70\x0E\x1F\x01\x00", b"\x93NUMPY\x01\x00"]),
            rest in prop::collection::vec(any::<u8>(), 0..400),
        ) {
            let _ = describe(&[magic, &rest].concat());
        }
    }
}
