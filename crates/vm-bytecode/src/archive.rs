//! The container of a module: where in the file its flatbuffer and the data after it lie.
//!
//! ```text
//! flat      u32 size prefix | flatbuffer | padding to 64 | rodata ...
//! polyglot  local header of a ZIP entry | u32 size prefix | flatbuffer | ZIP entries with rodata ... | directory
//! ```
//! The size prefix of a polyglot is rounded up and may reach past the flatbuffer, so it is an upper bound only. The
//! directory of the ZIP file is never read. Source: `docs/vm.md`, section "Container".
//!
//! Holds offsets, not bytes: the owner of the file keeps it.

use core::ops::Range;

use vm::StatusCode;

use crate::FileKind;

/// Bytes of the fixed part of a ZIP local file header.
const ZIP_HEADER_LENGTH: usize = 30;
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";
/// Bit of the flags of a ZIP entry that says it is encrypted.
const ZIP_ENCRYPTED: u16 = 0x1;
/// Alignment of the data after the flatbuffer, in file offsets.
const RODATA_ALIGNMENT: usize = 64;
/// Identifier of the flatbuffer, after its root offset.
const IDENTIFIER: &[u8] = b"IREE";

/// Where the parts of a module lie in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Archive {
    container: Container,
    flatbuffer: Range<usize>,
    rodata_base: usize,
}

/// How the flatbuffer is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    /// The file starts with the flatbuffer.
    Flat,
    /// The file is also a ZIP archive whose first entry is the flatbuffer.
    Polyglot,
}

/// Why a file is not a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The file is something else.
    #[error("the file is not a module but {kind}")]
    OtherKind {
        /// What it looks like.
        kind: FileKind,
    },
    /// The file is too short for its container.
    #[error("the module ends after {length} bytes, {needed} are needed for {what}")]
    TooShort {
        /// What does not fit.
        what: &'static str,
        /// Bytes that are needed from the start of the file.
        needed: usize,
        /// Bytes of the file.
        length: usize,
    },
    /// The first ZIP entry is compressed.
    #[error("the first ZIP entry is compressed with method {method}, a module must be stored")]
    Compressed {
        /// Number of the compression method.
        method: u16,
    },
    /// The first ZIP entry is encrypted.
    #[error("the first ZIP entry is encrypted, a module must be stored")]
    Encrypted,
    /// The size prefix is larger than the file.
    #[error("the size prefix says {prefix} bytes, {left} follow it")]
    SizePrefix {
        /// Value of the prefix.
        prefix: u32,
        /// Bytes after the prefix.
        left: usize,
    },
    /// The identifier is not that of a module.
    #[error("expected the identifier `IREE` at offset {offset:#x}, found {found:?}")]
    Identifier {
        /// Offset in the file.
        offset: usize,
        /// Bytes at the offset.
        found: [u8; 4],
    },
}

impl ArchiveError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::OtherKind { .. }
            | Self::TooShort { .. }
            | Self::Compressed { .. }
            | Self::Encrypted
            | Self::SizePrefix { .. }
            | Self::Identifier { .. } => StatusCode::INVALID_ARGUMENT,
        }
    }
}

impl Archive {
    /// Finds the parts of the module in `file`.
    ///
    /// The flatbuffer itself is not looked into, except for its identifier.
    ///
    /// # Errors
    /// Fails when the file is not a module; the error says what it looks like instead, if that is known.
    pub fn parse(file: &[u8]) -> Result<Self, ArchiveError> {
        Self::parse_container(file).map_err(|error| match (FileKind::guess(file), &error) {
            // Such a file passes for a module until the reason is found, so the reason says more than the kind.
            (Some(FileKind::Zip), ArchiveError::Compressed { .. } | ArchiveError::Encrypted)
            | (None, _) => error,
            (
                Some(FileKind::Zip),
                ArchiveError::TooShort { .. } | ArchiveError::SizePrefix { .. },
            ) => error,
            (Some(kind), _) => ArchiveError::OtherKind { kind },
        })
    }

    fn parse_container(file: &[u8]) -> Result<Self, ArchiveError> {
        let (container, base) = if file.starts_with(ZIP_MAGIC) {
            (Container::Polyglot, zip_payload_offset(file)?)
        } else {
            (Container::Flat, 0)
        };
        let too_short = |what, length| ArchiveError::TooShort {
            what,
            needed: base + length,
            length: file.len(),
        };
        let payload = file
            .get(base..)
            .ok_or(too_short("the first ZIP entry", 0))?;
        if payload.len() < 16 {
            return Err(too_short("the size prefix and the flatbuffer", 16));
        }
        let &prefix_bytes = payload.first_chunk().expect("the payload has 16 bytes");
        let prefix = u32::from_le_bytes(prefix_bytes);
        let left = payload.len() - 4;
        let length = usize::try_from(prefix)
            .ok()
            .filter(|&length| length <= left)
            .ok_or(ArchiveError::SizePrefix { prefix, left })?;
        let &found = payload[8..]
            .first_chunk()
            .expect("the payload has 16 bytes");
        if found != IDENTIFIER {
            return Err(ArchiveError::Identifier {
                offset: base + 8,
                found,
            });
        }
        let start = base + 4;
        let end = start + length;
        Ok(Self {
            container,
            flatbuffer: start..end,
            rodata_base: end.next_multiple_of(RODATA_ALIGNMENT),
        })
    }

    /// Returns how the flatbuffer is wrapped.
    #[must_use]
    pub const fn container(&self) -> Container {
        self.container
    }

    /// Returns where the flatbuffer lies in the file. Its end is an upper bound.
    #[must_use]
    pub fn flatbuffer(&self) -> Range<usize> {
        self.flatbuffer.clone()
    }

    /// Returns the file offset that the offsets of external rodata count from. It may lie past the end of the file.
    #[must_use]
    pub const fn rodata_base(&self) -> usize {
        self.rodata_base
    }
}

/// Returns the file offset of the bytes of the first entry of a ZIP file.
fn zip_payload_offset(file: &[u8]) -> Result<usize, ArchiveError> {
    let too_short = ArchiveError::TooShort {
        what: "the header of the first ZIP entry",
        needed: ZIP_HEADER_LENGTH,
        length: file.len(),
    };
    let header: &[u8; ZIP_HEADER_LENGTH] = file.first_chunk().ok_or(too_short)?;
    let field = |offset: usize| u16::from_le_bytes([header[offset], header[offset + 1]]);
    let (flags, method, name_length, extra_length) = (field(6), field(8), field(26), field(28));
    if flags & ZIP_ENCRYPTED != 0 {
        return Err(ArchiveError::Encrypted);
    }
    if method != 0 {
        return Err(ArchiveError::Compressed { method });
    }
    Ok(ZIP_HEADER_LENGTH + usize::from(name_length) + usize::from(extra_length))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn flat(prefix: u32, length: usize) -> Vec<u8> {
        let mut file = vec![0; length];
        file[..4].copy_from_slice(&prefix.to_le_bytes());
        file[8..12].copy_from_slice(IDENTIFIER);
        file
    }

    fn zip(flags: u16, method: u16, name_length: u16, payload: &[u8]) -> Vec<u8> {
        let mut file = vec![0; ZIP_HEADER_LENGTH + usize::from(name_length)];
        file[..4].copy_from_slice(ZIP_MAGIC);
        file[6..8].copy_from_slice(&flags.to_le_bytes());
        file[8..10].copy_from_slice(&method.to_le_bytes());
        file[26..28].copy_from_slice(&name_length.to_le_bytes());
        file.extend(payload);
        file
    }

    #[test]
    fn a_flat_file_starts_with_the_size_prefix() {
        let archive = Archive::parse(&flat(100, 200)).unwrap();
        assert_eq!(archive.container(), Container::Flat);
        assert_eq!(archive.flatbuffer(), 4..104);
        assert_eq!(archive.rodata_base(), 128);
    }

    #[test]
    fn a_polyglot_skips_the_header_of_the_first_entry() {
        let archive = Archive::parse(&zip(0, 0, 34, &flat(60, 64))).unwrap();
        assert_eq!(archive.container(), Container::Polyglot);
        assert_eq!(archive.flatbuffer(), 68..128);
        assert_eq!(archive.rodata_base(), 128);
    }

    #[test]
    fn a_compressed_or_encrypted_entry_is_refused() {
        let payload = flat(12, 16);
        assert_eq!(
            Archive::parse(&zip(0, 8, 9, &payload)),
            Err(ArchiveError::Compressed { method: 8 })
        );
        assert_eq!(
            Archive::parse(&zip(1, 0, 9, &payload)),
            Err(ArchiveError::Encrypted)
        );
    }

    #[test]
    fn a_zip_header_that_is_cut_or_points_past_the_end_is_refused() {
        let cut = [ZIP_MAGIC, &[0; 25]].concat();
        assert!(matches!(
            Archive::parse(&cut),
            Err(ArchiveError::TooShort {
                needed: 30,
                length: 29,
                ..
            })
        ));
        let mut file = zip(0, 0, 0, &[]);
        file[26..30].fill(0xFF);
        assert!(matches!(
            Archive::parse(&file),
            Err(ArchiveError::TooShort {
                needed: 131_100,
                ..
            })
        ));
    }

    #[test]
    fn a_prefix_larger_than_the_file_is_refused() {
        assert_eq!(
            Archive::parse(&flat(197, 200)),
            Err(ArchiveError::SizePrefix {
                prefix: 197,
                left: 196
            })
        );
        assert_eq!(
            Archive::parse(&[0xFF; 16]),
            Err(ArchiveError::SizePrefix {
                prefix: u32::MAX,
                left: 12
            })
        );
    }

    #[test]
    fn five_bytes_are_not_a_module() {
        assert!(matches!(
            Archive::parse(&[0, 0, 0, 0, 10]),
            Err(ArchiveError::TooShort { .. })
        ));
        assert!(matches!(
            Archive::parse(&[0xFF; 4]),
            Err(ArchiveError::TooShort { .. })
        ));
    }

    #[test]
    fn another_kind_of_file_is_named() {
        let elf = [b"\x7FELF".as_slice(), &[0; 60]].concat();
        let npy = [b"\x93NUMPY".as_slice(), &[1; 60]].concat();
        let zip = zip(0, 0, 9, &[0; 64]);
        let cases: [(&[u8], FileKind); 5] = [
            (b"", FileKind::Empty),
            (&elf, FileKind::Elf),
            (&npy, FileKind::Npy),
            (&zip, FileKind::Zip),
            (b"func.func @f() { return }", FileKind::MlirText),
        ];
        for (file, kind) in cases {
            assert_eq!(Archive::parse(file), Err(ArchiveError::OtherKind { kind }));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_give_an_archive_inside_the_file_or_an_error(
            zip in any::<bool>(),
            mut file in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            if zip && file.len() >= 4 {
                file[..4].copy_from_slice(ZIP_MAGIC);
            }
            if let Ok(archive) = Archive::parse(&file) {
                prop_assert!(file.get(archive.flatbuffer()).is_some());
            }
        }
    }
}
