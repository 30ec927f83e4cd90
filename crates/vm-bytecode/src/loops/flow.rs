//! What steps read, write and lead to, the steps of a loop, and which registers are live before each step.

use crate::OperandKind;
use crate::interpreter::Copy;
use crate::program::{BACKWARDS, Function, Step, StepKind, Value};

/// Whether a step reads or writes a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Calls `visit` with each register and pair that a step reads, and then those that it writes. Refs are left out.
pub(super) fn for_each_value(
    function: &Function,
    step: &Step,
    mut visit: impl FnMut(Access, Value),
) {
    use Access::{Read, Write};
    match step.kind {
        StepKind::CopyI32 => {
            visit(Read, Value::Word(step.a));
            visit(Write, Value::Word(step.b));
        }
        StepKind::CopyI64 => {
            visit(Read, Value::Pair(step.a));
            visit(Write, Value::Pair(step.b));
        }
        StepKind::BrEqI32
        | StepKind::BrNotEqI32
        | StepKind::BrNeI32
        | StepKind::BrNotNeI32
        | StepKind::BrLtI32S
        | StepKind::BrLtI32U
        | StepKind::BrNotLtI32S
        | StepKind::BrNotLtI32U => {
            visit(Read, Value::Word(step.a));
            visit(Read, Value::Word(step.b));
            visit(Write, Value::Word(step.c));
        }
        StepKind::BrEqI64
        | StepKind::BrNotEqI64
        | StepKind::BrNeI64
        | StepKind::BrNotNeI64
        | StepKind::BrLtI64S
        | StepKind::BrLtI64U
        | StepKind::BrNotLtI64S
        | StepKind::BrNotLtI64U => {
            visit(Read, Value::Pair(step.a));
            visit(Read, Value::Pair(step.b));
            visit(Write, Value::Word(step.c));
        }
        StepKind::CondBr | StepKind::BrZero | StepKind::BrTable | StepKind::Fail => {
            visit(Read, Value::Word(step.a));
        }
        // The compiler leaves out what only a debugger would look at.
        StepKind::Br
        | StepKind::Yield
        | StepKind::Break
        | StepKind::CondBreak
        | StepKind::DiscardRefs
        | StepKind::CallRef
        | StepKind::Trace
        | StepKind::Print => {}
        StepKind::Return => {
            for &value in &function.returns[pool(step)] {
                visit(Read, value);
            }
        }
        StepKind::Call => {
            let call = &function.calls[step.y as usize];
            for argument in &call.arguments {
                match *argument {
                    Copy::Word { from, .. } => visit(Read, Value::Word(from)),
                    Copy::Pair { from, .. } => visit(Read, Value::Pair(from)),
                    Copy::Ref { .. } => {}
                }
            }
            for &value in &call.results {
                visit(Write, value);
            }
        }
        StepKind::CallVariadic
        | StepKind::CallYieldable
        | StepKind::CallVariadicYieldable
        | StepKind::CallSite
        | StepKind::CallPure => {
            let call = &function.import_calls[step.y as usize];
            for &(register, _) in &call.words {
                visit(Read, Value::Word(register));
            }
            for &(register, _) in &call.pairs {
                visit(Read, Value::Pair(register));
            }
            for &register in &call.result_words {
                visit(Write, Value::Word(register));
            }
        }
        kind => {
            let kinds = kind.opcode().map_or(&[][..], |op| op.operand_kinds());
            plain(function, step, kinds, visit);
        }
    }
}

/// As [`for_each_value`], for a step that has the operands of its instruction.
fn plain(
    function: &Function,
    step: &Step,
    kinds: &[OperandKind],
    mut visit: impl FnMut(Access, Value),
) {
    let fields = [step.a, step.b, step.c, step.d(), step.e(), step.f()];
    let mut fields = fields.into_iter();
    let mut register = || fields.next().unwrap_or(0);
    let mut written = None;
    for kind in kinds {
        match kind {
            OperandKind::I32 | OperandKind::F32 => visit(Access::Read, Value::Word(register())),
            OperandKind::I64 | OperandKind::F64 => visit(Access::Read, Value::Pair(register())),
            OperandKind::ToI32 | OperandKind::ToF32 => written = Some(Value::Word(register())),
            OperandKind::ToI64 | OperandKind::ToF64 => written = Some(Value::Pair(register())),
            OperandKind::Ref | OperandKind::Move | OperandKind::ToRef => _ = register(),
            OperandKind::I32List | OperandKind::F32List => {
                for &register in &function.registers[pool(step)] {
                    visit(Access::Read, Value::Word(register));
                }
            }
            OperandKind::I64List | OperandKind::F64List => {
                for &register in &function.registers[pool(step)] {
                    visit(Access::Read, Value::Pair(register));
                }
            }
            OperandKind::ImmI32
            | OperandKind::ImmI64
            | OperandKind::ImmF32
            | OperandKind::ImmF64
            | OperandKind::Global4
            | OperandKind::Global8
            | OperandKind::GlobalRef
            | OperandKind::Rodata
            | OperandKind::Function
            | OperandKind::Type
            | OperandKind::Block
            | OperandKind::Str
            | OperandKind::MoveList
            | OperandKind::RefList
            | OperandKind::AnyList
            | OperandKind::ToAnyList
            | OperandKind::Segments
            | OperandKind::Remap
            | OperandKind::Cases => {}
        }
    }
    if let Some(value) = written {
        visit(Access::Write, value);
    }
}

fn pool(step: &Step) -> core::ops::Range<usize> {
    let start = step.x as usize;
    start..start + step.y as usize
}

/// Returns whether the step after a step may come next.
pub(super) fn falls_through(step: &Step) -> bool {
    !matches!(
        step.kind,
        StepKind::Br
            | StepKind::Yield
            | StepKind::Break
            | StepKind::CondBreak
            | StepKind::Return
            | StepKind::Fail
    )
}

/// Calls `visit` with each step that a step may jump to.
fn for_each_jump(function: &Function, step: &Step, mut visit: impl FnMut(usize)) {
    if step.kind == StepKind::BrTable {
        for target in &function.targets[pool(step)] {
            visit((target & !BACKWARDS) as usize);
        }
    } else if step.kind.is_jump() {
        visit((step.y & !BACKWARDS) as usize);
    }
}

/// Returns which steps are in the loop around `head`: those from which it can be reached again without passing it.
pub(super) fn steps_of_loop(function: &Function, head: usize) -> Vec<bool> {
    let steps = &function.steps;
    let mut jumps: Vec<(usize, usize)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        for_each_jump(function, step, |target| jumps.push((target, at)));
    }
    jumps.sort_unstable();
    let mut is_in = vec![false; steps.len()];
    is_in[head] = true;
    let mut open = vec![head];
    while let Some(at) = open.pop() {
        let start = jumps.partition_point(|&(target, _)| target < at);
        let sources = jumps[start..]
            .iter()
            .take_while(|&&(target, _)| target == at);
        let before = at.checked_sub(1).filter(|&before| {
            // What comes before the head belongs to the loop only when it was jumped to from inside.
            at != head && falls_through(&steps[before])
        });
        // Of the ways to the head, those that go backwards are turns.
        let sources = sources
            .map(|&(_, source)| source)
            .filter(|&source| at != head || source >= head);
        for source in sources.chain(before) {
            if !core::mem::replace(&mut is_in[source], true) {
                open.push(source);
            }
        }
    }
    is_in
}

/// The registers that some steps use, as pairs of an even and an odd one.
#[derive(Debug)]
pub(super) struct Slots {
    /// The slots in use.
    pub(super) slots: Vec<Slot>,
    /// The index in `slots` of each pair of registers, by half its even ordinal.
    index: Vec<Option<u16>>,
}

/// Two registers that may hold a 64-bit value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    /// The even register.
    pub(super) register: u16,
    /// How often the steps use both as one.
    pair_uses: u32,
    /// How often they use one of them.
    word_uses: u32,
    /// Whether each is written.
    pub(super) is_written: [bool; 2],
}

impl Slot {
    /// Returns whether the value is kept as one of 64 bits between blocks.
    pub(super) fn is_kept_whole(&self) -> bool {
        self.pair_uses > 0 && self.pair_uses >= self.word_uses
    }
}

impl Slots {
    /// Returns the slots of the registers that the marked steps use.
    pub(super) fn of(function: &Function, is_in: &[bool]) -> Self {
        let mut slots: Vec<Slot> = Vec::new();
        let mut index = vec![None; usize::from(function.register_count).div_ceil(2)];
        for (step, _) in function
            .steps
            .iter()
            .zip(is_in)
            .filter(|(_, is_in)| **is_in)
        {
            for_each_value(function, step, |access, value| {
                let register = match value {
                    Value::Word(register) | Value::Pair(register) => register,
                    Value::Ref(_) => return,
                };
                let Some(entry) = index.get_mut(usize::from(register / 2)) else {
                    return;
                };
                let at = *entry.get_or_insert_with(|| {
                    slots.push(Slot {
                        register: register & !1,
                        pair_uses: 0,
                        word_uses: 0,
                        is_written: [false; 2],
                    });
                    u16::try_from(slots.len() - 1).expect("there are fewer pairs than registers")
                });
                let slot = &mut slots[usize::from(at)];
                let is_write = access == Access::Write;
                match value {
                    Value::Pair(_) => {
                        slot.pair_uses += 1;
                        slot.is_written = slot.is_written.map(|written| written | is_write);
                    }
                    _ => {
                        slot.word_uses += 1;
                        slot.is_written[usize::from(register % 2)] |= is_write;
                    }
                }
            });
        }
        Self { slots, index }
    }

    /// Returns the index of the slot of a register.
    pub(super) fn slot(&self, register: u16) -> Option<usize> {
        let slot = *self.index.get(usize::from(register / 2))?;
        slot.map(usize::from)
    }
}

/// Which registers of the slots are live before each step of a function: read by a step that can be reached without
/// their being written on the way.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Words of a step's set; bit `2 * slot + half` of it is a register.
    words: usize,
    sets: Vec<u64>,
}

impl Liveness {
    /// Finds the live registers before each step.
    pub(super) fn of(function: &Function, slots: &Slots) -> Self {
        let words = (slots.slots.len() * 2).div_ceil(64);
        let mut sets = vec![0u64; words * function.steps.len()];
        let mut set = vec![0u64; words];
        let mut changed = true;
        while changed {
            changed = false;
            for (at, step) in function.steps.iter().enumerate().rev() {
                set.fill(0);
                let mut join = |next: usize| {
                    let next = &sets[next * words..][..words];
                    set.iter_mut()
                        .zip(next)
                        .for_each(|(bits, next)| *bits |= next);
                };
                if falls_through(step) && at + 1 < function.steps.len() {
                    join(at + 1);
                }
                for_each_jump(function, step, join);
                // Writes end a life; reads, which come first in the step, begin it again.
                for wanted in [Access::Write, Access::Read] {
                    for_each_value(function, step, |access, value| {
                        if access != wanted {
                            return;
                        }
                        let (register, mask) = match value {
                            Value::Word(register) => (register, 1 << (register % 2)),
                            Value::Pair(register) => (register, 3),
                            Value::Ref(_) => return,
                        };
                        if let Some(slot) = slots.slot(register) {
                            let bits = &mut set[slot / 32];
                            let mask = mask << (slot % 32 * 2);
                            match access {
                                Access::Write => *bits &= !mask,
                                Access::Read => *bits |= mask,
                            }
                        }
                    });
                }
                let before = &mut sets[at * words..][..words];
                if before != set {
                    before.copy_from_slice(&set);
                    changed = true;
                }
            }
        }
        Self { words, sets }
    }

    /// Returns whether each half of a slot is live before a step.
    pub(super) fn before(&self, step: usize, slot: usize) -> [bool; 2] {
        let bits = self.sets[step * self.words + slot / 32] >> (slot % 32 * 2);
        [bits & 1 != 0, bits & 2 != 0]
    }
}
