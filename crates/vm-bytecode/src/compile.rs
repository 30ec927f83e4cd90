//! Compilation: verified functions to programs.
//!
//! Prepares at load what would otherwise be done at every step: blocks become step indices, copies on the way to a
//! block become steps, calls get their argument plan, and, unless asked not to, a comparison and the branch on it become
//! one step.

mod imports;

use std::collections::HashSet;

use vm::{Atom, CallingConvention, Item};

use imports::{import_call, is_ref_to_ref, passed_on, varies_by_one_object};

use crate::code::{AnyReg, FunctionRef, Instruction, Operand, Register, RemapPair};
use crate::constants::Constants;
use crate::interpreter::{Copy, MOVE_BIT, REF_MASK};
use crate::program::{
    BACKWARDS, CONTINUES, Function, ImportCall, InternalCall, Program, Step, StepKind, Value,
};
use crate::{Opcode, PoolRange, VerifiedFunction, VerifiedModule};

/// Whether steps may stand for several instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fusion {
    /// Yes: for speed.
    Fused,
    /// No: each instruction can be counted and traced.
    Plain,
}

/// Compiles all functions of a module. The argument blocks do not depend on `fusion`.
pub(crate) fn compile(module: &VerifiedModule, fusion: Fusion) -> Program {
    let mut calls = ModuleCalls::default();
    let functions = (0..).zip(module.functions());
    let functions = functions
        .map(|(ordinal, function)| {
            Compiler::new(module, function, fusion, &mut calls).compile(ordinal)
        })
        .collect();
    Program {
        functions,
        argument_words: calls.argument_words.into(),
        answer_count: calls.answer_count,
        site_count: calls.site_count,
    }
}

/// What the calls of imports of all functions of a module need: see [`Program`].
#[derive(Default)]
struct ModuleCalls {
    argument_words: Vec<u32>,
    answer_count: u32,
    site_count: u32,
}

/// Returns the next number of a count.
fn number(count: &mut u32) -> u32 {
    let next = *count;
    *count += 1;
    next
}

struct Compiler<'a> {
    module: &'a VerifiedModule,
    function: &'a VerifiedFunction,
    fusion: Fusion,
    module_calls: &'a mut ModuleCalls,
    constants: Constants,
    steps: Vec<Step>,
    offsets: Vec<u32>,
    registers: Vec<u16>,
    /// Targets of branch tables, with the step that uses each.
    targets: Vec<(usize, Target)>,
    calls: Vec<InternalCall>,
    import_calls: Vec<ImportCall>,
    returns: Vec<Value>,
    messages: Vec<Box<str>>,
    /// First step of each block.
    block_starts: Vec<u32>,
    /// Steps whose `y` is a block index until all blocks have a start.
    jumps: Vec<usize>,
    /// Offset of the instruction that is compiled, with [`CONTINUES`] after its first step.
    offset: u32,
    /// Constants that the next call of an import takes as they are: their ref registers are null, see
    /// [`Compiler::passed_on`].
    passed_on: Vec<(u16, u32)>,
}

/// Target of a branch table: a block, or the copies on the way to one.
#[derive(Clone, Copy)]
enum Target {
    Block(u32),
    Step(u32),
}

/// A branch to a block.
#[derive(Clone, Copy)]
struct Edge<'a> {
    copies: &'a [RemapPair],
    block: u32,
}

impl<'a> Compiler<'a> {
    fn new(
        module: &'a VerifiedModule,
        function: &'a VerifiedFunction,
        fusion: Fusion,
        module_calls: &'a mut ModuleCalls,
    ) -> Self {
        Self {
            module,
            function,
            fusion,
            module_calls,
            constants: Constants::of(module, function),
            steps: Vec::new(),
            offsets: Vec::new(),
            registers: Vec::new(),
            targets: Vec::new(),
            calls: Vec::new(),
            import_calls: Vec::new(),
            returns: Vec::new(),
            messages: Vec::new(),
            block_starts: Vec::new(),
            jumps: Vec::new(),
            offset: 0,
            passed_on: Vec::new(),
        }
    }

    fn compile(mut self, ordinal: u32) -> Function {
        for (index, block) in self.function.blocks().iter().enumerate() {
            self.block_starts.push(index32(self.steps.len()));
            let mut instructions = self.function.instructions(block).peekable();
            while let Some(instruction) = instructions.next() {
                self.offset = instruction.offset();
                let fused = instructions
                    .peek()
                    .and_then(|next| self.fused_compare(&instruction, next));
                match fused {
                    Some(compare) => {
                        if let Some(branch) = instructions.next() {
                            self.conditional(compare, &branch, index);
                        }
                    }
                    None if self.fusion == Fusion::Fused
                        && self.constants.is_unread(&instruction) => {}
                    None => match passed_on(&instruction, instructions.clone()) {
                        Some((register, constant)) => self.pass_on(register, constant),
                        None => self.instruction(&instruction, index),
                    },
                }
            }
        }
        for &at in &self.jumps {
            let step = &mut self.steps[at];
            step.y = target(at, self.block_starts[step.y as usize]);
        }
        let targets = self.targets.iter().map(|&(at, branch)| match branch {
            Target::Block(block) => target(at, self.block_starts[block as usize]),
            Target::Step(step) => step,
        });
        let convention = self.function.convention();
        Function {
            ordinal,
            register_count: self.function.i32_register_count(),
            ref_count: self.function.ref_register_count(),
            targets: targets.collect(),
            #[cfg(feature = "jit")]
            loops: crate::loops::number(&mut self.steps),
            steps: self.steps.into(),
            offsets: self.offsets.into(),
            registers: self.registers.into(),
            calls: self.calls.into(),
            import_calls: self.import_calls.into(),
            returns: self.returns.into(),
            messages: self.messages.into(),
            arguments: argument_registers(convention).into(),
        }
    }

    fn emit(&mut self, step: Step) {
        self.steps.push(step);
        self.offsets.push(self.offset);
        self.offset |= CONTINUES;
    }

    /// Compiles `instruction` of the block `block`.
    fn instruction(&mut self, instruction: &Instruction<'a>, block: usize) {
        let operands = instruction.operands();
        match (instruction.op(), operands) {
            (Opcode::Br | Opcode::Break, [target, remap])
            | (Opcode::CondBreak, [_, target, remap]) => {
                let edge = self.edge(instruction, *target, *remap);
                self.branch(edge, block);
            }
            (Opcode::Yield, [target, remap]) => {
                let edge = self.edge(instruction, *target, *remap);
                self.copies(edge.copies);
                self.jump(Step::new(StepKind::Yield), edge.block);
            }
            (Opcode::CondBr, [Operand::I32(condition), ..]) => {
                let step = Step {
                    a: condition.ordinal(),
                    ..Step::new(StepKind::CondBr)
                };
                self.conditional(step, instruction, block);
            }
            (
                Opcode::BrTable,
                [
                    Operand::I32(index),
                    target,
                    remap,
                    Operand::Cases(_),
                    cases @ ..,
                ],
            ) => {
                let default = self.edge(instruction, *target, *remap);
                let cases: Vec<Edge<'a>> = cases
                    .chunks_exact(2)
                    .map(|case| self.edge(instruction, case[0], case[1]))
                    .collect();
                self.branch_table(index.ordinal(), default, &cases, block);
            }
            (Opcode::Return, [Operand::Registers(list)]) => {
                let start = self.returns.len();
                let values = values(
                    instruction.registers(*list),
                    self.function.convention().results(),
                );
                self.returns.extend(values);
                move_last(&mut self.returns[start..]);
                let (x, y) = (index32(start), index32(self.returns.len() - start));
                self.emit(Step {
                    x,
                    y,
                    ..Step::new(StepKind::Return)
                });
            }
            (Opcode::Fail, [Operand::I32(status), Operand::Text(message)]) => {
                let y = index32(self.messages.len());
                self.messages
                    .push(String::from_utf8_lossy(instruction.text(*message)).into());
                self.emit(Step {
                    a: status.ordinal(),
                    y,
                    ..Step::new(StepKind::Fail)
                });
            }
            (Opcode::Trace | Opcode::Print, [_, Operand::Registers(list)]) => {
                let moved =
                    instruction.registers(*list).iter().filter_map(|register| {
                        match register.register() {
                            Register::Ref(register) if register.is_move() => {
                                Some(register.ordinal())
                            }
                            _ => None,
                        }
                    });
                self.discard(moved.collect());
            }
            (Opcode::DiscardRefs, [Operand::Registers(list)]) => {
                let refs = instruction
                    .registers(*list)
                    .iter()
                    .map(|register| register.bits() & REF_MASK);
                self.discard(refs.collect());
            }
            (
                Opcode::Call,
                [
                    Operand::Function(callee),
                    Operand::Registers(arguments),
                    Operand::Registers(results),
                ],
            ) => {
                self.call(
                    instruction,
                    *callee,
                    &[],
                    *arguments,
                    *results,
                    StepKind::CallVariadic,
                );
            }
            (
                Opcode::CallVariadic,
                [
                    Operand::Function(callee),
                    Operand::Segments(segments),
                    Operand::Registers(arguments),
                    Operand::Registers(results),
                ],
            ) => {
                let segments = instruction.segments(*segments);
                self.call(
                    instruction,
                    *callee,
                    segments,
                    *arguments,
                    *results,
                    StepKind::CallVariadic,
                );
            }
            (
                Opcode::CallYieldable,
                [
                    Operand::Function(callee),
                    Operand::Registers(arguments),
                    Operand::Block(target),
                    Operand::Registers(results),
                ],
            ) => {
                let target = self.block(*target);
                self.call(
                    instruction,
                    *callee,
                    &[],
                    *arguments,
                    *results,
                    StepKind::CallVariadicYieldable,
                );
                self.branch(
                    Edge {
                        copies: &[],
                        block: target,
                    },
                    block,
                );
            }
            (
                Opcode::CallVariadicYieldable,
                [
                    Operand::Function(callee),
                    Operand::Segments(segments),
                    Operand::Registers(arguments),
                    Operand::Block(target),
                    Operand::Registers(results),
                ],
            ) => {
                let (segments, target) = (instruction.segments(*segments), self.block(*target));
                self.call(
                    instruction,
                    *callee,
                    segments,
                    *arguments,
                    *results,
                    StepKind::CallVariadicYieldable,
                );
                self.branch(
                    Edge {
                        copies: &[],
                        block: target,
                    },
                    block,
                );
            }
            (op, operands) => self.plain(op, instruction, operands),
        }
    }

    /// Compiles the load of a constant that [`passed_on`] found: the call names the constant itself.
    fn pass_on(&mut self, register: u16, constant: u32) {
        self.passed_on.push((register, constant));
        self.emit(Step {
            a: register,
            ..Step::new(StepKind::ConstRefZero)
        });
    }

    /// Compiles an instruction whose operands fit a step as they are.
    fn plain(&mut self, op: Opcode, instruction: &Instruction<'a>, operands: &[Operand]) {
        let mut step = Step::new(StepKind::from(op));
        let mut position = 0;
        let mut register = |step: &mut Step, bits: u16| {
            step.set_register(position, bits);
            position += 1;
        };
        let mut type_index = None;
        for operand in operands {
            match *operand {
                Operand::I32(operand) => register(&mut step, operand.ordinal()),
                Operand::I64(operand) => register(&mut step, operand.ordinal()),
                Operand::Ref(operand) => {
                    register(&mut step, ref_bits(operand.ordinal(), operand.is_move()))
                }
                Operand::ImmI32(value) => step.y = value.cast_unsigned(),
                Operand::ImmF32(bits) => step.y = bits,
                Operand::ImmI64(value) => (step.x, step.y) = halves(value.cast_unsigned()),
                Operand::ImmF64(bits) => (step.x, step.y) = halves(bits),
                // A fixed ref global has its ordinal in `y` and its type in `x`.
                Operand::Type(index)
                    if op == Opcode::GlobalLoadRef || op == Opcode::GlobalStoreRef =>
                {
                    step.x = index
                }
                Operand::Type(index) => {
                    step.y = index;
                    type_index = Some(index);
                }
                Operand::Global(index) | Operand::GlobalRef(index) | Operand::Rodata(index) => {
                    step.y = index
                }
                Operand::Function(
                    FunctionRef::Import(ordinal) | FunctionRef::Internal(ordinal),
                ) => step.y = ordinal,
                Operand::Registers(list) => {
                    // The type of a switch of refs stands before its list: all other fields are taken.
                    if let Some(index) = type_index {
                        self.registers
                            .extend([(index & 0xFFFF) as u16, (index >> 16) as u16]);
                    }
                    let start = self.registers.len();
                    let bits = instruction
                        .registers(list)
                        .iter()
                        .map(|register| register.bits() & !REF_BIT);
                    self.registers.extend(bits);
                    (step.x, step.y) = (index32(start), index32(self.registers.len() - start));
                }
                Operand::Block(_)
                | Operand::Text(_)
                | Operand::Segments(_)
                | Operand::Remap(_)
                | Operand::Cases(_) => {
                    unreachable!("`{op}` with such an operand is compiled by `instruction`")
                }
            }
        }
        self.emit(step);
    }

    /// Returns the step that compares and branches in one, when `branch` branches on what `compare` sets.
    fn fused_compare(&self, compare: &Instruction<'a>, branch: &Instruction<'a>) -> Option<Step> {
        if self.fusion == Fusion::Plain {
            return None;
        }
        let kind = match compare.op() {
            Opcode::CmpEqI32 => StepKind::BrEqI32,
            Opcode::CmpNeI32 => StepKind::BrNeI32,
            Opcode::CmpLtI32S => StepKind::BrLtI32S,
            Opcode::CmpLtI32U => StepKind::BrLtI32U,
            Opcode::CmpEqI64 => StepKind::BrEqI64,
            Opcode::CmpNeI64 => StepKind::BrNeI64,
            Opcode::CmpLtI64S => StepKind::BrLtI64S,
            Opcode::CmpLtI64U => StepKind::BrLtI64U,
            _ => return None,
        };
        let (a, b, c) = match *compare.operands() {
            [Operand::I32(a), Operand::I32(b), Operand::I32(c)] => {
                (a.ordinal(), b.ordinal(), c.ordinal())
            }
            [Operand::I64(a), Operand::I64(b), Operand::I32(c)] => {
                (a.ordinal(), b.ordinal(), c.ordinal())
            }
            _ => return None,
        };
        match branch.operands().first() {
            Some(Operand::I32(condition))
                if branch.op() == Opcode::CondBr && condition.ordinal() == c =>
            {
                Some(Step {
                    a,
                    b,
                    c,
                    ..Step::new(kind)
                })
            }
            _ => None,
        }
    }

    /// Compiles a `cond_br` whose test is `test`, a step that jumps when the condition holds.
    fn conditional(&mut self, test: Step, branch: &Instruction<'a>, block: usize) {
        let [then_edge, else_edge] = self.edges(branch);
        let negated = Step {
            kind: test.kind.negated().unwrap_or(test.kind),
            ..test
        };
        let falls_into_then = then_edge.block as usize == block + 1;
        if else_edge.copies.is_empty() && (falls_into_then || !then_edge.copies.is_empty()) {
            self.jump(negated, else_edge.block);
            self.branch(then_edge, block);
        } else if then_edge.copies.is_empty() {
            self.jump(test, then_edge.block);
            self.branch(else_edge, block);
        } else {
            let at = self.steps.len();
            self.emit(test);
            self.copies(else_edge.copies);
            self.jump(Step::new(StepKind::Br), else_edge.block);
            self.steps[at].y = index32(self.steps.len());
            self.branch(then_edge, block);
        }
    }

    fn branch_table(&mut self, index: u16, default: Edge<'a>, cases: &[Edge<'a>], block: usize) {
        let at = self.steps.len();
        let start = self.targets.len();
        self.targets
            .extend(cases.iter().map(|case| (at, Target::Block(case.block))));
        let (x, y) = (index32(start), index32(cases.len()));
        self.emit(Step {
            a: index,
            x,
            y,
            ..Step::new(StepKind::BrTable)
        });
        debug_assert_eq!(self.steps.len(), at + 1);
        // The default comes right after the table, then the cases that copy.
        if cases.iter().all(|case| case.copies.is_empty()) {
            return self.branch(default, block);
        }
        self.copies(default.copies);
        self.jump(Step::new(StepKind::Br), default.block);
        for (position, case) in cases
            .iter()
            .enumerate()
            .filter(|(_, case)| !case.copies.is_empty())
        {
            self.targets[start + position].1 = Target::Step(index32(self.steps.len()));
            self.copies(case.copies);
            self.jump(Step::new(StepKind::Br), case.block);
        }
    }

    /// Emits the copies of an edge and the way on to its block.
    ///
    /// The way is nothing when the block comes next. When the block is the head of a loop that only compares and
    /// branches, it is a copy of that branch: the loop then takes one jump less each time around.
    fn branch(&mut self, edge: Edge<'a>, block: usize) {
        self.copies(edge.copies);
        let target = edge.block as usize;
        if self.fusion == Fusion::Fused {
            if target == block + 1 {
                return;
            }
            if target <= block
                && let Some((test, then_block, else_block)) = self.loop_head(target)
            {
                // The copy's own jumps are plain, so that heads which lead to each other are not copied forever.
                self.jump(test, then_block);
                if else_block as usize != block + 1 {
                    self.jump(Step::new(StepKind::Br), else_block);
                }
                return;
            }
        }
        self.jump(Step::new(StepKind::Br), edge.block);
    }

    /// Returns the test and the two ways on of a block that holds nothing else, when they copy nothing.
    fn loop_head(&self, block: usize) -> Option<(Step, u32, u32)> {
        let mut instructions = self.function.instructions(&self.function.blocks()[block]);
        let (compare, branch) = (instructions.next()?, instructions.next()?);
        let test = self.fused_compare(&compare, &branch)?;
        let [then_edge, else_edge] = self.edges(&branch);
        let plain = then_edge.copies.is_empty() && else_edge.copies.is_empty();
        plain.then_some((test, then_edge.block, else_edge.block))
    }

    /// Returns the two ways on of a `cond_br`.
    fn edges(&self, branch: &Instruction<'a>) -> [Edge<'a>; 2] {
        let [_, then_block, then_remap, else_block, else_remap] = *branch.operands() else {
            unreachable!("`cond_br` has five operands");
        };
        [
            self.edge(branch, then_block, then_remap),
            self.edge(branch, else_block, else_remap),
        ]
    }

    fn jump(&mut self, step: Step, block: u32) {
        self.jumps.push(self.steps.len());
        self.emit(Step { y: block, ..step });
    }

    /// Emits copies in order; the two halves of a pair become one copy.
    fn copies(&mut self, pairs: &[RemapPair]) {
        let mut pairs = pairs.iter().peekable();
        while let Some(pair) = pairs.next() {
            let (source, target) = (pair.source.bits(), pair.target.bits());
            let step = match pair.source.register() {
                Register::Ref(_) => Step {
                    a: source & !REF_BIT,
                    b: target & REF_MASK,
                    ..Step::new(StepKind::AssignRef)
                },
                Register::I32(_) => {
                    let is_high_half = |next: &&&RemapPair| {
                        source.is_multiple_of(2)
                            && target.is_multiple_of(2)
                            && next.source.bits() == source + 1
                            && next.target.bits() == target + 1
                    };
                    let kind = match pairs.peek().filter(is_high_half) {
                        Some(_) => {
                            pairs.next();
                            StepKind::CopyI64
                        }
                        None => StepKind::CopyI32,
                    };
                    Step {
                        a: source,
                        b: target,
                        ..Step::new(kind)
                    }
                }
            };
            self.emit(step);
        }
    }

    fn discard(&mut self, refs: Vec<u16>) {
        let (x, y) = (index32(self.registers.len()), index32(refs.len()));
        self.registers.extend(refs);
        self.emit(Step {
            x,
            y,
            ..Step::new(StepKind::DiscardRefs)
        });
    }

    fn call(
        &mut self,
        instruction: &Instruction<'a>,
        callee: FunctionRef,
        segments: &[u16],
        arguments: PoolRange,
        results: PoolRange,
        import_kind: StepKind,
    ) {
        let (arguments, results) = (
            instruction.registers(arguments),
            instruction.registers(results),
        );
        match callee {
            FunctionRef::Internal(function) => {
                let convention = self.module.functions()[function as usize].convention();
                let targets = argument_registers(convention);
                let atoms = argument_atoms(convention);
                let sources = values(arguments, &atoms);
                let call = InternalCall {
                    function,
                    arguments: sources
                        .zip(targets)
                        .map(|(source, target)| copy(source, target))
                        .collect(),
                    results: values(results, convention.results()).collect(),
                };
                let y = index32(self.calls.len());
                self.calls.push(call);
                self.emit(Step {
                    y,
                    ..Step::new(StepKind::Call)
                });
            }
            FunctionRef::Import(import) => {
                let convention = &self.module.import_conventions()[import as usize];
                if let ([argument], [result]) = (arguments, results)
                    && import_kind == StepKind::CallVariadic
                    && is_ref_to_ref(convention)
                    && self.passed_on.is_empty()
                {
                    self.emit(Step {
                        a: argument.bits() & !REF_BIT,
                        b: result.bits() & REF_MASK,
                        y: import,
                        ..Step::new(StepKind::CallRef)
                    });
                    return;
                }
                let y = index32(self.import_calls.len());
                let known = |register| self.constants.at(register, instruction.offset());
                let call = import_call(
                    import,
                    convention,
                    segments,
                    arguments,
                    results,
                    known,
                    &mut self.passed_on,
                    &mut self.module_calls.argument_words,
                );
                let mut step = Step {
                    y,
                    ..Step::new(import_kind)
                };
                if import_kind == StepKind::CallVariadic {
                    let blocks = &self.module_calls.argument_words;
                    if let Some((object, result)) = varies_by_one_object(&call, convention, blocks)
                    {
                        step.kind = StepKind::CallPure;
                        step.x = number(&mut self.module_calls.answer_count);
                        (step.a, step.b) = (object, result);
                    } else if !segments.is_empty() && results.is_empty() {
                        step.kind = StepKind::CallSite;
                        step.x = number(&mut self.module_calls.site_count);
                    }
                }
                self.import_calls.push(call);
                self.emit(step);
            }
        }
    }

    fn edge(&self, instruction: &Instruction<'a>, target: Operand, remap: Operand) -> Edge<'a> {
        match (target, remap) {
            (Operand::Block(offset), Operand::Remap(range)) => Edge {
                copies: instruction.remap(range),
                block: self.block(offset),
            },
            _ => unreachable!("a branch has blocks and remaps in turn"),
        }
    }

    fn block(&self, offset: u32) -> u32 {
        index32(
            self.function
                .block_index(offset)
                .expect("the verifier checked that the block exists"),
        )
    }
}

const REF_BIT: u16 = 0x8000;

/// Returns the target of the jump at step `at`.
fn target(at: usize, step: u32) -> u32 {
    if step as usize <= at {
        step | BACKWARDS
    } else {
        step
    }
}

fn ref_bits(ordinal: u16, is_move: bool) -> u16 {
    if is_move { ordinal | MOVE_BIT } else { ordinal }
}

fn halves(value: u64) -> (u32, u32) {
    ((value & 0xFFFF_FFFF) as u32, (value >> 32) as u32)
}

/// Narrows a position. Everything counted here is bounded by the bytes of a body, which is shorter than 2^31, times a
/// small constant; a file that large does not fit the verifier's limits.
fn index32(position: usize) -> u32 {
    u32::try_from(position).expect("positions are bounded by the length of a function body")
}

/// Returns the atoms of the arguments of a function of the module, which has no spans.
fn argument_atoms(convention: &CallingConvention) -> Vec<Atom> {
    let atom = |item: &Item| match item {
        Item::Atom(atom) => Some(*atom),
        Item::Span(_) => None,
    };
    convention.arguments().iter().filter_map(atom).collect()
}

/// Returns where a function finds its arguments: from register 0 of each bank in order, pairs at even registers.
fn argument_registers(convention: &CallingConvention) -> Vec<Value> {
    let (mut next_word, mut next_ref) = (0u16, 0u16);
    argument_atoms(convention)
        .into_iter()
        .map(|atom| match atom {
            Atom::I32 | Atom::F32 => {
                next_word += 1;
                Value::Word(next_word - 1)
            }
            Atom::I64 | Atom::F64 => {
                next_word = next_word.next_multiple_of(2) + 2;
                Value::Pair(next_word - 2)
            }
            Atom::Ref => {
                next_ref += 1;
                Value::Ref(next_ref - 1)
            }
        })
        .collect()
}

/// Takes the MOVE bit from all but the last mention of a ref: it may be returned twice.
fn move_last(values: &mut [Value]) {
    let mut seen = HashSet::new();
    for value in values.iter_mut().rev() {
        if let Value::Ref(bits) = value
            && !seen.insert(*bits & REF_MASK)
        {
            *bits &= REF_MASK;
        }
    }
}

/// Pairs registers with the atoms whose values they hold.
fn values<'r>(registers: &'r [AnyReg], atoms: &'r [Atom]) -> impl Iterator<Item = Value> + use<'r> {
    registers
        .iter()
        .zip(atoms)
        .map(|(register, atom)| value(*register, *atom))
}

fn value(register: AnyReg, atom: Atom) -> Value {
    match atom {
        Atom::I32 | Atom::F32 => Value::Word(register.bits()),
        Atom::I64 | Atom::F64 => Value::Pair(register.bits()),
        Atom::Ref => Value::Ref(register.bits() & !REF_BIT),
    }
}

/// Returns the copy from one value's place to another's of the same type.
pub(crate) fn copy(source: Value, target: Value) -> Copy {
    match (source, target) {
        (Value::Word(from), Value::Word(to)) => Copy::Word { from, to },
        (Value::Pair(from), Value::Pair(to)) => Copy::Pair { from, to },
        (Value::Ref(from), Value::Ref(to)) => Copy::Ref { from, to },
        _ => unreachable!("both ends of a copy follow one calling convention"),
    }
}
