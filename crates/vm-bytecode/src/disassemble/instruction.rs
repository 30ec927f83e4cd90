//! Text of one instruction.
//!
//! Most instructions are `results = vm.mnemonic operands` with both in encoding order; the others have a form of
//! their own in the assembler's syntax.

use core::fmt;

use vm::{Atom, CallingConvention, Item};

use super::{printable, printable_bytes, rodata_preview};
use crate::code::{AnyReg, FunctionRef, I64Reg, Instruction, Operand, Register};
use crate::{Opcode, OperandKind, PoolRange, VerifiedFunction, VerifiedModule};

/// What the instructions of a function refer to.
#[derive(Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) module: &'a VerifiedModule,
    pub(super) file: &'a [u8],
    /// Names of the functions of the module.
    pub(super) names: &'a [String],
    pub(super) function: &'a VerifiedFunction,
}

/// Writes one instruction.
struct Writer<'a> {
    scope: Scope<'a>,
    instruction: Instruction<'a>,
    out: &'a mut dyn fmt::Write,
}

impl<'a> Scope<'a> {
    /// Writes an instruction of the function without a line break.
    pub(super) fn write(
        self,
        instruction: Instruction<'a>,
        out: &'a mut dyn fmt::Write,
    ) -> fmt::Result {
        Writer {
            scope: self,
            instruction,
            out,
        }
        .write()
    }
}

impl Writer<'_> {
    fn write(&mut self) -> fmt::Result {
        use Operand::{Block, Function, Registers, Segments};

        let op = self.instruction.op();
        let operands = self.instruction.operands();
        match (op, operands) {
            (Opcode::Call, &[Function(function), Registers(arguments), Registers(results)]) => {
                self.write_call(function, None, arguments, None, results)
            }
            (
                Opcode::CallVariadic,
                &[
                    Function(function),
                    Segments(segments),
                    Registers(arguments),
                    Registers(results),
                ],
            ) => self.write_call(function, Some(segments), arguments, None, results),
            (
                Opcode::CallYieldable,
                &[
                    Function(function),
                    Registers(arguments),
                    Block(next),
                    Registers(results),
                ],
            ) => self.write_call(function, None, arguments, Some(next), results),
            (
                Opcode::CallVariadicYieldable,
                &[
                    Function(function),
                    Segments(segments),
                    Registers(arguments),
                    Block(next),
                    Registers(results),
                ],
            ) => self.write_call(function, Some(segments), arguments, Some(next), results),
            (Opcode::Return, &[Registers(values)]) => {
                self.write_mnemonic()?;
                let atoms = self.scope.function.convention().results().iter().copied();
                let values = typed_registers(atoms, self.instruction.registers(values));
                if !values.is_empty() {
                    write!(self.out, " {values}")?;
                }
                Ok(())
            }
            (Opcode::BrTable, [index, cases @ ..]) => self.write_branch_table(index, cases),
            (
                Opcode::SelectI32 | Opcode::SelectI64 | Opcode::SelectF32 | Opcode::SelectF64,
                [condition, on_true, on_false, result],
            ) => self.write_form(
                result,
                &[
                    Op(condition),
                    Text(" ? "),
                    Op(on_true),
                    Text(" : "),
                    Op(on_false),
                ],
            ),
            (Opcode::SelectRef, [condition, of_type, on_true, on_false, result]) => self
                .write_form(
                    result,
                    &[
                        Op(condition),
                        Text(" ? "),
                        Op(on_true),
                        Text(" : "),
                        Op(on_false),
                        Text(" -> "),
                        Op(of_type),
                    ],
                ),
            (
                Opcode::SwitchI32 | Opcode::SwitchI64 | Opcode::SwitchF32 | Opcode::SwitchF64,
                [index, default, values, result],
            ) => self.write_form(
                result,
                &[
                    Op(index),
                    Text("["),
                    Op(values),
                    Text("] else "),
                    Op(default),
                ],
            ),
            (Opcode::SwitchRef, [index, of_type, default, values, result]) => self.write_form(
                result,
                &[
                    Op(index),
                    Text("["),
                    Op(values),
                    Text("] else "),
                    Op(default),
                    Text(" : "),
                    Op(of_type),
                ],
            ),
            (Opcode::ListAlloc, &[Operand::Type(element), Operand::I32(capacity), ref result]) => {
                let list = format!("{capacity} : !vm.list<{}>", self.type_name(element));
                self.write_form(result, &[Text(&list)])
            }
            (Opcode::CastAnyRef, [value, of_type, result]) => {
                self.write_form(result, &[Op(value), Text(" : !vm.ref<?> -> "), Op(of_type)])
            }
            (Opcode::GlobalStoreRef, [global, of_type, value]) => {
                self.write_mnemonic()?;
                self.write_parts(&[
                    Text(" "),
                    Op(value),
                    Text(", "),
                    Op(global),
                    Text(" : "),
                    Op(of_type),
                ])
            }
            (
                Opcode::GlobalStoreI32
                | Opcode::GlobalStoreI64
                | Opcode::GlobalStoreF32
                | Opcode::GlobalStoreF64,
                [global, value],
            ) => {
                self.write_mnemonic()?;
                self.write_parts(&[Text(" "), Op(value), Text(", "), Op(global)])
            }
            (
                Opcode::BufferStoreI8
                | Opcode::BufferStoreI16
                | Opcode::BufferStoreI32
                | Opcode::BufferStoreI64
                | Opcode::BufferStoreF32
                | Opcode::BufferStoreF64,
                [buffer, offset, value],
            ) => {
                self.write_mnemonic()?;
                self.write_parts(&[
                    Text(" "),
                    Op(value),
                    Text(", "),
                    Op(buffer),
                    Text(", "),
                    Op(offset),
                ])
            }
            _ => self.write_plain(),
        }
    }

    /// Writes results and operands in encoding order.
    fn write_plain(&mut self) -> fmt::Result {
        let kinds = self.instruction.op().operand_kinds();
        let operands = self.instruction.operands();
        let fields = || kinds.iter().zip(operands);
        for (_, result) in fields().filter(|(kind, _)| is_result(**kind)) {
            self.write_operand(result)?;
            self.out.write_str(" = ")?;
        }
        self.write_mnemonic()?;
        let mut separator = " ";
        for (&kind, operand) in fields() {
            let is_empty = matches!(operand, Operand::Registers(range) if self.instruction.registers(*range).is_empty());
            match kind {
                _ if is_result(kind) || is_empty => continue,
                OperandKind::Type => self.out.write_str(" : ")?,
                // A remap is written as part of its block.
                OperandKind::Remap => {}
                _ => self.out.write_str(separator)?,
            }
            self.write_operand(operand)?;
            separator = ", ";
        }
        if let (Opcode::ConstRefRodata, &[Operand::Rodata(ordinal), _]) =
            (self.instruction.op(), self.instruction.operands())
        {
            let range = self.scope.module.def().rodata[ordinal as usize]
                .range
                .clone();
            write!(self.out, "  // {}", rodata_preview(&self.scope.file[range]))?;
        }
        Ok(())
    }

    /// Writes `result = vm.mnemonic parts`.
    fn write_form(&mut self, result: &Operand, parts: &[Part<'_>]) -> fmt::Result {
        self.write_operand(result)?;
        self.out.write_str(" = ")?;
        self.write_mnemonic()?;
        self.out.write_char(' ')?;
        self.write_parts(parts)
    }

    fn write_parts(&mut self, parts: &[Part<'_>]) -> fmt::Result {
        for part in parts {
            match part {
                Op(operand) => self.write_operand(operand)?,
                Text(text) => self.out.write_str(text)?,
            }
        }
        Ok(())
    }

    fn write_mnemonic(&mut self) -> fmt::Result {
        write!(self.out, "vm.{}", self.instruction.op())
    }

    fn write_call(
        &mut self,
        function: FunctionRef,
        segments: Option<PoolRange>,
        arguments: PoolRange,
        next: Option<u32>,
        results: PoolRange,
    ) -> fmt::Result {
        let convention = match function {
            FunctionRef::Internal(ordinal) => {
                self.scope.module.functions()[ordinal as usize].convention()
            }
            FunctionRef::Import(ordinal) => {
                &self.scope.module.import_conventions()[ordinal as usize]
            }
        };
        let segments = segments.map(|range| self.instruction.segments(range));
        let arguments = typed_registers(
            argument_atoms(convention, segments).into_iter(),
            self.instruction.registers(arguments),
        );
        let results = typed_registers(
            convention.results().iter().copied(),
            self.instruction.registers(results),
        );

        if next.is_none() && !results.is_empty() {
            write!(self.out, "{results} = ")?;
        }
        self.write_mnemonic()?;
        self.out.write_char(' ')?;
        self.write_operand(&Operand::Function(function))?;
        if let Some(segments) = segments {
            let segments: Vec<_> = segments.iter().map(u16::to_string).collect();
            write!(self.out, " segments[{}]", segments.join(", "))?;
        }
        write!(self.out, "({arguments})")?;
        if let Some(next) = next {
            self.out.write_str(" -> ")?;
            self.write_operand(&Operand::Block(next))?;
            write!(self.out, "({results})")?;
        }
        if let FunctionRef::Internal(ordinal) = function {
            write!(
                self.out,
                "  // {}",
                printable(&self.scope.names[ordinal as usize])
            )?;
        }
        Ok(())
    }

    fn write_branch_table(&mut self, index: &Operand, cases: &[Operand]) -> fmt::Result {
        self.write_mnemonic()?;
        self.out.write_char(' ')?;
        self.write_operand(index)?;
        self.out.write_str(" { default: ")?;
        let mut case = 0;
        for operand in cases {
            match operand {
                Operand::Cases(_) => {}
                Operand::Block(_) => {
                    if case > 0 {
                        write!(self.out, ", {}: ", case - 1)?;
                    }
                    case += 1;
                    self.write_operand(operand)?;
                }
                _ => self.write_operand(operand)?,
            }
        }
        self.out.write_str(" }")?;
        Ok(())
    }

    fn write_operand(&mut self, operand: &Operand) -> fmt::Result {
        match *operand {
            Operand::I32(register) => write!(self.out, "{register}"),
            Operand::I64(register) => write!(self.out, "{register}"),
            Operand::Ref(register) => write!(self.out, "{register}"),
            Operand::ImmI32(value) => write!(self.out, "{value}"),
            Operand::ImmI64(value) => write!(self.out, "{value}"),
            Operand::ImmF32(bits) => self.write_f32(bits),
            Operand::ImmF64(bits) => self.write_f64(bits),
            Operand::Global(offset) => write!(self.out, ".rwdata[{offset}]"),
            Operand::GlobalRef(ordinal) => write!(self.out, ".refs[{ordinal}]"),
            Operand::Rodata(ordinal) => write!(self.out, "{ordinal}"),
            Operand::Function(FunctionRef::Internal(ordinal)) => {
                write!(
                    self.out,
                    "@{}:{ordinal}",
                    printable(&self.scope.module.def().name)
                )
            }
            Operand::Function(FunctionRef::Import(ordinal)) => {
                write!(
                    self.out,
                    "@{}",
                    printable(&self.scope.module.def().imports[ordinal as usize].full_name)
                )
            }
            Operand::Type(index) => {
                let name = self.type_name(index);
                self.out.write_str(&name)?;
                Ok(())
            }
            Operand::Block(offset) => {
                let index = self
                    .scope
                    .function
                    .block_index(offset)
                    .expect("targets of a verified function exist");
                write!(self.out, "^bb{index}")
            }
            Operand::Text(range) => write!(
                self.out,
                "\"{}\"",
                printable_bytes(self.instruction.text(range))
            ),
            Operand::Registers(range) => {
                let atoms = self.list_atom().into_iter().cycle();
                let registers = typed_registers(atoms, self.instruction.registers(range));
                self.out.write_str(&registers)?;
                Ok(())
            }
            Operand::Remap(range) => {
                let pairs = self.instruction.remap(range).iter();
                let pairs: Vec<_> = pairs
                    .map(|pair| format!("{}->{}", pair.source, pair.target))
                    .collect();
                write!(self.out, "({})", pairs.join(", "))
            }
            Operand::Segments(_) | Operand::Cases(_) => {
                unreachable!("written with its instruction")
            }
        }
    }

    /// Returns the type of the values of a list, where the opcode says it.
    fn list_atom(&self) -> Option<Atom> {
        self.instruction
            .op()
            .operand_kinds()
            .iter()
            .find_map(|kind| match kind {
                OperandKind::I64List => Some(Atom::I64),
                OperandKind::F64List => Some(Atom::F64),
                _ => None,
            })
    }

    fn type_name(&self, index: u32) -> String {
        printable(&self.scope.module.def().types[index as usize])
    }

    fn write_f32(&mut self, bits: u32) -> fmt::Result {
        let value = f32::from_bits(bits);
        if value.is_nan() {
            return self.write_nan(value.is_sign_negative(), u64::from(bits & 0x003F_FFFF));
        }
        // The assembler takes a rounded decimal of a subnormal number for out of range.
        if value.is_subnormal() {
            self.write_subnormal(value.into())
        } else {
            write!(self.out, "{value:?}")
        }
    }

    fn write_f64(&mut self, bits: u64) -> fmt::Result {
        let value = f64::from_bits(bits);
        if value.is_nan() {
            return self.write_nan(value.is_sign_negative(), bits & 0x0007_FFFF_FFFF_FFFF);
        }
        if value.is_subnormal() {
            self.write_subnormal(value)
        } else {
            write!(self.out, "{value:?}")
        }
    }

    /// Writes a NaN with what its bits hold below the quiet bit.
    fn write_nan(&mut self, negative: bool, payload: u64) -> fmt::Result {
        let sign = if negative { "-" } else { "" };
        if payload == 0 {
            write!(self.out, "{sign}nan")
        } else {
            write!(self.out, "{sign}nan({payload:#x})")
        }
    }

    /// Writes a number exactly, as an integer in hexadecimal times a power of two.
    fn write_subnormal(&mut self, value: f64) -> fmt::Result {
        let sign = if value.is_sign_negative() { "-" } else { "" };
        let bits = value.to_bits();
        let fraction = bits & 0x000F_FFFF_FFFF_FFFF;
        let (significand, exponent) = match (bits >> 52) & 0x7FF {
            0 => (fraction, -1074),
            // The biased exponent has 11 bits, so it fits.
            biased => (
                fraction | 0x0010_0000_0000_0000,
                i64::try_from(biased).unwrap_or_default() - 1075,
            ),
        };
        write!(self.out, "{sign}{significand:#x}p{exponent}")
    }
}

/// A part of a form.
enum Part<'a> {
    /// An operand.
    Op(&'a Operand),
    /// Text between operands.
    Text(&'a str),
}
use Part::{Op, Text};

const fn is_result(kind: OperandKind) -> bool {
    matches!(
        kind,
        OperandKind::ToI32
            | OperandKind::ToI64
            | OperandKind::ToF32
            | OperandKind::ToF64
            | OperandKind::ToRef
    )
}

/// Returns the types of the values a call passes.
fn argument_atoms(convention: &CallingConvention, segments: Option<&[u16]>) -> Vec<Atom> {
    let mut atoms = Vec::new();
    for (index, item) in convention.arguments().iter().enumerate() {
        match item {
            Item::Atom(atom) => atoms.push(*atom),
            Item::Span(tuple) => {
                let count = segments
                    .and_then(|segments| segments.get(index))
                    .copied()
                    .unwrap_or_default();
                atoms.extend((0..count).flat_map(|_| tuple));
            }
        }
    }
    atoms
}

/// Joins registers, those of 64-bit values as pairs. Without a type a register stands as it is.
fn typed_registers(atoms: impl Iterator<Item = Atom>, registers: &[AnyReg]) -> String {
    let atoms = atoms.map(Some).chain(core::iter::repeat(None));
    let texts: Vec<_> = registers
        .iter()
        .zip(atoms)
        .map(|(register, atom)| match (atom, register.register()) {
            (Some(Atom::I64 | Atom::F64), Register::I32(low)) => I64Reg(low.ordinal()).to_string(),
            _ => register.to_string(),
        })
        .collect();
    texts.join(", ")
}
