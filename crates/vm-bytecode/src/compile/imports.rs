//! Plans of calls to imports: argument blocks with all that is known when a program is made.

use vm::argument_block::{CONSTANT_REF, align_words, span_word_alignment};
use vm::{Atom, CallingConvention, Item};

use super::{REF_BIT, index32, value, values};
use crate::Opcode;
use crate::code::{AnyReg, FunctionRef, Instruction, Operand};
use crate::interpreter::{MOVE_BIT, REF_MASK};
use crate::program::{ImportCall, Value};

/// Returns the register and the ordinal of a constant that `load` loads for nothing but to be moved into the call of an
/// import that follows in its block: as `rest` begins.
///
/// Looks only as far as a compiler puts a call's arguments before it.
pub(super) fn passed_on<'a>(
    load: &Instruction<'a>,
    rest: impl Iterator<Item = Instruction<'a>>,
) -> Option<(u16, u32)> {
    const REACH: usize = 16;
    let (Opcode::ConstRefRodata, [Operand::Rodata(constant), Operand::Ref(register)]) =
        (load.op(), load.operands())
    else {
        return None;
    };
    let register = register.ordinal();
    let names = |operand: AnyReg| operand.bits() & !MOVE_BIT == register | REF_BIT;
    let user = rest.take(REACH).find(|instruction| {
        instruction.operands().iter().any(|operand| match *operand {
            Operand::Ref(operand) => operand.ordinal() == register,
            Operand::Registers(list) => instruction.registers(list).iter().any(|reg| names(*reg)),
            Operand::Remap(range) => instruction
                .remap(range)
                .iter()
                .any(|pair| names(pair.source) || names(pair.target)),
            _ => false,
        })
    })?;
    let arguments = match (user.op(), user.operands()) {
        (
            Opcode::Call,
            [
                Operand::Function(FunctionRef::Import(_)),
                Operand::Registers(list),
                _,
            ],
        )
        | (
            Opcode::CallVariadic,
            [
                Operand::Function(FunctionRef::Import(_)),
                _,
                Operand::Registers(list),
                _,
            ],
        ) => user.registers(*list),
        _ => return None,
    };
    let mut mentions = arguments.iter().filter(|argument| names(**argument));
    let is_moved = |argument: &AnyReg| argument.bits() & MOVE_BIT != 0;
    let passed = mentions.next().is_some_and(is_moved) && mentions.next().is_none();
    (passed && *constant < CONSTANT_REF - 1).then_some((register, *constant))
}

/// Plans the call of an import and appends its block to `blocks`: the layout is the one of `vm::argument_block`.
/// `known` tells what a register holds at the call, if that is always the same; `passed_on` has the ref registers in
/// whose place the call takes a constant, and loses those that it takes.
#[expect(
    clippy::too_many_arguments,
    reason = "the operands of an instruction, and two tables"
)]
pub(super) fn import_call(
    import: u32,
    convention: &CallingConvention,
    segments: &[u16],
    arguments: &[AnyReg],
    results: &[AnyReg],
    known: impl Fn(u16) -> Option<u32>,
    passed_on: &mut Vec<(u16, u32)>,
    blocks: &mut Vec<u32>,
) -> ImportCall {
    let mut block = Vec::new();
    let (mut words, mut pairs, mut consumed) = (Vec::new(), Vec::new(), Vec::new());
    let mut registers = arguments.iter();
    let mut put = |block: &mut Vec<u32>, atom: Atom| {
        let Some(register) = registers.next() else {
            unreachable!("the verifier checked the number of operands");
        };
        block.resize(align_words(block.len(), atom.word_alignment()), 0);
        let start = block.len();
        block.resize(start + atom.word_count(), 0);
        match value(*register, atom) {
            Value::Ref(bits) => {
                let register = bits & REF_MASK;
                let constant = passed_on.iter().position(|(passed, _)| *passed == register);
                if let Some(position) = constant {
                    block[start] = passed_on.swap_remove(position).1 | CONSTANT_REF;
                    return;
                }
                block[start] = u32::from(register);
                if bits & MOVE_BIT != 0 {
                    consumed.push(register);
                }
            }
            Value::Pair(register) if known(register).is_none() && known(register + 1).is_none() => {
                pairs.push((register, index32(start)));
            }
            Value::Word(first) | Value::Pair(first) => {
                for (register, at) in (first..).zip(start..block.len()) {
                    match known(register) {
                        Some(word) => block[at] = word,
                        None => words.push((register, index32(at))),
                    }
                }
            }
        }
    };
    for (position, item) in convention.arguments().iter().enumerate() {
        match item {
            Item::Atom(atom) => put(&mut block, *atom),
            Item::Span(atoms) => {
                let count = segments.get(position).copied().unwrap_or(0);
                block.push(u32::from(count));
                if count > 0 {
                    block.resize(align_words(block.len(), span_word_alignment(atoms)), 0);
                }
                for _ in 0..count {
                    atoms.iter().for_each(|atom| put(&mut block, *atom));
                }
            }
        }
    }
    let (mut result_words, mut result_refs) = (Vec::new(), Vec::new());
    for value in values(results, convention.results()) {
        match value {
            Value::Word(register) => result_words.push(register),
            Value::Pair(register) => result_words.extend([register, register + 1]),
            Value::Ref(register) => result_refs.push(register),
        }
    }
    let start = blocks.len();
    blocks.append(&mut block);
    ImportCall {
        is_plain: consumed.is_empty() && result_words.is_empty() && result_refs.is_empty(),
        import,
        block: start..blocks.len(),
        words: words.into(),
        pairs: pairs.into(),
        consumed: consumed.into(),
        result_words: result_words.into(),
        result_refs: result_refs.into(),
    }
}

/// Returns the ref register that `call` passes, if it passes nothing else that varies, and the pair that takes its only
/// result: what the call gives is then the same for the same object, if the import is pure.
pub(super) fn varies_by_one_object(
    call: &ImportCall,
    convention: &CallingConvention,
    blocks: &[u32],
) -> Option<(u16, u16)> {
    let are_refs = |item: &Item| *item == Item::Atom(Atom::Ref);
    let [Atom::I64] = convention.results() else {
        return None;
    };
    let [result, _] = *call.result_words else {
        return None;
    };
    let block = &blocks[call.block.clone()];
    let mut varying = block
        .iter()
        .step_by(Atom::Ref.word_count())
        .filter(|index| **index & CONSTANT_REF == 0);
    let (&object, None) = (varying.next()?, varying.next()) else {
        return None;
    };
    let is_plain = call.consumed.is_empty() && convention.arguments().iter().all(are_refs);
    is_plain.then_some((u16::try_from(object).ok()?, result))
}

/// Returns whether functions of this convention take a ref and give one.
pub(super) fn is_ref_to_ref(convention: &CallingConvention) -> bool {
    let is_ref = |item: &Item| *item == Item::Atom(Atom::Ref);
    matches!(convention.arguments(), [item] if is_ref(item)) && *convention.results() == [Atom::Ref]
}
