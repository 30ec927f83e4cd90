//! Encoding for tests: the inverse of [`crate::decode`], driven by the same table.
//!
//! It also remembers where each field went, so that a test can spoil every one of them.

use crate::code::{AnyReg, Code, FunctionRef, Instruction, Operand, RemapPair};
use crate::isa::BLOCK_MARKER;
use crate::{Opcode, OperandKind};

/// What a recorded field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldKind {
    /// `u16` register, alone or as an entry of a list, of this kind of operand.
    Register(OperandKind),
    /// `u16` register that a remap writes.
    RemapTarget,
    /// `u16` segment size.
    Segment,
    /// `u32` index of this kind.
    Index(OperandKind),
}

/// A field of an encoded body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedField {
    /// Offset in the body.
    pub(crate) offset: usize,
    /// Operation it belongs to.
    pub(crate) op: Opcode,
    /// What it is.
    pub(crate) kind: FieldKind,
}

/// A function body that is being written.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields: Vec<EncodedField>,
    pub(crate) block_count: i16,
}

/// A value for an operand of a hand-written instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Arg<'a> {
    /// Register of the 32-bit bank, or the low word of a pair.
    I(u16),
    /// Ref register.
    R(u16),
    /// Ref register with the MOVE mark.
    Moved(u16),
    /// Immediate, offset, index or target of 32 bits.
    Word(u32),
    /// Message.
    Text(&'a str),
    /// List of registers.
    List(&'a [Arg<'a>]),
    /// Segment sizes.
    Segments(&'a [u16]),
    /// Remap.
    Remap(&'a [(Arg<'a>, Arg<'a>)]),
    /// Import ordinal.
    Import(u32),
}

impl Arg<'_> {
    fn register(&self) -> AnyReg {
        match *self {
            Self::I(ordinal) => AnyReg(ordinal),
            Self::R(ordinal) => AnyReg(0x8000 | ordinal),
            Self::Moved(ordinal) => AnyReg(0xC000 | ordinal),
            _ => panic!("{self:?} is no register"),
        }
    }
}

impl Body {
    /// Starts a block and returns the offset of its marker.
    pub(crate) fn block(&mut self) -> u32 {
        let offset = self.bytes.len();
        self.bytes.push(BLOCK_MARKER);
        self.block_count += 1;
        u32::try_from(offset).unwrap()
    }

    /// Writes a hand-written instruction. It need not be valid, only of the shape the table asks for.
    pub(crate) fn op(&mut self, op: Opcode, args: &[Arg<'_>]) -> &mut Self {
        self.opcode(op);
        let kinds = op.operand_kinds();
        assert_eq!(kinds.len(), args.len(), "{op}");
        for (&kind, arg) in kinds.iter().zip(args) {
            match *arg {
                Arg::Word(value) => self.index(op, kind, value),
                Arg::Import(ordinal) => self.index(op, kind, 0x8000_0000 | ordinal),
                Arg::Text(text) => self.text(text.as_bytes()),
                Arg::List(list) => self.list(op, kind, list.iter().map(Arg::register)),
                Arg::Segments(list) => self.segments(op, list),
                Arg::Remap(pairs) => {
                    let pairs: Vec<_> = pairs
                        .iter()
                        .map(|(source, target)| RemapPair {
                            source: source.register(),
                            target: target.register(),
                        })
                        .collect();
                    self.remap(op, &pairs);
                }
                Arg::I(_) | Arg::R(_) | Arg::Moved(_) => self.register(op, kind, arg.register()),
            }
        }
        self
    }

    /// Writes a decoded instruction.
    pub(crate) fn instruction(&mut self, instruction: &Instruction<'_>) {
        let op = instruction.op();
        self.opcode(op);
        let mut operands = instruction.operands().iter();
        for &kind in op.operand_kinds() {
            let operand = *operands.next().expect("each kind has an operand");
            self.operand(instruction, kind, operand);
            if let Operand::Cases(count) = operand {
                for _ in 0..count {
                    self.operand(instruction, OperandKind::Block, *operands.next().unwrap());
                    self.operand(instruction, OperandKind::Remap, *operands.next().unwrap());
                }
            }
        }
        assert!(
            operands.next().is_none(),
            "{op} has operands beyond its kinds"
        );
    }

    fn operand(&mut self, instruction: &Instruction<'_>, kind: OperandKind, operand: Operand) {
        use OperandKind as Kind;

        let op = instruction.op();
        match (kind, operand) {
            (Kind::I32 | Kind::F32 | Kind::ToI32 | Kind::ToF32, Operand::I32(register)) => {
                self.register(op, kind, AnyReg(register.0));
            }
            (Kind::I64 | Kind::F64 | Kind::ToI64 | Kind::ToF64, Operand::I64(register)) => {
                self.register(op, kind, AnyReg(register.0));
            }
            (Kind::Ref | Kind::Move | Kind::ToRef, Operand::Ref(register)) => {
                self.register(op, kind, AnyReg(register.0));
            }
            (Kind::ImmI32, Operand::ImmI32(value)) => self.bytes.extend(value.to_le_bytes()),
            (Kind::ImmI64, Operand::ImmI64(value)) => self.bytes.extend(value.to_le_bytes()),
            (Kind::ImmF32, Operand::ImmF32(bits)) => self.bytes.extend(bits.to_le_bytes()),
            (Kind::ImmF64, Operand::ImmF64(bits)) => self.bytes.extend(bits.to_le_bytes()),
            (Kind::Global4 | Kind::Global8, Operand::Global(value))
            | (Kind::GlobalRef, Operand::GlobalRef(value))
            | (Kind::Rodata, Operand::Rodata(value))
            | (Kind::Type, Operand::Type(value))
            | (Kind::Block, Operand::Block(value))
            | (Kind::Function, Operand::Function(FunctionRef::Internal(value))) => {
                self.index(op, kind, value)
            }
            (Kind::Function, Operand::Function(FunctionRef::Import(ordinal))) => {
                self.index(op, kind, 0x8000_0000 | ordinal);
            }
            (Kind::Str, Operand::Text(range)) => self.text(instruction.text(range)),
            (
                Kind::I32List
                | Kind::I64List
                | Kind::F32List
                | Kind::F64List
                | Kind::MoveList
                | Kind::RefList
                | Kind::AnyList
                | Kind::ToAnyList,
                Operand::Registers(range),
            ) => self.list(op, kind, instruction.registers(range).iter().copied()),
            (Kind::Segments, Operand::Segments(range)) => {
                self.segments(op, instruction.segments(range))
            }
            (Kind::Remap, Operand::Remap(range)) => self.remap(op, instruction.remap(range)),
            (Kind::Cases, Operand::Cases(count)) => self.bytes.extend(count.to_le_bytes()),
            (kind, operand) => panic!("{op}: {operand:?} is no {kind:?}"),
        }
    }

    fn opcode(&mut self, op: Opcode) {
        self.bytes.extend(op.page().prefix());
        self.bytes.push(op.byte());
    }

    fn record(&mut self, op: Opcode, kind: FieldKind) {
        self.fields.push(EncodedField {
            offset: self.bytes.len(),
            op,
            kind,
        });
    }

    fn register(&mut self, op: Opcode, kind: OperandKind, register: AnyReg) {
        self.record(op, FieldKind::Register(kind));
        self.bytes.extend(register.0.to_le_bytes());
    }

    fn index(&mut self, op: Opcode, kind: OperandKind, value: u32) {
        self.record(op, FieldKind::Index(kind));
        self.bytes.extend(value.to_le_bytes());
    }

    fn text(&mut self, text: &[u8]) {
        self.bytes
            .extend(u16::try_from(text.len()).unwrap().to_le_bytes());
        self.bytes.extend(text);
    }

    fn count(&mut self, count: usize) {
        if !self.bytes.len().is_multiple_of(2) {
            self.bytes.push(0);
        }
        self.bytes
            .extend(u16::try_from(count).unwrap().to_le_bytes());
    }

    fn list(
        &mut self,
        op: Opcode,
        kind: OperandKind,
        entries: impl ExactSizeIterator<Item = AnyReg>,
    ) {
        self.count(entries.len());
        for entry in entries {
            self.register(op, kind, entry);
        }
    }

    fn segments(&mut self, op: Opcode, entries: &[u16]) {
        self.count(entries.len());
        for entry in entries {
            self.record(op, FieldKind::Segment);
            self.bytes.extend(entry.to_le_bytes());
        }
    }

    fn remap(&mut self, op: Opcode, pairs: &[RemapPair]) {
        self.count(pairs.len());
        for pair in pairs {
            self.register(op, OperandKind::Remap, pair.source);
            self.record(op, FieldKind::RemapTarget);
            self.bytes.extend(pair.target.0.to_le_bytes());
        }
    }
}

/// Writes the body of a verified function again.
pub(crate) fn encode_function(function: &crate::VerifiedFunction) -> Body {
    let mut body = Body::default();
    for block in function.blocks() {
        assert_eq!(body.block(), block.offset());
        for instruction in function.instructions(block) {
            assert_eq!(body.bytes.len(), instruction.offset() as usize);
            body.instruction(&instruction);
        }
    }
    body
}

mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::decode::decode_body;
    use crate::testing::{FIXTURES, fixture};
    use crate::{Block, VerifiedModule};

    #[test]
    fn encoding_undoes_decoding_for_every_function_of_the_fixtures() {
        for name in FIXTURES {
            let file = fixture(name);
            let module = VerifiedModule::load(&file).unwrap();
            for (ordinal, function) in module.functions().iter().enumerate() {
                assert!(
                    encode_function(function).bytes == file[function.body()],
                    "{name}, function {ordinal}"
                );
            }
        }
    }

    #[test]
    fn the_fixtures_use_nearly_every_opcode() {
        let mut unused: Vec<_> = Opcode::all().to_vec();
        for name in FIXTURES {
            let module = VerifiedModule::load(&fixture(name)).unwrap();
            for function in module.functions() {
                for instruction in function
                    .blocks()
                    .iter()
                    .flat_map(|block| function.instructions(block))
                {
                    unused.retain(|&op| op != instruction.op());
                }
            }
        }
        assert_eq!(unused, UNUSED);
    }

    /// Opcodes that no fixture has: the assembler that made them cannot write it.
    const UNUSED: &[Opcode] = &[Opcode::SwitchRef];

    fn encode(code: &Code, blocks: &[Block]) -> Vec<u8> {
        let mut body = Body::default();
        for block in blocks {
            body.block();
            for index in block.instructions() {
                body.instruction(&code.instruction(index));
            }
        }
        body.bytes
    }

    /// Bytes that are more often an instruction than not: a marker, then an opcode and small numbers.
    fn nearly_code() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![3 => Just(0u8), 1 => any::<u8>(), 1 => prop::sample::select(vec![0x79, 0x5A, 0x80])];
        (any::<u8>(), prop::collection::vec(byte, 0..40))
            .prop_map(|(op, rest)| [&[0x79, op], rest.as_slice()].concat())
    }

    proptest! {
        #[test]
        fn whatever_decodes_encodes_to_the_same_bytes(bytes in nearly_code()) {
            if let Ok((code, blocks)) = decode_body(&bytes) {
                prop_assert_eq!(encode(&code, &blocks), bytes);
            }
        }
    }
}
