//! FatELF: several ELF files for different computers in one.
//!
//! A FatELF file is a small table of records in front of whole ELF files, its members. The table is
//! always little-endian. Facts: `docs/abi.md`, section 10.8.

use core::fmt;

use hal_abi::StatusCode;

use crate::machine::{ByteOrder, Class, Machine, Target};

/// The first four bytes of a FatELF file.
const MAGIC: [u8; 4] = [0xFA, 0x70, 0x0E, 0x1F];
const VERSION: u16 = 1;
const HEADER_SIZE: usize = 8;
const RECORD_SIZE: usize = 24;

/// Returns whether the bytes start with the FatELF magic.
#[must_use]
pub fn is_fat_elf(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// One record of the table. Its fields are as the file states them; only [`FatElf::select`] checks
/// the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FatElfRecord {
    /// The member's machine.
    pub machine: Machine,
    /// The member's operating system ABI, in the numbers of `EI_OSABI`.
    pub os_abi: u8,
    /// The version of that ABI. Not used.
    pub os_abi_version: u8,
    /// The member's word size: 1 for 32 bits, 2 for 64.
    pub word_size: u8,
    /// The member's byte order: 0 for big-endian, 1 for little. ELF itself uses other numbers.
    pub byte_order: u8,
    /// Where the member starts in the file.
    pub offset: u64,
    /// Bytes in the member.
    pub size: u64,
}

impl FatElfRecord {
    /// Reads one record.
    ///
    /// Layout in bytes: machine 0..2, OS ABI 2, its version 3, word size 4, byte order 5, reserved
    /// 6..8, offset 8..16, size 16..24.
    fn read(raw: &[u8; RECORD_SIZE]) -> Self {
        let u64_at = |at: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&raw[at..at + 8]);
            u64::from_le_bytes(bytes)
        };
        Self {
            machine: Machine(u16::from_le_bytes([raw[0], raw[1]])),
            os_abi: raw[2],
            os_abi_version: raw[3],
            word_size: raw[4],
            byte_order: raw[5],
            offset: u64_at(8),
            size: u64_at(16),
        }
    }

    /// Returns the target, `None` when word size or byte order are not among the known values.
    #[must_use]
    pub fn target(&self) -> Option<Target> {
        let class = match self.word_size {
            1 => Class::Elf32,
            2 => Class::Elf64,
            _ => return None,
        };
        let byte_order = match self.byte_order {
            0 => ByteOrder::Big,
            1 => ByteOrder::Little,
            _ => return None,
        };
        Some(Target {
            machine: self.machine,
            class,
            byte_order,
        })
    }

    /// Returns whether the member is for any System V, Linux or standalone environment.
    const fn has_usable_os_abi(&self) -> bool {
        matches!(self.os_abi, 0 | 3 | 255)
    }
}

impl fmt::Display for FatElfRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.target() {
            Some(target) => write!(f, "{target}")?,
            None => write!(
                f,
                "{} (word size {}, byte order {})",
                self.machine, self.word_size, self.byte_order
            )?,
        }
        if !self.has_usable_os_abi() {
            write!(f, " for OS ABI {}", self.os_abi)?;
        }
        Ok(())
    }
}

/// The table of a FatELF file, borrowing the file's bytes.
#[derive(Clone, Debug)]
pub struct FatElf<'a> {
    bytes: &'a [u8],
    records: Vec<FatElfRecord>,
}

impl<'a> FatElf<'a> {
    /// Parses the table. Members are not looked at.
    ///
    /// # Errors
    ///
    /// A [`FatElfError`] if the magic, the version or the length of the table is wrong.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, FatElfError> {
        if !is_fat_elf(bytes) {
            return Err(FatElfError::Magic);
        }
        let truncated = |needed| FatElfError::Truncated {
            byte_length: bytes.len(),
            needed,
        };
        let header = bytes
            .first_chunk::<HEADER_SIZE>()
            .ok_or(truncated(HEADER_SIZE))?;
        let version = u16::from_le_bytes([header[4], header[5]]);
        if version != VERSION {
            return Err(FatElfError::Version {
                found: version,
                expected: VERSION,
            });
        }
        let count = usize::from(header[6]);
        let table_end = HEADER_SIZE + count * RECORD_SIZE;
        let table = bytes
            .get(HEADER_SIZE..table_end)
            .ok_or(truncated(table_end))?;
        let (raw_records, _) = table.as_chunks::<RECORD_SIZE>();
        Ok(Self {
            bytes,
            records: raw_records.iter().map(FatElfRecord::read).collect(),
        })
    }

    /// Returns every record, in file order.
    #[must_use]
    pub fn records(&self) -> &[FatElfRecord] {
        &self.records
    }

    /// Returns the bytes of the first member for `target`.
    ///
    /// Later members are not tried, whatever is wrong with the first match.
    ///
    /// # Errors
    ///
    /// [`FatElfError::NoMatch`] names the targets that are there; the others name the record whose
    /// range is not inside the file.
    pub fn select(&self, target: Target) -> Result<&'a [u8], FatElfError> {
        let matches =
            |record: &FatElfRecord| record.target() == Some(target) && record.has_usable_os_abi();
        let index = self
            .records
            .iter()
            .position(matches)
            .ok_or_else(|| FatElfError::NoMatch {
                target,
                present: self.present(),
            })?;
        self.member(index)
    }

    /// Returns the bytes of the member that a record describes.
    fn member(&self, index: usize) -> Result<&'a [u8], FatElfError> {
        let FatElfRecord { offset, size, .. } = self.records[index];
        if offset == 0 || size == 0 {
            return Err(FatElfError::Empty {
                index,
                offset,
                size,
            });
        }
        let table_end = HEADER_SIZE + self.records.len() * RECORD_SIZE;
        usize::try_from(offset)
            .ok()
            .zip(usize::try_from(size).ok())
            .filter(|&(offset, _)| offset >= table_end)
            .and_then(|(offset, size)| self.bytes.get(offset..)?.get(..size))
            .ok_or(FatElfError::OutsideFile {
                index,
                offset,
                size,
                file_length: self.bytes.len(),
            })
    }

    fn present(&self) -> String {
        if self.records.is_empty() {
            return String::from("nothing");
        }
        let names: Vec<_> = self.records.iter().map(ToString::to_string).collect();
        names.join(", ")
    }
}

/// Why no member of a FatELF file can be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FatElfError {
    /// The file is not a FatELF file.
    #[error("the file does not start with the FatELF magic fa 70 0e 1f")]
    Magic,
    /// The file ends inside its table.
    #[error("the FatELF table needs {needed} bytes, the file has {byte_length}")]
    Truncated {
        /// Bytes in the file.
        byte_length: usize,
        /// Bytes in the table.
        needed: usize,
    },
    /// The table has a layout that is not known.
    #[error("the FatELF version is {found}, expected {expected}")]
    Version {
        /// The version in the file.
        found: u16,
        /// The only known version.
        expected: u16,
    },
    /// There is no member for the target.
    #[error("no FatELF member is for {target}; present: {present}")]
    NoMatch {
        /// The target that was asked for.
        target: Target,
        /// The targets that are there, in file order.
        present: String,
    },
    /// The record says that there is no member.
    #[error("FatELF record {index} has no member (offset {offset:#x}, size {size:#x})")]
    Empty {
        /// The record.
        index: usize,
        /// Its offset.
        offset: u64,
        /// Its size.
        size: u64,
    },
    /// The member is not inside the file, or lies over the table.
    #[error(
        "FatELF record {index} with {size:#x} bytes at offset {offset:#x} is not between the table and \
         the end of the file of {file_length:#x} bytes"
    )]
    OutsideFile {
        /// The record.
        index: usize,
        /// Its offset.
        offset: u64,
        /// Its size.
        size: u64,
        /// Bytes in the file.
        file_length: usize,
    },
}

impl FatElfError {
    /// Returns the status code that stands for this error across the runtime's boundaries.
    #[must_use]
    pub const fn status_code(&self) -> StatusCode {
        match self {
            Self::Magic | Self::Truncated { .. } | Self::NoMatch { .. } | Self::Empty { .. } => {
                StatusCode::INVALID_ARGUMENT
            }
            Self::Version { .. } => StatusCode::UNIMPLEMENTED,
            Self::OutsideFile { .. } => StatusCode::OUT_OF_RANGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86_64: Target = Target {
        machine: Machine::X86_64,
        class: Class::Elf64,
        byte_order: ByteOrder::Little,
    };
    const RISCV_32: Target = Target {
        machine: Machine::RISCV,
        class: Class::Elf32,
        byte_order: ByteOrder::Little,
    };

    fn record(machine: Machine, word_size: u8, os_abi: u8, offset: u64, size: u64) -> Vec<u8> {
        let mut raw = machine.0.to_le_bytes().to_vec();
        raw.extend([os_abi, 0, word_size, 1, 0, 0]);
        raw.extend(offset.to_le_bytes());
        raw.extend(size.to_le_bytes());
        raw
    }

    fn fat(records: &[Vec<u8>], rest: &[u8]) -> Vec<u8> {
        let count = u8::try_from(records.len()).unwrap();
        let mut bytes = vec![0xFA, 0x70, 0x0E, 0x1F, 1, 0, count, 0];
        bytes.extend(records.concat());
        bytes.extend(rest);
        bytes
    }

    #[test]
    fn the_first_member_for_the_target_is_selected() {
        let records = [
            record(Machine::RISCV, 1, 0, 81, 2),
            record(Machine::X86_64, 2, 3, 80, 3),
            record(Machine::X86_64, 2, 0, 83, 1),
        ];
        let bytes = fat(&records, b"abcdef");
        let file = FatElf::parse(&bytes).unwrap();
        assert_eq!(file.select(X86_64), Ok(&b"abc"[..]));
        assert_eq!(file.select(RISCV_32), Ok(&b"bc"[..]));
    }

    #[test]
    fn a_member_for_another_system_is_passed_over() {
        let records = [
            record(Machine::X86_64, 2, 9, 56, 1),
            record(Machine::X86_64, 2, 255, 57, 1),
        ];
        let bytes = fat(&records, b"ab");
        assert_eq!(FatElf::parse(&bytes).unwrap().select(X86_64), Ok(&b"b"[..]));
    }

    #[test]
    fn a_missing_target_error_lists_what_is_there() {
        let records = [
            record(Machine::ARM_64, 2, 0, 56, 1),
            record(Machine(7), 9, 6, 57, 1),
        ];
        let bytes = fat(&records, b"ab");
        let error = FatElf::parse(&bytes).unwrap().select(X86_64).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no FatELF member is for x86-64 64-bit little-endian; present: AArch64 64-bit \
             little-endian, machine 0x7 (word size 9, byte order 1) for OS ABI 6"
        );
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
        let empty = fat(&[], b"");
        let error = FatElf::parse(&empty).unwrap().select(X86_64).unwrap_err();
        assert!(error.to_string().ends_with("present: nothing"));
    }

    #[test]
    fn a_range_that_wraps_or_leaves_the_file_is_refused() {
        for (offset, size) in [
            (u64::MAX - 7, 8),
            (u64::MAX - 7, 16),
            (32, u64::MAX),
            (32, 2),
            (33, 1),
            (31, 1),
            (8, 4),
            (1, 1),
        ] {
            let bytes = fat(&[record(Machine::X86_64, 2, 0, offset, size)], b"a");
            let error = FatElf::parse(&bytes).unwrap().select(X86_64).unwrap_err();
            assert_eq!(
                error.status_code(),
                StatusCode::OUT_OF_RANGE,
                "{offset:#x} {size:#x}"
            );
        }
    }

    #[test]
    fn a_record_with_offset_or_size_0_has_no_member() {
        for (offset, size) in [(0, 1), (32, 0), (0, 0)] {
            let bytes = fat(&[record(Machine::X86_64, 2, 0, offset, size)], b"a");
            let error = FatElf::parse(&bytes).unwrap().select(X86_64).unwrap_err();
            assert_eq!(
                error,
                FatElfError::Empty {
                    index: 0,
                    offset,
                    size
                }
            );
        }
    }

    #[test]
    fn a_cut_table_is_refused_at_every_length() {
        let bytes = fat(&[record(Machine::X86_64, 2, 0, 32, 1)], b"a");
        for length in 0..32 {
            let error = FatElf::parse(&bytes[..length]).unwrap_err();
            assert_eq!(
                error.status_code(),
                StatusCode::INVALID_ARGUMENT,
                "{length}"
            );
        }
        assert!(FatElf::parse(&bytes[..32]).is_ok());
    }

    #[test]
    fn another_version_is_unimplemented() {
        let mut bytes = fat(&[], b"");
        bytes[4] = 2;
        let error = FatElf::parse(&bytes).unwrap_err();
        assert_eq!(
            error,
            FatElfError::Version {
                found: 2,
                expected: 1
            }
        );
        assert_eq!(error.status_code(), StatusCode::UNIMPLEMENTED);
    }
}
