//! Translation of the steps of a loop to a `vm_jit::Loop`.
//!
//! Registers become variables: one for each word and one for each pair of words that is used as 64 bits. Which of them
//! hold what the registers would hold is known at each step (`State`); reading a register in a form that none holds
//! converts it. Between blocks a register that is live is kept in one form, and one that is not live is forgotten, so that
//! scratch registers cost nothing on the way around.

use std::collections::HashMap;

use vm_jit::{
    Binary, Block, BlockIndex, BufferIndex, Comparison, Conversion, Division, Element, Exit,
    ExitIndex, Loop, MAX_BUFFERS, Operation, Shift, Terminator, Transfer, Type, Unary, Variable,
    Width,
};

use super::flow::{Liveness, Slots, steps_of_loop};
use crate::interpreter::REF_MASK;
use crate::program::{BACKWARDS, Function, Step, StepKind};

/// The most steps of a loop that is compiled, and the most pairs of registers: they bound what it takes.
const MAX_STEPS: usize = 1000;
const MAX_SLOTS: usize = 128;

/// Translates the loop around the step `head`. Returns it with the ref registers of its buffers, or `None` when there is a
/// step in it that cannot be translated.
pub(super) fn translate(function: &Function, head: usize) -> Option<(Loop, Vec<u16>)> {
    let is_in = steps_of_loop(function, head);
    let steps = function.steps.iter().zip(&is_in);
    let steps = steps.filter_map(|(step, is_in)| is_in.then_some(step));
    // What most often keeps a loop from being compiled is found before the work.
    if steps.clone().any(is_call) || steps.count() > MAX_STEPS {
        return None;
    }
    let slots = Slots::of(function, &is_in);
    if slots.slots.len() > MAX_SLOTS {
        return None;
    }
    let liveness = Liveness::of(function, &slots);
    let translator = Translator {
        function,
        blocks: blocks(function, &is_in, head),
        is_in,
        liveness,
        body: Loop {
            variables: [Width::Word, Width::Word, Width::Pair].repeat(slots.slots.len()),
            ..Loop::default()
        },
        state: vec![State::default(); slots.slots.len()],
        slots,
        operations: Vec::new(),
        edges: Vec::new(),
        buffers: Vec::new(),
    };
    translator.translate(head)
}

fn is_call(step: &Step) -> bool {
    matches!(
        step.kind,
        StepKind::Call
            | StepKind::CallVariadic
            | StepKind::CallYieldable
            | StepKind::CallVariadicYieldable
            | StepKind::CallRef
            | StepKind::CallSite
            | StepKind::CallPure
    )
}

/// Returns the first steps of the blocks of a loop, with their indices: the head first.
fn blocks(function: &Function, is_in: &[bool], head: usize) -> HashMap<usize, BlockIndex> {
    let mut firsts = vec![head];
    for (at, step) in function.steps.iter().enumerate() {
        if is_in[at] && step.kind.is_jump() {
            firsts.push((step.y & !BACKWARDS) as usize);
            firsts.push(at + 1);
        }
    }
    let mut blocks = HashMap::new();
    for first in firsts {
        let index = BlockIndex(u32::try_from(blocks.len()).expect("loops are short"));
        if is_in.get(first) == Some(&true) {
            blocks.entry(first).or_insert(index);
        }
    }
    blocks
}

/// Which variables of a slot hold what its registers would hold.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    words: [bool; 2],
    whole: bool,
}

struct Translator<'a> {
    function: &'a Function,
    is_in: Vec<bool>,
    blocks: HashMap<usize, BlockIndex>,
    slots: Slots,
    liveness: Liveness,
    body: Loop,
    /// The state of each slot before the step that is translated.
    state: Vec<State>,
    /// The operations of the block that is translated.
    operations: Vec<Operation>,
    /// Blocks for ways that need one of their own; they follow those of the steps.
    edges: Vec<Block>,
    /// The ref registers of the buffers.
    buffers: Vec<u16>,
}

impl Translator<'_> {
    fn translate(mut self, head: usize) -> Option<(Loop, Vec<u16>)> {
        for (index, slot) in self.slots.slots.iter().enumerate() {
            let live = self.liveness.before(head, index);
            let offset = u32::from(slot.register) * 4;
            if slot.is_kept_whole() {
                if live[0] || live[1] {
                    self.body.loads.push(Transfer {
                        variable: whole_variable(index),
                        offset,
                    });
                }
                continue;
            }
            for half in [0, 1] {
                if live[half] {
                    self.body.loads.push(Transfer {
                        variable: word_variable(index, half),
                        offset: offset + [0, 4][half],
                    });
                }
            }
        }
        let mut firsts: Vec<(usize, BlockIndex)> = Vec::new();
        firsts.extend(self.blocks.iter().map(|(first, index)| (*first, *index)));
        firsts.sort_unstable_by_key(|(_, index)| index.0);
        for (first, _) in firsts {
            let terminator = self.block(first)?;
            let operations = core::mem::take(&mut self.operations);
            self.body.blocks.push(Block {
                operations,
                terminator,
            });
        }
        self.body.blocks.append(&mut self.edges);
        self.body.buffer_count = u32::try_from(self.buffers.len()).ok()?;
        Some((self.body, self.buffers))
    }

    /// Translates the block that starts at a step.
    fn block(&mut self, first: usize) -> Option<Terminator> {
        for (index, slot) in self.slots.slots.iter().enumerate() {
            let live = self.liveness.before(first, index);
            self.state[index] = if slot.is_kept_whole() {
                State {
                    words: [false; 2],
                    whole: live[0] || live[1],
                }
            } else {
                State {
                    words: live,
                    whole: false,
                }
            };
        }
        let mut at = first;
        loop {
            let step = &self.function.steps[at];
            if step.kind.is_jump() {
                return self.jump(at, step);
            }
            self.step(at, step)?;
            at += 1;
            if !self.is_in(at) || self.blocks.contains_key(&at) {
                return self.edge(at, false).map(Terminator::Jump);
            }
        }
    }

    /// Translates the jump that ends a block.
    fn jump(&mut self, at: usize, step: &Step) -> Option<Terminator> {
        let target = (step.y & !BACKWARDS) as usize;
        let is_backwards = step.y & BACKWARDS != 0;
        let (condition, jumps_when) = match step.kind {
            StepKind::Br | StepKind::Yield | StepKind::Break | StepKind::CondBreak => {
                return self.edge(target, is_backwards).map(Terminator::Jump);
            }
            StepKind::CondBr => (self.word(step.a)?, true),
            StepKind::BrZero => (self.word(step.a)?, false),
            kind => {
                let (comparison, on, jumps_when) = compare_and_branch(kind)?;
                self.compare(step, comparison, on)?;
                (self.word(step.c)?, jumps_when)
            }
        };
        // What one way needs converted is converted before the branch; the other does not look at it.
        let jump = self.edge(target, is_backwards)?;
        let fall = self.edge(at + 1, false)?;
        let (first, second) = if jumps_when {
            (jump, fall)
        } else {
            (fall, jump)
        };
        Some(Terminator::Branch {
            condition,
            first,
            second,
        })
    }

    /// Returns the block for the way to a step: in the loop or out of it.
    fn edge(&mut self, target: usize, is_backwards: bool) -> Option<BlockIndex> {
        if !self.is_in(target) {
            let exit = self.exit(target)?;
            return Some(self.edge_block(Vec::new(), Terminator::Exit(exit)));
        }
        for index in 0..self.slots.slots.len() {
            let live = self.liveness.before(target, index);
            if self.slots.slots[index].is_kept_whole() {
                if live[0] || live[1] {
                    self.make_whole(index, live)?;
                }
            } else {
                for half in [0, 1] {
                    if live[half] {
                        self.make_word(index, half)?;
                    }
                }
            }
        }
        let block = self.blocks[&target];
        if !is_backwards {
            return Some(block);
        }
        let exit = self.exit(target)?;
        Some(self.edge_block(vec![Operation::Poll { exit }], Terminator::Jump(block)))
    }

    fn edge_block(&mut self, operations: Vec<Operation>, terminator: Terminator) -> BlockIndex {
        let index = self.blocks.len() + self.edges.len();
        self.edges.push(Block {
            operations,
            terminator,
        });
        BlockIndex(u32::try_from(index).expect("loops are short"))
    }

    /// Returns an exit that goes on at a step, from here: what the loop writes and is live there is stored.
    fn exit(&mut self, step: usize) -> Option<ExitIndex> {
        let mut stores = Vec::new();
        for (index, slot) in self.slots.slots.iter().enumerate() {
            let live = self.liveness.before(step, index);
            let wanted = [0, 1].map(|half| live[half] && slot.is_written[half]);
            let offset = u32::from(slot.register) * 4;
            let state = self.state[index];
            if state.whole && (wanted[0] || wanted[1]) {
                stores.push(Transfer {
                    variable: whole_variable(index),
                    offset,
                });
                continue;
            }
            for half in [0, 1] {
                if wanted[half] {
                    if !state.words[half] {
                        return None;
                    }
                    stores.push(Transfer {
                        variable: word_variable(index, half),
                        offset: offset + [0, 4][half],
                    });
                }
            }
        }
        let index = u32::try_from(self.body.exits.len()).ok()?;
        self.body.exits.push(Exit {
            stores,
            code: u32::try_from(step).ok()?,
        });
        Some(ExitIndex(index))
    }

    /// Translates a step that is no jump.
    fn step(&mut self, at: usize, step: &Step) -> Option<()> {
        use StepKind as K;
        match step.kind {
            K::ConstI32Zero | K::ConstF32Zero => self.constant(step.a, Width::Word, 0),
            K::ConstI32 | K::ConstF32 => self.constant(step.a, Width::Word, step.y.into()),
            K::ConstI64Zero | K::ConstF64Zero => self.constant(step.a, Width::Pair, 0),
            K::ConstI64 | K::ConstF64 => self.constant(step.a, Width::Pair, step.immediate64()),
            K::CopyI32 | K::BitcastI32F32 | K::BitcastF32I32 => {
                let from = self.word(step.a)?;
                let to = self.set_word(step.b)?;
                self.emit(Operation::Copy { to, from })
            }
            K::CopyI64 | K::BitcastI64F64 | K::BitcastF64I64 => {
                let from = self.pair(step.a)?;
                let to = self.set_pair(step.b)?;
                self.emit(Operation::Copy { to, from })
            }
            K::SelectI32 | K::SelectF32 => self.select(step, Type::I32),
            K::SelectI64 | K::SelectF64 => self.select(step, Type::I64),
            K::BufferLoadI8U => self.load(at, step, Element::Byte),
            K::BufferLoadI8S => self.load(at, step, Element::SignedByte),
            K::BufferLoadI16U => self.load(at, step, Element::Half),
            K::BufferLoadI16S => self.load(at, step, Element::SignedHalf),
            K::BufferLoadI32 => self.load(at, step, Element::Whole(Type::I32)),
            K::BufferLoadI64 => self.load(at, step, Element::Whole(Type::I64)),
            K::BufferLoadF32 => self.load(at, step, Element::Whole(Type::F32)),
            K::BufferLoadF64 => self.load(at, step, Element::Whole(Type::F64)),
            K::BufferStoreI8 => self.store(at, step, Element::Byte),
            K::BufferStoreI16 => self.store(at, step, Element::Half),
            K::BufferStoreI32 => self.store(at, step, Element::Whole(Type::I32)),
            K::BufferStoreI64 => self.store(at, step, Element::Whole(Type::I64)),
            K::BufferStoreF32 => self.store(at, step, Element::Whole(Type::F32)),
            K::BufferStoreF64 => self.store(at, step, Element::Whole(Type::F64)),
            K::BufferLength => {
                let buffer = self.buffer(step.a)?;
                let to = self.set_pair(step.b)?;
                self.emit(Operation::Length { to, buffer })
            }
            K::FmaI32 => self.multiply_add(step, Type::I32),
            K::FmaI64 => self.multiply_add(step, Type::I64),
            K::FmaF32 => self.multiply_add(step, Type::F32),
            K::FmaF64 => self.multiply_add(step, Type::F64),
            K::RsqrtF32 => self.reciprocal_root(step, Type::F32),
            K::RsqrtF64 => self.reciprocal_root(step, Type::F64),
            K::CastF32Si32 | K::CastF32Ui32 => {
                let from = self.get(step.a, Type::F32)?;
                self.round_to_word(from, step.b)
            }
            K::CastF64Si32 | K::CastF64Ui32 => {
                let wide = self.get(step.a, Type::F64)?;
                let from = self.scratch(Width::Word);
                self.convert(Conversion::Demote, from, wide)?;
                self.round_to_word(from, step.b)
            }
            K::CastF32Si64 => {
                let from = self.get(step.a, Type::F32)?;
                let to = self.set_pair(step.b)?;
                self.round_to_pair(from, to)
            }
            K::CastF64Si64 | K::CastF64Ui64 => {
                let from = self.get(step.a, Type::F64)?;
                let to = self.set_pair(step.b)?;
                let rounded = self.scratch(Width::Pair);
                self.round(Type::F64, rounded, from)?;
                self.convert(Conversion::FloatToSigned, to, rounded)
            }
            K::CmpNzI32 => self.compare_with_zero(step, Type::I32),
            K::CmpNzI64 => self.compare_with_zero(step, Type::I64),
            K::CmpNanF32 => self.compare_with_itself(step, Type::F32),
            K::CmpNanF64 => self.compare_with_itself(step, Type::F64),
            kind => {
                if let Some((operation, on)) = binary(kind) {
                    self.binary(step, operation, on)
                } else if let Some((operation, on)) = unary(kind) {
                    let from = self.get(step.a, on)?;
                    let to = self.set(step.b, on)?;
                    self.emit(Operation::Unary {
                        operation,
                        on,
                        to,
                        from,
                    })
                } else if let Some((comparison, on)) = comparison(kind) {
                    self.compare(step, comparison, on)
                } else if let Some((conversion, source, target)) = conversion(kind) {
                    let from = self.get(step.a, source)?;
                    let to = self.set(step.b, target)?;
                    self.convert(conversion, to, from)
                } else if let Some((operation, on)) = shift(kind) {
                    let (from, amount) = (self.get(step.a, on)?, self.word(step.b)?);
                    let to = self.set(step.c, on)?;
                    self.emit(Operation::Shift {
                        operation,
                        on,
                        to,
                        from,
                        amount,
                    })
                } else {
                    let (operation, on) = division(kind)?;
                    let (left, right) = (self.get(step.a, on)?, self.get(step.b, on)?);
                    let exit = self.exit(at)?;
                    let to = self.set(step.c, on)?;
                    self.emit(Operation::Divide {
                        operation,
                        on,
                        to,
                        left,
                        right,
                        exit,
                    })
                }
            }
        }
    }

    fn emit(&mut self, operation: Operation) -> Option<()> {
        self.operations.push(operation);
        Some(())
    }

    fn constant(&mut self, register: u16, width: Width, bits: u64) -> Option<()> {
        let to = match width {
            Width::Word => self.set_word(register)?,
            Width::Pair => self.set_pair(register)?,
        };
        self.emit(Operation::Constant { to, bits })
    }

    fn select(&mut self, step: &Step, on: Type) -> Option<()> {
        let condition = self.word(step.a)?;
        let (first, second) = (self.get(step.b, on)?, self.get(step.c, on)?);
        let to = self.set(step.d(), on)?;
        self.emit(Operation::Select {
            condition,
            to,
            first,
            second,
        })
    }

    fn binary(&mut self, step: &Step, operation: Binary, on: Type) -> Option<()> {
        let (left, right) = (self.get(step.a, on)?, self.get(step.b, on)?);
        let to = self.set(step.c, on)?;
        self.emit(Operation::Binary {
            operation,
            on,
            to,
            left,
            right,
        })
    }

    fn multiply_add(&mut self, step: &Step, on: Type) -> Option<()> {
        let (left, right) = (self.get(step.a, on)?, self.get(step.b, on)?);
        let addend = self.get(step.c, on)?;
        let to = self.set(step.d(), on)?;
        self.emit(Operation::MultiplyAdd {
            on,
            to,
            left,
            right,
            addend,
        })
    }

    fn convert(&mut self, conversion: Conversion, to: Variable, from: Variable) -> Option<()> {
        self.emit(Operation::Convert {
            conversion,
            to,
            from,
        })
    }

    fn round(&mut self, on: Type, to: Variable, from: Variable) -> Option<()> {
        self.emit(Operation::Unary {
            operation: Unary::Round,
            on,
            to,
            from,
        })
    }

    /// Rounds a 32-bit float to a 64-bit integer.
    fn round_to_pair(&mut self, from: Variable, to: Variable) -> Option<()> {
        let rounded = self.scratch(Width::Word);
        self.round(Type::F32, rounded, from)?;
        let wide = self.scratch(Width::Pair);
        self.convert(Conversion::Promote, wide, rounded)?;
        self.convert(Conversion::FloatToSigned, to, wide)
    }

    /// Rounds a 32-bit float to a 64-bit integer and sets a register to its low word.
    fn round_to_word(&mut self, from: Variable, register: u16) -> Option<()> {
        let integer = self.scratch(Width::Pair);
        self.round_to_pair(from, integer)?;
        let to = self.set_word(register)?;
        self.convert(Conversion::LowHalf, to, integer)
    }

    fn reciprocal_root(&mut self, step: &Step, on: Type) -> Option<()> {
        let from = self.get(step.a, on)?;
        let to = self.set(step.b, on)?;
        let one = self.scratch(on.width());
        let bits = match on {
            Type::F32 => u64::from(1f32.to_bits()),
            _ => 1f64.to_bits(),
        };
        self.emit(Operation::Unary {
            operation: Unary::SquareRoot,
            on,
            to,
            from,
        })?;
        self.emit(Operation::Constant { to: one, bits })?;
        self.emit(Operation::Binary {
            operation: Binary::Divide,
            on,
            to,
            left: one,
            right: to,
        })
    }

    fn compare(&mut self, step: &Step, comparison: Comparison, on: Type) -> Option<()> {
        let (left, right) = (self.get(step.a, on)?, self.get(step.b, on)?);
        let to = self.set_word(step.c)?;
        self.emit(Operation::Compare {
            comparison,
            on,
            to,
            left,
            right,
        })
    }

    fn compare_with_zero(&mut self, step: &Step, on: Type) -> Option<()> {
        let left = self.get(step.a, on)?;
        let to = self.set_word(step.b)?;
        let right = self.scratch(on.width());
        self.emit(Operation::Constant { to: right, bits: 0 })?;
        self.emit(Operation::Compare {
            comparison: Comparison::NotEqual,
            on,
            to,
            left,
            right,
        })
    }

    fn compare_with_itself(&mut self, step: &Step, on: Type) -> Option<()> {
        let left = self.get(step.a, on)?;
        let to = self.set_word(step.b)?;
        self.emit(Operation::Compare {
            comparison: Comparison::Unordered,
            on,
            to,
            left,
            right: left,
        })
    }

    fn load(&mut self, at: usize, step: &Step, element: Element) -> Option<()> {
        let (buffer, index) = (self.buffer(step.a)?, self.pair(step.b)?);
        let exit = self.exit(at)?;
        let to = self.set(step.c, element.value_type())?;
        self.emit(Operation::Load {
            element,
            to,
            buffer,
            index,
            exit,
        })
    }

    fn store(&mut self, at: usize, step: &Step, element: Element) -> Option<()> {
        let (buffer, index) = (self.buffer(step.a)?, self.pair(step.b)?);
        let value = self.get(step.c, element.value_type())?;
        let exit = self.exit(at)?;
        self.emit(Operation::Store {
            element,
            buffer,
            index,
            value,
            exit,
        })
    }

    /// Returns the buffer of a ref register, which no step of the loop writes.
    fn buffer(&mut self, operand: u16) -> Option<BufferIndex> {
        let register = operand & REF_MASK;
        let known = self.buffers.iter().position(|known| *known == register);
        let index = match known {
            Some(index) => index,
            None if self.buffers.len() == MAX_BUFFERS => return None,
            None => {
                self.buffers.push(register);
                self.buffers.len() - 1
            }
        };
        Some(BufferIndex(u32::try_from(index).ok()?))
    }

    /// Returns a new variable that is no register.
    fn scratch(&mut self, width: Width) -> Variable {
        let index = self.body.variables.len();
        self.body.variables.push(width);
        Variable(u32::try_from(index).expect("loops are short"))
    }

    /// Returns the variable that holds a register as a value of a type.
    fn get(&mut self, register: u16, on: Type) -> Option<Variable> {
        match on.width() {
            Width::Word => self.word(register),
            Width::Pair => self.pair(register),
        }
    }

    fn word(&mut self, register: u16) -> Option<Variable> {
        let slot = self.slots.slot(register)?;
        self.make_word(slot, usize::from(register % 2))
    }

    fn pair(&mut self, register: u16) -> Option<Variable> {
        let slot = self.slots.slot(register)?;
        self.make_whole(slot, [true; 2])
    }

    /// Returns the variable that is to hold a register from now on, as a value of a type. The caller sets it.
    fn set(&mut self, register: u16, on: Type) -> Option<Variable> {
        match on.width() {
            Width::Word => self.set_word(register),
            Width::Pair => self.set_pair(register),
        }
    }

    fn set_word(&mut self, register: u16) -> Option<Variable> {
        let slot = self.slots.slot(register)?;
        let half = usize::from(register % 2);
        if self.state[slot].whole {
            // The other half stays what it is.
            self.make_word(slot, 1 - half)?;
        }
        self.state[slot].whole = false;
        self.state[slot].words[half] = true;
        Some(word_variable(slot, half))
    }

    fn set_pair(&mut self, register: u16) -> Option<Variable> {
        let slot = self.slots.slot(register)?;
        self.state[slot] = State {
            words: [false; 2],
            whole: true,
        };
        Some(whole_variable(slot))
    }

    /// Makes the variable of a half of a slot hold what the register would hold.
    fn make_word(&mut self, slot: usize, half: usize) -> Option<Variable> {
        let variable = word_variable(slot, half);
        let state = &mut self.state[slot];
        if !core::mem::replace(&mut state.words[half], true) {
            if !state.whole {
                return None;
            }
            let conversion = match half {
                0 => Conversion::LowHalf,
                _ => Conversion::HighHalf,
            };
            self.convert(conversion, variable, whole_variable(slot))?;
        }
        Some(variable)
    }

    /// Makes the variable of a whole slot hold what its registers would hold, of which those in `wanted` matter.
    fn make_whole(&mut self, slot: usize, wanted: [bool; 2]) -> Option<Variable> {
        let variable = whole_variable(slot);
        if !self.state[slot].whole {
            for half in [0, 1] {
                if !self.state[slot].words[half] {
                    if wanted[half] {
                        return None;
                    }
                    let to = word_variable(slot, half);
                    self.emit(Operation::Constant { to, bits: 0 })?;
                }
            }
            self.state[slot].whole = true;
            self.emit(Operation::Join {
                to: variable,
                low: word_variable(slot, 0),
                high: word_variable(slot, 1),
            })?;
        }
        Some(variable)
    }

    fn is_in(&self, step: usize) -> bool {
        self.is_in.get(step) == Some(&true)
    }
}

/// Returns the variable of a half of a slot.
fn word_variable(slot: usize, half: usize) -> Variable {
    variable(slot * 3 + half)
}

/// Returns the variable of a slot as a whole.
fn whole_variable(slot: usize) -> Variable {
    variable(slot * 3 + 2)
}

fn variable(index: usize) -> Variable {
    Variable(u32::try_from(index).expect("there are at most `MAX_SLOTS` slots"))
}

/// Returns what a step compares, how, and whether it jumps when that holds or when it does not.
fn compare_and_branch(kind: StepKind) -> Option<(Comparison, Type, bool)> {
    use Comparison::{Equal, Less, LessUnsigned, NotEqual};
    use StepKind as K;
    use Type::{I32, I64};
    Some(match kind {
        K::BrEqI32 => (Equal, I32, true),
        K::BrNotEqI32 => (Equal, I32, false),
        K::BrNeI32 => (NotEqual, I32, true),
        K::BrNotNeI32 => (NotEqual, I32, false),
        K::BrLtI32S => (Less, I32, true),
        K::BrNotLtI32S => (Less, I32, false),
        K::BrLtI32U => (LessUnsigned, I32, true),
        K::BrNotLtI32U => (LessUnsigned, I32, false),
        K::BrEqI64 => (Equal, I64, true),
        K::BrNotEqI64 => (Equal, I64, false),
        K::BrNeI64 => (NotEqual, I64, true),
        K::BrNotNeI64 => (NotEqual, I64, false),
        K::BrLtI64S => (Less, I64, true),
        K::BrNotLtI64S => (Less, I64, false),
        K::BrLtI64U => (LessUnsigned, I64, true),
        K::BrNotLtI64U => (LessUnsigned, I64, false),
        _ => return None,
    })
}

/// Returns the operation of a step that sets c to one of a and b.
fn binary(kind: StepKind) -> Option<(Binary, Type)> {
    use StepKind as K;
    use Type::{F32, F64, I32, I64};
    Some(match kind {
        K::AddI32 => (Binary::Add, I32),
        K::SubI32 => (Binary::Subtract, I32),
        K::MulI32 => (Binary::Multiply, I32),
        K::MinI32S => (Binary::Minimum, I32),
        K::MinI32U => (Binary::MinimumUnsigned, I32),
        K::MaxI32S => (Binary::Maximum, I32),
        K::MaxI32U => (Binary::MaximumUnsigned, I32),
        K::AndI32 => (Binary::And, I32),
        K::OrI32 => (Binary::Or, I32),
        K::XorI32 => (Binary::Xor, I32),
        K::AddI64 => (Binary::Add, I64),
        K::SubI64 => (Binary::Subtract, I64),
        K::MulI64 => (Binary::Multiply, I64),
        K::MinI64S => (Binary::Minimum, I64),
        K::MinI64U => (Binary::MinimumUnsigned, I64),
        K::MaxI64S => (Binary::Maximum, I64),
        K::MaxI64U => (Binary::MaximumUnsigned, I64),
        K::AndI64 => (Binary::And, I64),
        K::OrI64 => (Binary::Or, I64),
        K::XorI64 => (Binary::Xor, I64),
        K::AddF32 => (Binary::Add, F32),
        K::SubF32 => (Binary::Subtract, F32),
        K::MulF32 => (Binary::Multiply, F32),
        K::DivF32 => (Binary::Divide, F32),
        K::MinF32 => (Binary::Minimum, F32),
        K::MaxF32 => (Binary::Maximum, F32),
        K::AddF64 => (Binary::Add, F64),
        K::SubF64 => (Binary::Subtract, F64),
        K::MulF64 => (Binary::Multiply, F64),
        K::DivF64 => (Binary::Divide, F64),
        K::MinF64 => (Binary::Minimum, F64),
        K::MaxF64 => (Binary::Maximum, F64),
        _ => return None,
    })
}

/// Returns the operation of a step that sets b to one of a.
fn unary(kind: StepKind) -> Option<(Unary, Type)> {
    use StepKind as K;
    use Type::{F32, F64, I32, I64};
    Some(match kind {
        K::AbsI32 => (Unary::Abs, I32),
        K::NotI32 => (Unary::Not, I32),
        K::CtlzI32 => (Unary::LeadingZeros, I32),
        K::AbsI64 => (Unary::Abs, I64),
        K::NotI64 => (Unary::Not, I64),
        K::CtlzI64 => (Unary::LeadingZeros, I64),
        K::TruncI32I8 | K::ExtI8I32U => (Unary::Low8Unsigned, I32),
        K::TruncI32I16 | K::ExtI16I32U => (Unary::Low16Unsigned, I32),
        K::ExtI8I32S => (Unary::Low8Signed, I32),
        K::ExtI16I32S => (Unary::Low16Signed, I32),
        K::AbsF32 => (Unary::Abs, F32),
        K::NegF32 => (Unary::Negate, F32),
        K::CeilF32 => (Unary::Ceil, F32),
        K::FloorF32 => (Unary::Floor, F32),
        K::RoundF32 => (Unary::Round, F32),
        K::RoundF32Even => (Unary::RoundToEven, F32),
        K::SqrtF32 => (Unary::SquareRoot, F32),
        K::AbsF64 => (Unary::Abs, F64),
        K::NegF64 => (Unary::Negate, F64),
        K::CeilF64 => (Unary::Ceil, F64),
        K::FloorF64 => (Unary::Floor, F64),
        K::RoundF64 => (Unary::Round, F64),
        K::RoundF64Even => (Unary::RoundToEven, F64),
        K::SqrtF64 => (Unary::SquareRoot, F64),
        _ => return None,
    })
}

/// Returns the comparison of a step that compares a and b.
fn comparison(kind: StepKind) -> Option<(Comparison, Type)> {
    use StepKind as K;
    use Type::{F32, F64, I32, I64};
    Some(match kind {
        K::CmpEqI32 => (Comparison::Equal, I32),
        K::CmpNeI32 => (Comparison::NotEqual, I32),
        K::CmpLtI32S => (Comparison::Less, I32),
        K::CmpLtI32U => (Comparison::LessUnsigned, I32),
        K::CmpEqI64 => (Comparison::Equal, I64),
        K::CmpNeI64 => (Comparison::NotEqual, I64),
        K::CmpLtI64S => (Comparison::Less, I64),
        K::CmpLtI64U => (Comparison::LessUnsigned, I64),
        K::CmpEqF32O => (Comparison::Equal, F32),
        K::CmpEqF32U => (Comparison::EqualOrUnordered, F32),
        K::CmpNeF32O | K::CmpNeF32U => (Comparison::NotEqual, F32),
        K::CmpLtF32O => (Comparison::Less, F32),
        K::CmpLtF32U => (Comparison::LessOrUnordered, F32),
        K::CmpLteF32O => (Comparison::LessOrEqual, F32),
        K::CmpLteF32U => (Comparison::LessOrEqualOrUnordered, F32),
        K::CmpEqF64O => (Comparison::Equal, F64),
        K::CmpEqF64U => (Comparison::EqualOrUnordered, F64),
        K::CmpNeF64O | K::CmpNeF64U => (Comparison::NotEqual, F64),
        K::CmpLtF64O => (Comparison::Less, F64),
        K::CmpLtF64U => (Comparison::LessOrUnordered, F64),
        K::CmpLteF64O => (Comparison::LessOrEqual, F64),
        K::CmpLteF64U => (Comparison::LessOrEqualOrUnordered, F64),
        _ => return None,
    })
}

/// Returns the conversion of a step that sets b to a converted, with the types from and to.
fn conversion(kind: StepKind) -> Option<(Conversion, Type, Type)> {
    use Conversion::{SignedToFloat, UnsignedToFloat};
    use StepKind as K;
    use Type::{F32, F64, I32, I64};
    Some(match kind {
        K::TruncI64I32 => (Conversion::LowHalf, I64, I32),
        K::ExtI32I64S => (Conversion::ExtendSigned, I32, I64),
        K::ExtI32I64U => (Conversion::ExtendUnsigned, I32, I64),
        K::CastSi32F32 => (SignedToFloat(I32, F32), I32, F32),
        K::CastUi32F32 => (UnsignedToFloat(I32, F32), I32, F32),
        K::CastSi64F32 => (SignedToFloat(I64, F32), I64, F32),
        K::CastUi64F32 => (UnsignedToFloat(I64, F32), I64, F32),
        K::CastSi32F64 => (SignedToFloat(I32, F64), I32, F64),
        K::CastUi32F64 => (UnsignedToFloat(I32, F64), I32, F64),
        K::CastSi64F64 => (SignedToFloat(I64, F64), I64, F64),
        K::CastUi64F64 => (UnsignedToFloat(I64, F64), I64, F64),
        K::TruncF64F32 => (Conversion::Demote, F64, F32),
        K::ExtF32F64 => (Conversion::Promote, F32, F64),
        _ => return None,
    })
}

/// Returns the shift of a step that sets c to a shifted by b.
fn shift(kind: StepKind) -> Option<(Shift, Type)> {
    use StepKind as K;
    use Type::{I32, I64};
    Some(match kind {
        K::ShlI32 => (Shift::Left, I32),
        K::ShrI32U => (Shift::RightUnsigned, I32),
        K::ShrI32S => (Shift::RightSigned, I32),
        K::ShlI64 => (Shift::Left, I64),
        K::ShrI64U => (Shift::RightUnsigned, I64),
        K::ShrI64S => (Shift::RightSigned, I64),
        _ => return None,
    })
}

/// Returns the division of a step that sets c to a divided by b.
fn division(kind: StepKind) -> Option<(Division, Type)> {
    use StepKind as K;
    use Type::{I32, I64};
    Some(match kind {
        K::DivI32S => (Division::QuotientSigned, I32),
        K::DivI32U => (Division::QuotientUnsigned, I32),
        K::RemI32S => (Division::RemainderSigned, I32),
        K::RemI32U => (Division::RemainderUnsigned, I32),
        K::DivI64S => (Division::QuotientSigned, I64),
        K::DivI64U => (Division::QuotientUnsigned, I64),
        K::RemI64S => (Division::RemainderSigned, I64),
        K::RemI64U => (Division::RemainderUnsigned, I64),
        _ => return None,
    })
}
