//! Constant registers: those that hold one value from a known instruction on.
//!
//! A register counts when nothing writes it but one constant instruction of the first block: every other block runs after
//! it. Compilers put the numbers a function needs there, so that most arguments of its calls are known beforehand.

use vm::Atom;

use crate::code::{AnyReg, FunctionRef, Instruction, Operand, Register};
use crate::{Opcode, OperandKind, VerifiedFunction, VerifiedModule};

/// What the registers of a function hold.
pub(crate) struct Constants {
    /// For each 32-bit register its value and the offset of the instruction that sets it.
    registers: Vec<Option<(u32, u32)>>,
    /// For each 32-bit register whether anything reads it but calls of imports, which know what it holds.
    is_read: Vec<bool>,
}

impl Constants {
    /// Finds the constant registers of a function.
    pub(crate) fn of(module: &VerifiedModule, function: &VerifiedFunction) -> Self {
        let mut writes = vec![0u32; usize::from(function.i32_register_count())];
        let mut write = |register: u16| {
            if let Some(count) = writes.get_mut(usize::from(register)) {
                *count += 1;
            }
        };
        // Arguments are written by the caller.
        let (argument_words, _) = crate::verify::argument_registers(function.convention());
        (0..argument_words)
            .filter_map(|register| u16::try_from(register).ok())
            .for_each(&mut write);
        for block in function.blocks() {
            for instruction in function.instructions(block) {
                for_each_write(module, &instruction, &mut write);
            }
        }

        let mut registers = vec![None; writes.len()];
        let first = function.blocks().first();
        for instruction in first
            .into_iter()
            .flat_map(|block| function.instructions(block))
        {
            let offset = instruction.offset();
            let mut set = |register: u16, value: u32| {
                let register = usize::from(register);
                if writes[register] == 1 {
                    registers[register] = Some((value, offset));
                }
            };
            match constant(&instruction) {
                Some((Operand::I32(to), value)) => set(to.ordinal(), (value & 0xFFFF_FFFF) as u32),
                Some((Operand::I64(to), value)) => {
                    set(to.ordinal(), (value & 0xFFFF_FFFF) as u32);
                    set(to.ordinal() + 1, (value >> 32) as u32);
                }
                _ => {}
            }
        }
        let mut constants = Self {
            registers,
            is_read: vec![false; writes.len()],
        };
        for block in function.blocks() {
            for instruction in function.instructions(block) {
                if constant(&instruction).is_none() {
                    constants.note_reads(&instruction);
                }
            }
        }
        constants
    }

    /// Notes which registers `instruction` reads. More may be noted than it does.
    fn note_reads(&mut self, instruction: &Instruction<'_>) {
        let (operands, offset) = (instruction.operands(), instruction.offset());
        let is_import = matches!(
            operands.first(),
            Some(Operand::Function(FunctionRef::Import(_)))
        );
        let mut note = |register: AnyReg, is_known: bool| {
            if let Register::I32(register) = register.register() {
                for half in [register.ordinal(), register.ordinal() | 1] {
                    let passed = is_known && self.at(half, offset).is_some();
                    if let Some(is_read) = self.is_read.get_mut(usize::from(half)) {
                        *is_read |= !passed;
                    }
                }
            }
        };
        for operand in operands {
            match *operand {
                Operand::I32(register) => note(register.into(), false),
                Operand::I64(register) => note(register.into(), false),
                Operand::Registers(list) => instruction
                    .registers(list)
                    .iter()
                    .for_each(|register| note(*register, is_import)),
                Operand::Remap(range) => instruction
                    .remap(range)
                    .iter()
                    .for_each(|pair| note(pair.source, false)),
                _ => {}
            }
        }
    }

    /// Returns whether `instruction` only sets a constant register that nothing reads: calls of imports have the constant
    /// in their blocks.
    pub(crate) fn is_unread(&self, instruction: &Instruction<'_>) -> bool {
        let is_unread = |register: u16| {
            let position = usize::from(register);
            matches!(self.registers.get(position), Some(Some((_, at))) if *at == instruction.offset())
                && self.is_read.get(position) == Some(&false)
        };
        match constant(instruction) {
            Some((Operand::I32(to), _)) => is_unread(to.ordinal()),
            Some((Operand::I64(to), _)) => is_unread(to.ordinal()) && is_unread(to.ordinal() + 1),
            _ => false,
        }
    }

    /// Returns what a register always holds at the instruction at `offset`.
    pub(crate) fn at(&self, register: u16, offset: u32) -> Option<u32> {
        let (value, since) = self
            .registers
            .get(usize::from(register))
            .copied()
            .flatten()?;
        // The first block comes first, so a later offset in it or any other block runs after the constant is set.
        (offset > since).then_some(value)
    }
}

/// Returns the register a constant instruction sets, and to what.
fn constant(instruction: &Instruction<'_>) -> Option<(Operand, u64)> {
    match (instruction.op(), instruction.operands()) {
        (
            Opcode::ConstI32Zero
            | Opcode::ConstF32Zero
            | Opcode::ConstI64Zero
            | Opcode::ConstF64Zero,
            [to],
        ) => Some((*to, 0)),
        (Opcode::ConstI32, [Operand::ImmI32(value), to]) => {
            Some((*to, value.cast_unsigned().into()))
        }
        (Opcode::ConstF32, [Operand::ImmF32(bits), to]) => Some((*to, (*bits).into())),
        (Opcode::ConstI64, [Operand::ImmI64(value), to]) => Some((*to, value.cast_unsigned())),
        (Opcode::ConstF64, [Operand::ImmF64(bits), to]) => Some((*to, *bits)),
        _ => None,
    }
}

/// Calls `write` with every 32-bit register that an instruction writes, both halves of a pair.
fn for_each_write(
    module: &VerifiedModule,
    instruction: &Instruction<'_>,
    write: &mut impl FnMut(u16),
) {
    let mut write_any = |register: AnyReg, atom: Option<Atom>| {
        if let Register::I32(register) = register.register() {
            write(register.ordinal());
            if matches!(atom, Some(Atom::I64 | Atom::F64)) {
                write(register.ordinal() + 1);
            }
        }
    };
    let kinds = instruction.op().operand_kinds().iter();
    for (kind, operand) in kinds.zip(instruction.operands()) {
        match (kind, operand) {
            (OperandKind::ToI32 | OperandKind::ToF32, Operand::I32(to)) => {
                write_any(AnyReg::from(*to), None)
            }
            (OperandKind::ToI64 | OperandKind::ToF64, Operand::I64(to)) => {
                write_any(AnyReg::from(*to), Some(Atom::I64));
            }
            (OperandKind::ToAnyList, Operand::Registers(list)) => {
                let atoms = result_atoms(module, instruction).iter().copied().map(Some);
                for (register, atom) in instruction.registers(*list).iter().zip(atoms) {
                    write_any(*register, atom);
                }
            }
            _ => {}
        }
    }
    // Remaps stand at the places of their branches and behind the count of a table's cases.
    for operand in instruction.operands() {
        if let Operand::Remap(range) = operand {
            instruction
                .remap(*range)
                .iter()
                .for_each(|pair| write_any(pair.target, None));
        }
    }
}

/// Returns the results of the callee of a call.
fn result_atoms<'a>(module: &'a VerifiedModule, call: &Instruction<'_>) -> &'a [Atom] {
    match call.operands().first() {
        Some(Operand::Function(FunctionRef::Internal(ordinal))) => {
            module.functions()[*ordinal as usize].convention().results()
        }
        Some(Operand::Function(FunctionRef::Import(ordinal))) => {
            module.import_conventions()[*ordinal as usize].results()
        }
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{Fusion, compile};
    use crate::encode::{Arg, Body};
    use crate::program::StepKind;
    use crate::testing::TestModule;

    use Arg::{I, Import, List, Word};

    /// Returns the kinds of steps of a function that sets registers 0, 1 and 2:3 to constants and then does what `write`
    /// says.
    fn steps(fusion: Fusion, write: impl Fn(&mut Body)) -> Vec<StepKind> {
        let mut body = Body::default();
        body.block();
        body.op(Opcode::ConstI32, &[Word(7), I(0)]);
        body.op(Opcode::ConstI32Zero, &[I(1)]);
        body.op(Opcode::ConstI64Zero, &[I(2)]);
        write(&mut body);
        let module = TestModule::new()
            .import("host.take", "0iI_v")
            .function("0v_i", (6, 0), &body);
        let program = compile(&module.verify().unwrap(), fusion);
        let steps = program.functions[0].steps.iter();
        steps.map(|step| step.kind).collect()
    }

    fn take_and_return_1(body: &mut Body) {
        body.op(Opcode::Call, &[Import(0), List(&[I(0), I(2)]), List(&[])]);
        body.op(Opcode::Return, &[List(&[I(1)])]);
    }

    #[test]
    fn constants_that_only_imports_take_are_not_set() {
        assert_eq!(
            steps(Fusion::Fused, take_and_return_1),
            [
                StepKind::ConstI32Zero,
                StepKind::CallVariadic,
                StepKind::Return
            ]
        );
        // What is counted and traced has a step for each instruction.
        assert_eq!(steps(Fusion::Plain, take_and_return_1).len(), 5);
    }

    #[test]
    fn a_constant_that_something_else_reads_too_is_set() {
        let kinds = steps(Fusion::Fused, |body| {
            body.op(Opcode::AddI32, &[I(0), I(1), I(4)]);
            take_and_return_1(body);
        });
        assert_eq!(kinds[..2], [StepKind::ConstI32, StepKind::ConstI32Zero]);
        // The high half of a pair alone.
        let kinds = steps(Fusion::Fused, |body| {
            body.op(Opcode::AddI32, &[I(3), I(1), I(4)]);
            take_and_return_1(body);
        });
        assert!(kinds.contains(&StepKind::ConstI64Zero));
    }

    #[test]
    fn a_pair_of_which_only_one_half_is_known_is_passed_whole() {
        let mut body = Body::default();
        body.block();
        body.op(Opcode::ConstI32, &[Word(9), I(2)]);
        body.op(Opcode::AddI32, &[I(0), I(0), I(3)]);
        body.op(Opcode::Call, &[Import(0), List(&[I(0), I(2)]), List(&[])]);
        body.op(Opcode::Return, &[List(&[])]);
        let module = TestModule::new()
            .import("host.take", "0iI_v")
            .function("0i_v", (4, 0), &body);
        for fusion in [Fusion::Fused, Fusion::Plain] {
            let program = compile(&module.verify().unwrap(), fusion);
            let call = &program.functions[0].import_calls[0];
            // The argument and the sum vary; the low half is in the block.
            assert_eq!(*call.words, [(0, 0), (3, 3)]);
            assert!(call.pairs.is_empty());
            assert_eq!(program.argument_words[2], 9);
        }
    }

    #[test]
    fn a_register_that_does_not_stay_the_same_is_set_each_time() {
        let kinds = steps(Fusion::Fused, |body| {
            take_and_return_1(body);
            body.block();
            body.op(Opcode::ConstI32, &[Word(8), I(0)]);
            take_and_return_1(body);
        });
        let set = kinds.iter().filter(|kind| **kind == StepKind::ConstI32);
        assert_eq!(set.count(), 2);
    }
}
