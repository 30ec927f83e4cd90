//! Arrays in NumPy's `.npy` format: one tensor after another in a stream.
//!
//! The format is NumPy's NEP 1 and `numpy.lib.format`: a magic, a version, the length of a header, the header (a
//! Python dictionary of `descr`, `fortran_order` and `shape`), padding to a multiple of 64 bytes, and the elements.
//!
//! Headers are read by a small parser of our own: the grammar is a dictionary of three known keys, and the `npyz`
//! crate, which the rest would suit, multiplies the dimensions of untrusted headers without checking for overflow.
#![forbid(unsafe_code)]

mod dtype;
mod header;

use std::io::{self, Read, Write};

use vm::StatusCode;

use crate::{ElementType, Tensor, TensorError};

pub use header::Header;

/// The bytes that every file begins with.
pub const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// Longest header that is read, in bytes, as NumPy limits it by default.
pub const MAX_HEADER_LENGTH: usize = 10_000;

/// Element types that arrays are read to, for messages.
const SUPPORTED: &str = "|b1 |i1 <i2 <i4 <i8 |u1 <u2 <u4 <u8 <f2 <f4 <f8 <f16 <c8 <c16 |V1 to |V31";

/// Why an array cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NpyError {
    /// Reading or writing failed.
    #[error("cannot read or write the array")]
    Io(#[from] io::Error),
    /// The stream does not begin like an array.
    #[error("not an npy array: it begins with {found:02x?} instead of `\\x93NUMPY`")]
    Magic {
        /// The bytes found.
        found: Vec<u8>,
    },
    /// The version of the format is unknown.
    #[error("npy version {major}.{minor} is not supported (known: 1.0, 2.0, 3.0)")]
    Version {
        /// Major version.
        major: u8,
        /// Minor version.
        minor: u8,
    },
    /// The header is longer than NumPy allows.
    #[error("an npy header of {length} bytes exceeds the limit of {MAX_HEADER_LENGTH}")]
    HeaderLength {
        /// Length that the stream gives.
        length: u64,
    },
    /// The stream ends too early.
    #[error("the npy {part} takes {expected} bytes, but only {found} are left")]
    Truncated {
        /// What is cut short.
        part: &'static str,
        /// Bytes needed.
        expected: u64,
        /// Bytes found.
        found: u64,
    },
    /// The header is not the expected dictionary.
    #[error("malformed npy header at byte {offset}: expected {expected}")]
    Header {
        /// Offset in the header.
        offset: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// The header lacks a key, or has one twice.
    #[error("the npy header must have the key '{key}' exactly once")]
    Key {
        /// The key.
        key: &'static str,
    },
    /// The first index varies fastest.
    #[error("arrays in fortran order are not supported")]
    FortranOrder,
    /// The elements have a type that tensors do not know.
    #[error("arrays of dtype {descr} are not supported (supported: {SUPPORTED})")]
    Dtype {
        /// The dtype, as the header spells it.
        descr: String,
    },
    /// The elements of a tensor have no dtype.
    #[error("elements of type {element_type} have no numpy dtype")]
    ElementType {
        /// Their type.
        element_type: ElementType,
    },
    /// There can be no such tensor.
    #[error("the array cannot be a tensor")]
    Tensor(#[from] TensorError),
}

impl NpyError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Io(source) if source.kind() == io::ErrorKind::OutOfMemory => {
                StatusCode::RESOURCE_EXHAUSTED
            }
            Self::Io(_) => StatusCode::UNKNOWN,
            Self::Magic { .. } | Self::Header { .. } | Self::Key { .. } => {
                StatusCode::INVALID_ARGUMENT
            }
            Self::Version { .. }
            | Self::FortranOrder
            | Self::Dtype { .. }
            | Self::ElementType { .. } => StatusCode::UNIMPLEMENTED,
            Self::HeaderLength { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::Truncated { .. } => StatusCode::OUT_OF_RANGE,
            Self::Tensor(source) => source.status_code(),
        }
    }
}

/// Reads the array that `reader` stands at and leaves it after the array's last byte.
///
/// Integers become signed (`si32`) or unsigned (`ui32`) elements, as IREE's tools read them. Memory is bounded by what
/// the stream holds, whatever its header says.
///
/// # Errors
/// Fails when the stream holds no array, a truncated one, or one of an unsupported dtype or order.
pub fn read(reader: &mut dyn Read) -> Result<Tensor, NpyError> {
    let header = Header::read(reader)?;
    let element_type = header.element_type()?;
    if header.fortran_order && header.shape.len() > 1 {
        return Err(NpyError::FortranOrder);
    }
    let byte_length = crate::tensor::checked_byte_length(element_type, &header.shape)?;
    let bytes = read_bytes(reader, byte_length, "data")?;
    Ok(Tensor::from_bytes(element_type, &header.shape, &bytes)?)
}

/// Reads `length` bytes; memory grows with what is there.
pub(crate) fn read_bytes(
    reader: &mut dyn Read,
    length: usize,
    part: &'static str,
) -> Result<Vec<u8>, NpyError> {
    let mut bytes = Vec::new();
    reader.take(length as u64).read_to_end(&mut bytes)?;
    if bytes.len() < length {
        let (expected, found) = (length as u64, bytes.len() as u64);
        return Err(NpyError::Truncated {
            part,
            expected,
            found,
        });
    }
    Ok(bytes)
}

/// Writes a tensor as `numpy.save` writes an array of its dtype: version 1.0, in C order.
///
/// # Errors
/// Fails when the element type has no dtype (bfloat16 and 8-bit floats have none) or writing fails.
pub fn write(writer: &mut dyn Write, tensor: &Tensor) -> Result<(), NpyError> {
    let element_type = tensor.element_type();
    let descr = dtype::descr(element_type).ok_or(NpyError::ElementType { element_type })?;
    writer.write_all(&header::encode(&descr, tensor.shape()))?;
    writer.write_all(&tensor.to_bytes())?;
    Ok(())
}

#[cfg(test)]
mod tests;
