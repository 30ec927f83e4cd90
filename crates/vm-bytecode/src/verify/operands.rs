//! Verification of one instruction: every operand against the function and the module.
//!
//! Banks, pairs and MOVE marks were checked by [`crate::decode`].

use vm::{Atom, CallingConvention, Item};

use super::function::FunctionView;
use crate::code::{AnyReg, FunctionRef, Instruction, Operand, Register};
use crate::decode::i64_register;
use crate::fault::{Fault, FunctionError, OperandFault};
use crate::{Block, Opcode, OperandKind};

/// Segment size of an argument that is no span.
const NO_SPAN: u16 = 0xFFFF;

/// Checks an instruction and all its operands.
pub(super) fn check_instruction(
    view: &FunctionView<'_>,
    instruction: &Instruction<'_>,
) -> Result<(), FunctionError> {
    let (offset, op) = (instruction.offset(), instruction.op());
    let needed = op.page().required_features();
    if !view.descriptor.features.contains(needed) {
        let fault = Fault::MissingFeature {
            needed,
            declared: view.descriptor.features,
        };
        return Err(FunctionError::instruction(offset, op, fault));
    }
    // The kinds of cases are not in the table; each operand itself says what it is.
    let kinds = op
        .operand_kinds()
        .iter()
        .map(Some)
        .chain(core::iter::repeat(None));
    for (index, (operand, kind)) in instruction.operands().iter().zip(kinds).enumerate() {
        check_operand(view, instruction, *operand, kind.copied())
            .map_err(|fault| FunctionError::operand(offset, op, index, fault))?;
    }
    check_values(view, instruction)
}

fn check_operand(
    view: &FunctionView<'_>,
    instruction: &Instruction<'_>,
    operand: Operand,
    kind: Option<OperandKind>,
) -> Result<(), OperandFault> {
    let def = view.module.def;
    match operand {
        Operand::I32(register) => check_register(view, AnyReg(register.0))?,
        Operand::I64(register) => check_pair(view, register.0)?,
        Operand::Ref(register) => check_register(view, AnyReg(register.0))?,
        Operand::Global(offset) => {
            let width = if kind == Some(OperandKind::Global8) {
                8
            } else {
                4
            };
            if offset
                .checked_add(width)
                .is_none_or(|end| end > def.global_bytes)
            {
                return Err(Fault::GlobalOutOfRange {
                    offset,
                    width,
                    capacity: def.global_bytes,
                }
                .into());
            }
        }
        Operand::GlobalRef(index) => check_index("global ref", index, def.global_refs as usize)?,
        Operand::Rodata(index) => check_index("rodata segment", index, def.rodata.len())?,
        Operand::Type(index) => check_index("type", index, def.types.len())?,
        Operand::Function(FunctionRef::Internal(index)) => {
            check_index("function", index, def.functions.len())?
        }
        Operand::Function(FunctionRef::Import(index)) => {
            check_index("import", index, def.imports.len())?
        }
        Operand::Block(target) => {
            if view
                .blocks
                .binary_search_by_key(&target, Block::offset)
                .is_err()
            {
                return Err(Fault::BlockTarget { target }.into());
            }
        }
        Operand::Registers(range) => {
            let is_pairs = matches!(kind, Some(OperandKind::I64List | OperandKind::F64List));
            for (entry, &register) in instruction.registers(range).iter().enumerate() {
                let checked = if is_pairs {
                    check_pair(view, register.0)
                } else {
                    check_register(view, register)
                };
                checked.map_err(|fault| fault.in_entry(entry))?;
            }
        }
        Operand::Remap(range) => {
            for (entry, pair) in instruction.remap(range).iter().enumerate() {
                check_register(view, pair.source).map_err(|fault| fault.in_entry(entry))?;
                check_register(view, pair.target).map_err(|fault| fault.in_entry(entry))?;
            }
        }
        // Sizes are compared with the calling convention, and the rest says all by itself.
        Operand::Segments(_)
        | Operand::ImmI32(_)
        | Operand::ImmI64(_)
        | Operand::ImmF32(_)
        | Operand::ImmF64(_)
        | Operand::Text(_)
        | Operand::Cases(_) => {}
    }
    Ok(())
}

fn check_index(table: &'static str, index: u32, count: usize) -> Result<(), Fault> {
    if (index as usize) < count {
        Ok(())
    } else {
        Err(Fault::IndexOutOfRange {
            table,
            index,
            count,
        })
    }
}

fn check_register(view: &FunctionView<'_>, any: AnyReg) -> Result<(), Fault> {
    let (ordinal, count) = match any.register() {
        Register::I32(register) => (register.ordinal(), view.i32_register_count),
        Register::Ref(register) => (register.ordinal(), view.ref_register_count),
    };
    if ordinal < count {
        Ok(())
    } else {
        Err(Fault::RegisterOutOfRange {
            register: any,
            count,
        })
    }
}

fn check_pair(view: &FunctionView<'_>, ordinal: u16) -> Result<(), Fault> {
    let count = view.i32_register_count;
    // Ordinals of the 32-bit bank have 15 bits, so the sum stays in range.
    if ordinal + 1 < count {
        Ok(())
    } else {
        Err(Fault::PairOutOfRange { ordinal, count })
    }
}

/// Checks the values that calls and returns pass against the calling convention.
fn check_values(
    view: &FunctionView<'_>,
    instruction: &Instruction<'_>,
) -> Result<(), FunctionError> {
    let place =
        |index, fault| FunctionError::operand(instruction.offset(), instruction.op(), index, fault);
    match (instruction.op(), instruction.operands()) {
        (Opcode::Return, &[Operand::Registers(values)]) => {
            check_results(view, view.convention, instruction.registers(values))
                .map_err(|fault| place(0, fault))
        }
        (Opcode::ImportResolved, &[Operand::Function(function), _]) => {
            expect_import(view, function)
                .map(drop)
                .map_err(|fault| place(0, fault.into()))
        }
        (
            Opcode::Call,
            &[
                Operand::Function(function),
                Operand::Registers(arguments),
                Operand::Registers(results),
            ],
        )
        | (
            Opcode::CallYieldable,
            &[
                Operand::Function(function),
                Operand::Registers(arguments),
                Operand::Block(_),
                Operand::Registers(results),
            ],
        ) => {
            let convention = match function {
                FunctionRef::Internal(ordinal) => &view.module.functions[ordinal as usize],
                FunctionRef::Import(ordinal) => &view.module.imports[ordinal as usize],
            };
            check_arguments(view, convention, instruction.registers(arguments))
                .map_err(|fault| place(1, fault))?;
            let last = instruction.operands().len() - 1;
            check_results(view, convention, instruction.registers(results))
                .map_err(|fault| place(last, fault))
        }
        (
            Opcode::CallVariadic,
            &[
                Operand::Function(function),
                Operand::Segments(segments),
                Operand::Registers(arguments),
                Operand::Registers(results),
            ],
        )
        | (
            Opcode::CallVariadicYieldable,
            &[
                Operand::Function(function),
                Operand::Segments(segments),
                Operand::Registers(arguments),
                Operand::Block(_),
                Operand::Registers(results),
            ],
        ) => {
            let convention =
                expect_import(view, function).map_err(|fault| place(0, fault.into()))?;
            let segments = instruction.segments(segments);
            let expected = check_segments(convention, segments).map_err(|fault| place(1, fault))?;
            check_variadic_arguments(
                view,
                convention,
                segments,
                expected,
                instruction.registers(arguments),
            )
            .map_err(|fault| place(2, fault))?;
            let last = instruction.operands().len() - 1;
            check_results(view, convention, instruction.registers(results))
                .map_err(|fault| place(last, fault))
        }
        _ => Ok(()),
    }
}

/// Returns the calling convention of an import; fails if the function is none.
fn expect_import<'a>(
    view: &FunctionView<'a>,
    function: FunctionRef,
) -> Result<&'a CallingConvention, Fault> {
    match function {
        FunctionRef::Import(ordinal) => Ok(&view.module.imports[ordinal as usize]),
        FunctionRef::Internal(ordinal) => Err(Fault::ExpectedImport { ordinal }),
    }
}

fn check_results(
    view: &FunctionView<'_>,
    convention: &CallingConvention,
    values: &[AnyReg],
) -> Result<(), OperandFault> {
    let results = convention.results();
    check_count(convention, results.len(), values.len())?;
    for (entry, (&atom, &value)) in results.iter().zip(values).enumerate() {
        check_value(view, atom, value).map_err(|fault| fault.in_entry(entry))?;
    }
    Ok(())
}

fn check_arguments(
    view: &FunctionView<'_>,
    convention: &CallingConvention,
    values: &[AnyReg],
) -> Result<(), OperandFault> {
    if convention.arguments().len() != values.len() && !convention.has_spans() {
        check_count(convention, convention.arguments().len(), values.len())?;
    }
    for (entry, item) in convention.arguments().iter().enumerate() {
        let (Item::Atom(atom), Some(&value)) = (item, values.get(entry)) else {
            return Err(Fault::NeedsSegments {
                convention: convention.text().to_owned(),
            }
            .into());
        };
        check_value(view, *atom, value).map_err(|fault| fault.in_entry(entry))?;
    }
    Ok(())
}

/// Checks the segment sizes of a variadic call and returns how many values they stand for.
fn check_segments(convention: &CallingConvention, segments: &[u16]) -> Result<usize, OperandFault> {
    let items = convention.arguments();
    if segments.len() != items.len() {
        let (expected, found) = (items.len(), segments.len());
        return Err(Fault::SegmentCount {
            expected,
            found,
            convention: convention.text().to_owned(),
        }
        .into());
    }
    let mut value_count = 0usize;
    for (entry, (item, &segment)) in items.iter().zip(segments).enumerate() {
        match item {
            Item::Atom(_) if segment == NO_SPAN => value_count += 1,
            Item::Atom(_) => return Err(Fault::SegmentSize { found: segment }.in_entry(entry)),
            // A convention is no longer than its file and a segment has 16 bits, so this stays far from overflow on
            // 64-bit hosts; on others it saturates and is refused below.
            Item::Span(atoms) => {
                value_count = usize::from(segment)
                    .saturating_mul(atoms.len())
                    .saturating_add(value_count);
            }
        }
    }
    Ok(value_count)
}

/// Checks the values of a variadic call whose segments were checked.
fn check_variadic_arguments(
    view: &FunctionView<'_>,
    convention: &CallingConvention,
    segments: &[u16],
    expected: usize,
    values: &[AnyReg],
) -> Result<(), OperandFault> {
    check_count(convention, expected, values.len())?;
    let mut entries = values.iter().enumerate();
    let mut next = |atom| match entries.next() {
        Some((entry, &value)) => {
            check_value(view, atom, value).map_err(|fault| fault.in_entry(entry))
        }
        None => unreachable!("the count of values was compared"),
    };
    for (item, &segment) in convention.arguments().iter().zip(segments) {
        match item {
            Item::Atom(atom) => next(*atom)?,
            Item::Span(atoms) => {
                for &atom in (0..segment).flat_map(|_| atoms) {
                    next(atom)?;
                }
            }
        }
    }
    Ok(())
}

fn check_count(convention: &CallingConvention, expected: usize, found: usize) -> Result<(), Fault> {
    if expected == found {
        return Ok(());
    }
    Err(Fault::ValueCount {
        expected,
        found,
        convention: convention.text().to_owned(),
    })
}

/// Checks that a register can hold a value of the calling convention.
fn check_value(view: &FunctionView<'_>, atom: Atom, value: AnyReg) -> Result<(), Fault> {
    match (atom, value.register()) {
        (Atom::I32 | Atom::F32, Register::I32(_)) | (Atom::Ref, Register::Ref(_)) => {
            check_register(view, value)
        }
        (Atom::I64 | Atom::F64, Register::I32(_)) => {
            check_pair(view, i64_register(value)?.ordinal())
        }
        (Atom::I32 | Atom::I64 | Atom::F32 | Atom::F64, Register::Ref(_))
        | (Atom::Ref, Register::I32(_)) => Err(Fault::ValueType {
            expected: atom,
            found: value,
        }),
    }
}
