//! Decoding: bytes of a function body to [`Code`].
//!
//! Checks what the encoding itself says: that bytes are there, that opcodes exist, that each register names the bank its
//! place asks for, that pairs are even, and that MOVE stands only where it may. Whether an ordinal exists in the module is
//! left to [`crate::verify`].

use crate::code::{
    AnyReg, Code, FunctionRef, I32Reg, I64Reg, Operand, RefReg, Register, RemapPair,
};
use crate::fault::{Fault, FunctionError, OperandFault};
use crate::isa::BLOCK_MARKER;
use crate::{Block, Opcode, OperandKind, Page};

/// Bit of a function ordinal that marks an import.
const IMPORT_BIT: u32 = 0x8000_0000;

/// Decodes a whole function body into blocks of instructions.
///
/// Every byte belongs to a block, every block starts with a marker and ends with its only terminator.
pub(crate) fn decode_body(body: &[u8]) -> Result<(Code, Vec<Block>), FunctionError> {
    let mut decoder = Decoder { body, position: 0 };
    let mut code = Code::default();
    let mut blocks = Vec::new();
    while let Some(found) = decoder.peek() {
        let offset = decoder.offset();
        if found != BLOCK_MARKER {
            return Err(FunctionError::at(offset, Fault::NoMarker { found }));
        }
        decoder.position += 1;
        let first = code.len();
        loop {
            match decoder.peek() {
                None => {
                    return Err(FunctionError::at(
                        decoder.offset(),
                        Fault::OpenBlock { block: offset },
                    ));
                }
                Some(BLOCK_MARKER) => {
                    return Err(FunctionError::at(decoder.offset(), Fault::MarkerInBlock));
                }
                Some(_) => {}
            }
            if decoder.instruction(&mut code)?.is_terminator() {
                break;
            }
        }
        blocks.push(Block::new(offset, first..code.len()));
    }
    Ok((code, blocks))
}

/// Reads a function body from front to back.
struct Decoder<'a> {
    body: &'a [u8],
    position: usize,
}

impl<'a> Decoder<'a> {
    /// Returns the offset of the next byte.
    fn offset(&self) -> u32 {
        u32::try_from(self.position).expect("a body is shorter than 2^31 bytes")
    }

    /// Returns the next byte without reading it, or `None` at the end.
    fn peek(&self) -> Option<u8> {
        self.body.get(self.position).copied()
    }

    /// Reads one instruction and appends it to `code`.
    fn instruction(&mut self, code: &mut Code) -> Result<Opcode, FunctionError> {
        let offset = self.offset();
        let op = self
            .opcode()
            .map_err(|fault| FunctionError::at(offset, fault))?;
        code.begin(offset, op);
        for (index, &kind) in op.operand_kinds().iter().enumerate() {
            self.operand(kind, code)
                .map_err(|fault| FunctionError::operand(offset, op, index, fault))?;
        }
        Ok(op)
    }

    fn opcode(&mut self) -> Result<Opcode, Fault> {
        let first = self.u8()?;
        let (page, byte) = match Page::from_prefix(first) {
            Some(page) => (page, self.u8()?),
            None => (Page::Core, first),
        };
        Opcode::from_byte(page, byte).ok_or(Fault::UnknownOpcode { page, byte })
    }

    fn operand(&mut self, kind: OperandKind, code: &mut Code) -> Result<(), OperandFault> {
        let operand = match kind {
            OperandKind::I32 | OperandKind::F32 | OperandKind::ToI32 | OperandKind::ToF32 => {
                Operand::I32(i32_register(self.any_register()?)?)
            }
            OperandKind::I64 | OperandKind::F64 | OperandKind::ToI64 | OperandKind::ToF64 => {
                Operand::I64(i64_register(self.any_register()?)?)
            }
            // Compilers before 3.10 mark the last read of a ref as a move wherever it stands. Where the table does not
            // allow a move the mark means nothing: the ref is released with the frame.
            OperandKind::Ref | OperandKind::Move | OperandKind::ToRef => {
                Operand::Ref(ref_register(self.any_register()?)?)
            }
            OperandKind::ImmI32 => Operand::ImmI32(self.u32()?.cast_signed()),
            OperandKind::ImmI64 => Operand::ImmI64(self.u64()?.cast_signed()),
            OperandKind::ImmF32 => Operand::ImmF32(self.u32()?),
            OperandKind::ImmF64 => Operand::ImmF64(self.u64()?),
            OperandKind::Global4 | OperandKind::Global8 => Operand::Global(self.u32()?),
            OperandKind::GlobalRef => Operand::GlobalRef(self.u32()?),
            OperandKind::Rodata => Operand::Rodata(self.u32()?),
            OperandKind::Function => Operand::Function(function(self.u32()?)),
            OperandKind::Type => Operand::Type(self.u32()?),
            OperandKind::Block => Operand::Block(self.u32()?),
            OperandKind::Str => {
                let length = usize::from(self.u16()?);
                code.push_text(self.bytes(length)?);
                return Ok(());
            }
            OperandKind::I32List | OperandKind::F32List => {
                return self.list(code, |entry| i32_register(entry).map(drop));
            }
            OperandKind::I64List | OperandKind::F64List => {
                return self.list(code, |entry| i64_register(entry).map(drop));
            }
            OperandKind::MoveList | OperandKind::RefList => {
                return self.list(code, |entry| ref_register(entry).map(drop));
            }
            OperandKind::AnyList => return self.list(code, |_| Ok(())),
            OperandKind::ToAnyList => return self.list(code, not_moved),
            OperandKind::Segments => return self.segments(code),
            OperandKind::Remap => return self.remap(code),
            OperandKind::Cases => {
                let count = self.u16()?;
                code.push_operand(Operand::Cases(count));
                for _ in 0..count {
                    let block = self.u32()?;
                    code.push_operand(Operand::Block(block));
                    self.remap(code)?;
                }
                return Ok(());
            }
        };
        code.push_operand(operand);
        Ok(())
    }

    fn list(
        &mut self,
        code: &mut Code,
        check: impl Fn(AnyReg) -> Result<(), Fault>,
    ) -> Result<(), OperandFault> {
        let (entries, _) = self.list_bytes(2)?.as_chunks::<2>();
        let registers = entries
            .iter()
            .map(|&entry| AnyReg(u16::from_le_bytes(entry)));
        for (index, register) in registers.clone().enumerate() {
            check(register).map_err(|fault| fault.in_entry(index))?;
        }
        code.push_registers(registers);
        Ok(())
    }

    fn segments(&mut self, code: &mut Code) -> Result<(), OperandFault> {
        let (entries, _) = self.list_bytes(2)?.as_chunks::<2>();
        code.push_segments(entries.iter().map(|&entry| u16::from_le_bytes(entry)));
        Ok(())
    }

    fn remap(&mut self, code: &mut Code) -> Result<(), OperandFault> {
        let (entries, _) = self.list_bytes(4)?.as_chunks::<4>();
        let pairs = entries.iter().map(|&[a, b, c, d]| RemapPair {
            source: AnyReg(u16::from_le_bytes([a, b])),
            target: AnyReg(u16::from_le_bytes([c, d])),
        });
        for (index, pair) in pairs.clone().enumerate() {
            match (pair.source.register(), pair.target.register()) {
                (Register::I32(_), Register::I32(_)) | (Register::Ref(_), Register::Ref(_)) => {
                    not_moved(pair.target).map_err(|fault| fault.in_entry(index))?;
                }
                _ => return Err(Fault::RemapBanks { pair }.in_entry(index)),
            }
        }
        code.push_remap(pairs);
        Ok(())
    }

    /// Reads the count of a list, after the alignment to an even offset, and its entries of `width` bytes.
    fn list_bytes(&mut self, width: usize) -> Result<&'a [u8], Fault> {
        if !self.position.is_multiple_of(2) {
            let padding = self.u8()?;
            if padding != 0 {
                return Err(Fault::Padding { found: padding });
            }
        }
        let count = usize::from(self.u16()?);
        self.bytes(count * width)
    }

    fn any_register(&mut self) -> Result<AnyReg, Fault> {
        self.u16().map(AnyReg)
    }

    fn u8(&mut self) -> Result<u8, Fault> {
        self.array().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Result<u16, Fault> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Fault> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Fault> {
        self.array().map(u64::from_le_bytes)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let rest = &self.body[self.position..];
        let bytes = rest.first_chunk().ok_or(Fault::EndOfBody {
            needed: N,
            left: rest.len(),
        })?;
        self.position += N;
        Ok(*bytes)
    }

    fn bytes(&mut self, length: usize) -> Result<&'a [u8], Fault> {
        let rest = &self.body[self.position..];
        let bytes = rest.get(..length).ok_or(Fault::EndOfBody {
            needed: length,
            left: rest.len(),
        })?;
        self.position += length;
        Ok(bytes)
    }
}

fn i32_register(any: AnyReg) -> Result<I32Reg, Fault> {
    match any.register() {
        Register::I32(register) => Ok(register),
        Register::Ref(register) => Err(Fault::ExpectedValue { found: register }),
    }
}

pub(crate) fn i64_register(any: AnyReg) -> Result<I64Reg, Fault> {
    let I32Reg(ordinal) = i32_register(any)?;
    if !ordinal.is_multiple_of(2) {
        return Err(Fault::OddPair { ordinal });
    }
    Ok(I64Reg(ordinal))
}

fn ref_register(any: AnyReg) -> Result<RefReg, Fault> {
    match any.register() {
        Register::I32(register) => Err(Fault::ExpectedRef { found: register }),
        Register::Ref(register) => Ok(register),
    }
}

/// Refuses a MOVE mark, which means nothing on a register that only receives a value.
fn not_moved(any: AnyReg) -> Result<(), Fault> {
    match any.register() {
        Register::Ref(register) if register.is_move() => Err(Fault::MoveNotAllowed { register }),
        Register::I32(_) | Register::Ref(_) => Ok(()),
    }
}

fn function(word: u32) -> FunctionRef {
    if word & IMPORT_BIT != 0 {
        FunctionRef::Import(word & !IMPORT_BIT)
    } else {
        FunctionRef::Internal(word)
    }
}
