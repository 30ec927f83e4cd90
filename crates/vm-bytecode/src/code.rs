//! Decoded instructions: registers, operands, and the pools that hold them.
//!
//! Holds the data only. [`crate::decode`] makes it from bytes, [`crate::verify`] decides whether it may be run.

use core::fmt;
use core::ops::Range;

use crate::Opcode;

/// Register of the 32-bit bank, holding an i32 or the bits of an f32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct I32Reg(pub(crate) u16);

/// Pair of registers of the 32-bit bank, holding an i64 or the bits of an f64, low word first.
///
/// Invariant: the ordinal of the low word is even.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct I64Reg(pub(crate) u16);

/// Register of the ref bank, with its MOVE mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RefReg(pub(crate) u16);

/// Register of either bank.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct AnyReg(pub(crate) u16);

/// What an [`AnyReg`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Register {
    /// A register of the 32-bit bank. In a list of values it may be the low word of a pair.
    I32(I32Reg),
    /// A register of the ref bank.
    Ref(RefReg),
}

const REF_BIT: u16 = 0x8000;
const MOVE_BIT: u16 = 0x4000;
const REF_MASK: u16 = 0x3FFF;

impl I32Reg {
    /// Returns the ordinal of the register in its bank.
    #[must_use]
    pub const fn ordinal(self) -> u16 {
        self.0
    }
}

impl I64Reg {
    /// Returns the ordinal of the low word. It is even, and the next ordinal is the high word.
    #[must_use]
    pub const fn ordinal(self) -> u16 {
        self.0
    }
}

impl RefReg {
    /// Returns the ordinal of the register in its bank.
    #[must_use]
    pub const fn ordinal(self) -> u16 {
        self.0 & REF_MASK
    }

    /// Returns whether the instruction takes the ref out of its place: of the register when it is read, of the
    /// global or list when it is a result.
    #[must_use]
    pub const fn is_move(self) -> bool {
        self.0 & MOVE_BIT != 0
    }
}

impl From<I32Reg> for AnyReg {
    fn from(register: I32Reg) -> Self {
        Self(register.0)
    }
}

impl From<I64Reg> for AnyReg {
    /// Names the pair by its low word.
    fn from(register: I64Reg) -> Self {
        Self(register.0)
    }
}

impl AnyReg {
    /// Returns the bank and register.
    #[must_use]
    pub const fn register(self) -> Register {
        if self.0 & REF_BIT != 0 {
            Register::Ref(RefReg(self.0))
        } else {
            Register::I32(I32Reg(self.0))
        }
    }

    /// Returns the 16 bits of the encoding.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl fmt::Display for I32Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%i{}", self.0)
    }
}

impl fmt::Display for I64Reg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "%i{}:{}", self.0, u32::from(self.0) + 1)
    }
}

impl fmt::Display for RefReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "%{}{}",
            if self.is_move() { 'R' } else { 'r' },
            self.ordinal()
        )
    }
}

impl fmt::Display for AnyReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.register() {
            Register::I32(register) => register.fmt(f),
            Register::Ref(register) => register.fmt(f),
        }
    }
}

impl fmt::Debug for AnyReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The callee of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionRef {
    /// Function of this module, by ordinal.
    Internal(u32),
    /// Imported function, by ordinal.
    Import(u32),
}

/// One copy of a remap: the source is read, the target written. Both are of one bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RemapPair {
    /// Register that is read; a ref may be moved.
    pub source: AnyReg,
    /// Register that is written.
    pub target: AnyReg,
}

/// Where the entries of an operand lie among those of its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PoolRange {
    start: u32,
    count: u16,
}

impl PoolRange {
    fn range(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::from(self.count)
    }
}

/// A decoded operand. Which variant stands at which place follows from [`Opcode::operand_kinds`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Register with an i32 or f32, read or written.
    I32(I32Reg),
    /// Register pair with an i64 or f64, read or written.
    I64(I64Reg),
    /// Ref register, read or written.
    Ref(RefReg),
    /// i32 immediate.
    ImmI32(i32),
    /// i64 immediate.
    ImmI64(i64),
    /// Bits of an f32 immediate.
    ImmF32(u32),
    /// Bits of an f64 immediate.
    ImmF64(u64),
    /// Byte offset of a value global.
    Global(u32),
    /// Ordinal of a global ref.
    GlobalRef(u32),
    /// Ordinal of a rodata segment.
    Rodata(u32),
    /// Callee.
    Function(FunctionRef),
    /// Index in the type table.
    Type(u32),
    /// Offset of a block's marker in the function body.
    Block(u32),
    /// Bytes of a message; see [`Instruction::text`].
    Text(PoolRange),
    /// Registers; see [`Instruction::registers`].
    Registers(PoolRange),
    /// Segment sizes of a variadic call; see [`Instruction::segments`].
    Segments(PoolRange),
    /// Copies on the way to a block; see [`Instruction::remap`].
    Remap(PoolRange),
    /// Count of cases. As many pairs of [`Operand::Block`] and [`Operand::Remap`] follow.
    Cases(u16),
}

/// Instructions of a function and the pools their operands point into.
#[derive(Clone, Debug, Default)]
pub(crate) struct Code {
    instructions: Vec<InstructionRecord>,
    operands: Vec<Operand>,
    registers: Vec<AnyReg>,
    segments: Vec<u16>,
    remaps: Vec<RemapPair>,
    text: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct InstructionRecord {
    offset: u32,
    first_operand: u32,
    op: Opcode,
}

/// An instruction and access to its operands.
#[derive(Clone, Copy, Debug)]
pub struct Instruction<'a> {
    code: &'a Code,
    offset: u32,
    op: Opcode,
    operands: &'a [Operand],
}

impl<'a> Instruction<'a> {
    /// Returns the byte offset of the instruction in the function body.
    #[must_use]
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// Returns the operation.
    #[must_use]
    pub const fn op(&self) -> Opcode {
        self.op
    }

    /// Returns the operands in encoding order.
    #[must_use]
    pub const fn operands(&self) -> &'a [Operand] {
        self.operands
    }

    /// Returns the registers of an [`Operand::Registers`] of this instruction.
    ///
    /// # Panics
    /// May panic if the range comes from another function.
    #[must_use]
    pub fn registers(&self, range: PoolRange) -> &'a [AnyReg] {
        &self.code.registers[range.range()]
    }

    /// Returns the sizes of an [`Operand::Segments`] of this instruction.
    ///
    /// # Panics
    /// May panic if the range comes from another function.
    #[must_use]
    pub fn segments(&self, range: PoolRange) -> &'a [u16] {
        &self.code.segments[range.range()]
    }

    /// Returns the copies of an [`Operand::Remap`] of this instruction.
    ///
    /// # Panics
    /// May panic if the range comes from another function.
    #[must_use]
    pub fn remap(&self, range: PoolRange) -> &'a [RemapPair] {
        &self.code.remaps[range.range()]
    }

    /// Returns the bytes of an [`Operand::Text`] of this instruction. They need not be UTF-8.
    ///
    /// # Panics
    /// May panic if the range comes from another function.
    #[must_use]
    pub fn text(&self, range: PoolRange) -> &'a [u8] {
        &self.code.text[range.range()]
    }
}

impl Code {
    /// Returns the number of instructions.
    pub(crate) fn len(&self) -> usize {
        self.instructions.len()
    }

    /// Returns the instruction at `index`, which must be less than [`Self::len`].
    pub(crate) fn instruction(&self, index: usize) -> Instruction<'_> {
        let record = self.instructions[index];
        let end = self
            .instructions
            .get(index + 1)
            .map_or(self.operands.len(), |next| next.first_operand as usize);
        Instruction {
            code: self,
            offset: record.offset,
            op: record.op,
            operands: &self.operands[record.first_operand as usize..end],
        }
    }

    pub(crate) fn begin(&mut self, offset: u32, op: Opcode) {
        let first_operand = index32(self.operands.len());
        self.instructions.push(InstructionRecord {
            offset,
            first_operand,
            op,
        });
    }

    pub(crate) fn push_operand(&mut self, operand: Operand) {
        self.operands.push(operand);
    }

    pub(crate) fn push_registers(&mut self, registers: impl ExactSizeIterator<Item = AnyReg>) {
        let range = append(&mut self.registers, registers);
        self.operands.push(Operand::Registers(range));
    }

    pub(crate) fn push_segments(&mut self, segments: impl ExactSizeIterator<Item = u16>) {
        let range = append(&mut self.segments, segments);
        self.operands.push(Operand::Segments(range));
    }

    pub(crate) fn push_remap(&mut self, pairs: impl ExactSizeIterator<Item = RemapPair>) {
        let range = append(&mut self.remaps, pairs);
        self.operands.push(Operand::Remap(range));
    }

    pub(crate) fn push_text(&mut self, text: &[u8]) {
        let range = append(&mut self.text, text.iter().copied());
        self.operands.push(Operand::Text(range));
    }
}

/// Appends `items` to a pool and returns where they lie.
fn append<T>(pool: &mut Vec<T>, items: impl ExactSizeIterator<Item = T>) -> PoolRange {
    let start = index32(pool.len());
    let count = u16::try_from(items.len()).expect("list counts are encoded in 16 bits");
    pool.extend(items);
    PoolRange { start, count }
}

/// Narrows a position in a pool.
fn index32(position: usize) -> u32 {
    u32::try_from(position)
        .expect("a pool holds at most one entry per byte of a body, which is shorter than 2^31")
}
