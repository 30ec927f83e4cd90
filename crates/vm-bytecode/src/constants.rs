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
        Self { registers }
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
