//! What can be wrong in a function body, and where.
//!
//! Shared by [`crate::decode`] and [`crate::verify`]; holds no checks itself.

use core::fmt;

use vm::{Atom, StatusCode};

use crate::code::{AnyReg, I32Reg, RefReg, RemapPair};
use crate::{Features, Opcode, Page};

/// A fault in a function body and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}")]
#[non_exhaustive]
pub struct FunctionError {
    /// Where the fault is.
    pub place: Place,
    /// What is wrong.
    pub fault: Fault,
}

/// A place in a function body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Byte offset in the function body of the instruction, or of the byte at fault outside instructions.
    pub offset: u32,
    /// Operation of the instruction, once it is known.
    pub op: Option<Opcode>,
    /// Index of the operand in encoding order.
    pub operand: Option<usize>,
    /// Index in the list or remap that the operand is.
    pub entry: Option<usize>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {:#x}", self.offset)?;
        if let Some(op) = self.op {
            write!(f, ", {op}")?;
        }
        if let Some(operand) = self.operand {
            write!(f, ", operand {operand}")?;
        }
        if let Some(entry) = self.entry {
            write!(f, ", entry {entry}")?;
        }
        Ok(())
    }
}

impl FunctionError {
    /// Places a fault that belongs to no operand.
    #[cold]
    pub(crate) fn at(offset: u32, fault: Fault) -> Self {
        Self {
            place: Place {
                offset,
                op: None,
                operand: None,
                entry: None,
            },
            fault,
        }
    }

    /// Places a fault of an instruction.
    #[cold]
    pub(crate) fn instruction(offset: u32, op: Opcode, fault: Fault) -> Self {
        Self {
            place: Place {
                offset,
                op: Some(op),
                operand: None,
                entry: None,
            },
            fault,
        }
    }

    /// Places a fault of an operand.
    #[cold]
    pub(crate) fn operand(offset: u32, op: Opcode, index: usize, fault: OperandFault) -> Self {
        Self {
            place: Place {
                offset,
                op: Some(op),
                operand: Some(index),
                entry: fault.entry,
            },
            fault: fault.fault,
        }
    }

    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        self.fault.status_code()
    }
}

/// A fault of an operand, with the entry if the operand is a list.
#[derive(Debug)]
pub(crate) struct OperandFault {
    entry: Option<usize>,
    fault: Fault,
}

impl From<Fault> for OperandFault {
    fn from(fault: Fault) -> Self {
        Self { entry: None, fault }
    }
}

/// What is wrong in a function body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The body ends inside an instruction.
    #[error("the body ends: {needed} more bytes are needed, {left} are left")]
    EndOfBody {
        /// Bytes to read.
        needed: usize,
        /// Bytes that are there.
        left: usize,
    },
    /// No instruction has this opcode.
    #[error("byte {byte:#04x} is no opcode of the {page} page")]
    UnknownOpcode {
        /// Page the byte was looked up on.
        page: Page,
        /// The byte.
        byte: u8,
    },
    /// The instruction needs a feature the function does not declare.
    #[error("the instruction needs {needed}, the function declares {declared}")]
    MissingFeature {
        /// Features of the instruction.
        needed: Features,
        /// Features of the function.
        declared: Features,
    },
    /// A byte outside any block is not a marker.
    #[error("expected the marker 0x79 of a block, found byte {found:#04x}")]
    NoMarker {
        /// The byte.
        found: u8,
    },
    /// A marker stands in a block that has no terminator yet.
    #[error("a block marker stands inside a block")]
    MarkerInBlock,
    /// The body ends inside a block.
    #[error("the body ends inside the block at {block:#x}: it has no terminator")]
    OpenBlock {
        /// Offset of the marker of the block.
        block: u32,
    },
    /// The number of blocks is not the declared one.
    #[error("the descriptor says {declared} blocks, the body has {found}")]
    BlockCount {
        /// Count of the descriptor.
        declared: i16,
        /// Count of the body.
        found: usize,
    },
    /// The size of a register bank is not possible, or too small for the arguments.
    #[error(
        "the descriptor says {declared} {bank} registers, expected {arguments} for the arguments to {most}"
    )]
    RegisterCount {
        /// The bank.
        bank: &'static str,
        /// Count of the descriptor.
        declared: i16,
        /// Most registers of the bank.
        most: u16,
        /// Registers the arguments take.
        arguments: usize,
    },
    /// A target is not the marker of a block.
    #[error("target {target:#x} is not the start of a block")]
    BlockTarget {
        /// The offset that was named.
        target: u32,
    },
    /// The alignment byte before a list is not zero.
    #[error("the padding before a list is {found:#04x}, expected 0")]
    Padding {
        /// The byte.
        found: u8,
    },
    /// A value register stands where a ref register belongs.
    #[error("expected a ref register, found {found}")]
    ExpectedRef {
        /// The register.
        found: I32Reg,
    },
    /// A ref register stands where a value register belongs.
    #[error("expected a value register, found {found}")]
    ExpectedValue {
        /// The register.
        found: RefReg,
    },
    /// A 64-bit value is in a pair that starts at an odd register.
    #[error("a 64-bit value must start at an even register, found %i{ordinal}")]
    OddPair {
        /// Ordinal of the register.
        ordinal: u16,
    },
    /// A ref is moved where only reading is allowed.
    #[error("{register} is moved where a move is not allowed")]
    MoveNotAllowed {
        /// The register.
        register: RefReg,
    },
    /// The two sides of a remap are of different banks.
    #[error("a remap must stay in one bank, found {} to {}", .pair.source, .pair.target)]
    RemapBanks {
        /// The pair.
        pair: RemapPair,
    },
    /// A register does not exist.
    #[error("register {register} does not exist: the function has {count} of its bank")]
    RegisterOutOfRange {
        /// The register.
        register: AnyReg,
        /// Registers of the bank.
        count: u16,
    },
    /// The high half of a pair does not exist.
    #[error("the pair at %i{ordinal} does not exist: the function has {count} value registers")]
    PairOutOfRange {
        /// Ordinal of the low word.
        ordinal: u16,
        /// Value registers of the function.
        count: u16,
    },
    /// An index in a table of the module does not exist.
    #[error("{table} {index} does not exist: the module has {count}")]
    IndexOutOfRange {
        /// What the table holds.
        table: &'static str,
        /// The index.
        index: u32,
        /// Entries of the table.
        count: usize,
    },
    /// A value global lies outside the value globals.
    #[error("a {width}-byte global at {offset:#x} ends past the {capacity} bytes of value globals")]
    GlobalOutOfRange {
        /// Byte offset.
        offset: u32,
        /// Byte width.
        width: u32,
        /// Bytes of value globals.
        capacity: u32,
    },
    /// The operation works on imports only.
    #[error("expected an import, found function {ordinal}")]
    ExpectedImport {
        /// The ordinal.
        ordinal: u32,
    },
    /// An import with spans is called without segment sizes.
    #[error("an import with the calling convention `{convention}` needs a variadic call")]
    NeedsSegments {
        /// Calling convention of the import.
        convention: String,
    },
    /// The segment list of a variadic call has the wrong length.
    #[error("expected {expected} segments, one per argument of `{convention}`, found {found}")]
    SegmentCount {
        /// Arguments of the convention.
        expected: usize,
        /// Entries of the list.
        found: usize,
        /// Calling convention of the import.
        convention: String,
    },
    /// An argument that is no span has a segment size.
    #[error("an argument that is no span must have the segment size 0xffff, found {found:#x}")]
    SegmentSize {
        /// The size.
        found: u16,
    },
    /// A list of values has the wrong length.
    #[error("expected {expected} values for `{convention}`, found {found}")]
    ValueCount {
        /// Values of the convention.
        expected: usize,
        /// Entries of the list.
        found: usize,
        /// Calling convention.
        convention: String,
    },
    /// A register cannot hold the value the convention asks for.
    #[error("expected a register for `{}`, found {found}", .expected.letter())]
    ValueType {
        /// Type of the value.
        expected: Atom,
        /// The register.
        found: AnyReg,
    },
}

impl Fault {
    /// Places the fault in a list.
    #[cold]
    pub(crate) fn in_entry(self, index: usize) -> OperandFault {
        OperandFault {
            entry: Some(index),
            fault: self,
        }
    }

    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::EndOfBody { .. }
            | Self::RegisterOutOfRange { .. }
            | Self::PairOutOfRange { .. }
            | Self::IndexOutOfRange { .. }
            | Self::GlobalOutOfRange { .. } => StatusCode::OUT_OF_RANGE,
            Self::ExpectedImport { .. } => StatusCode::FAILED_PRECONDITION,
            Self::UnknownOpcode { .. }
            | Self::MissingFeature { .. }
            | Self::NoMarker { .. }
            | Self::MarkerInBlock
            | Self::OpenBlock { .. }
            | Self::BlockCount { .. }
            | Self::RegisterCount { .. }
            | Self::BlockTarget { .. }
            | Self::Padding { .. }
            | Self::ExpectedRef { .. }
            | Self::ExpectedValue { .. }
            | Self::OddPair { .. }
            | Self::MoveNotAllowed { .. }
            | Self::RemapBanks { .. }
            | Self::NeedsSegments { .. }
            | Self::SegmentCount { .. }
            | Self::SegmentSize { .. }
            | Self::ValueCount { .. }
            | Self::ValueType { .. } => StatusCode::INVALID_ARGUMENT,
        }
    }
}
