//! Programs: verified functions in the form the interpreter runs.
//!
//! A step is 16 bytes: what to do and up to six registers or fewer registers and an immediate. Branch targets are step
//! indices, copies on the way to a block are steps of their own, calls have a prepared plan. [`crate::compile`] makes
//! programs; [`crate::interpreter`] runs them.

use core::ops::Range;

use crate::Opcode;
use crate::interpreter::Copy;
use crate::isa::table::for_each_op;

macro_rules! define_step_kinds {
    ($($page:ident $byte:literal $name:ident $mnemonic:literal [$($kind:ident)*] $summary:literal;)*) => {
        /// What a step does: an opcode of the table, or one of the forms the compiler makes of several.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u16)]
        pub(crate) enum StepKind {
            $(#[doc = $summary] $name,)*
            /// Copies register a to b.
            CopyI32,
            /// Copies the register pair a to b.
            CopyI64,
            /// Calls the import `y`, whose convention is `0r_r`, with ref a, which may be moved, and sets ref b.
            CallRef,
            /// Calls as plan `y` says, which gives no results, through site `x`.
            CallSite,
            /// Calls as plan `y` says, unless answer `x` is known for the object in ref a, and sets the register pair b.
            CallPure,
            /// Jumps to `y` when register a is zero.
            BrZero,
            /// Sets register c to a = b and jumps to `y` when it is.
            BrEqI32,
            /// Sets register c to a = b and jumps to `y` when it is not.
            BrNotEqI32,
            /// Sets register c to a != b and jumps to `y` when it is.
            BrNeI32,
            /// Sets register c to a != b and jumps to `y` when it is not.
            BrNotNeI32,
            /// Sets register c to a < b, signed, and jumps to `y` when it is.
            BrLtI32S,
            /// Sets register c to a < b, unsigned, and jumps to `y` when it is.
            BrLtI32U,
            /// Sets register c to a = b, for pairs, and jumps to `y` when it is.
            BrEqI64,
            /// Sets register c to a = b, for pairs, and jumps to `y` when it is not.
            BrNotEqI64,
            /// Sets register c to a != b, for pairs, and jumps to `y` when it is.
            BrNeI64,
            /// Sets register c to a != b, for pairs, and jumps to `y` when it is not.
            BrNotNeI64,
            /// Sets register c to a < b, signed, for pairs, and jumps to `y` when it is.
            BrLtI64S,
            /// Sets register c to a < b, unsigned, for pairs, and jumps to `y` when it is.
            BrLtI64U,
            /// Sets register c to a < b, signed, and jumps to `y` when it is not.
            BrNotLtI32S,
            /// Sets register c to a < b, unsigned, and jumps to `y` when it is not.
            BrNotLtI32U,
            /// Sets register c to a < b, signed, for pairs, and jumps to `y` when it is not.
            BrNotLtI64S,
            /// Sets register c to a < b, unsigned, for pairs, and jumps to `y` when it is not.
            BrNotLtI64U,
        }

        #[cfg(feature = "jit")]
        impl StepKind {
            /// Returns the opcode whose instruction the step does alone, if it is that of one.
            pub(crate) const fn opcode(self) -> Option<Opcode> {
                match self {
                    $(Self::$name => Some(Opcode::$name),)*
                    _ => None,
                }
            }
        }

        impl From<Opcode> for StepKind {
            fn from(op: Opcode) -> Self {
                match op {
                    $(Opcode::$name => Self::$name,)*
                }
            }
        }
    };
}
for_each_op!(define_step_kinds);

/// One step of a program.
///
/// Register operands fill a, b, c, then the halves of `x` and the low half of `y`, in encoding order; a 32-bit
/// immediate or ordinal is `y`, a 64-bit immediate is `x` (low) and `y`. A ref operand is its ordinal with the MOVE
/// bit. A jump's target is `y`, with [`BACKWARDS`]; `x` of one that goes backwards is the index of its loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) a: u16,
    pub(crate) b: u16,
    pub(crate) c: u16,
    pub(crate) x: u32,
    pub(crate) y: u32,
}

impl Step {
    /// Returns a step without operands.
    pub(crate) const fn new(kind: StepKind) -> Self {
        Self {
            kind,
            a: 0,
            b: 0,
            c: 0,
            x: 0,
            y: 0,
        }
    }

    /// Returns the fourth register.
    #[inline]
    pub(crate) const fn d(&self) -> u16 {
        (self.x & 0xFFFF) as u16
    }

    /// Returns the fifth register.
    #[inline]
    pub(crate) const fn e(&self) -> u16 {
        (self.x >> 16) as u16
    }

    /// Returns the sixth register.
    #[inline]
    pub(crate) const fn f(&self) -> u16 {
        (self.y & 0xFFFF) as u16
    }

    /// Returns the 64-bit immediate.
    #[inline]
    pub(crate) const fn immediate64(&self) -> u64 {
        self.x as u64 | (self.y as u64) << 32
    }

    /// Sets the register at `position` of the encoding order, 0 to 5.
    pub(crate) fn set_register(&mut self, position: usize, register: u16) {
        let wide = u32::from(register);
        match position {
            0 => self.a = register,
            1 => self.b = register,
            2 => self.c = register,
            3 => self.x = self.x & 0xFFFF_0000 | wide,
            4 => self.x = self.x & 0xFFFF | wide << 16,
            _ => self.y = wide,
        }
    }
}

impl StepKind {
    /// Returns the step that jumps exactly when this one does not; `None` for one that is no conditional jump.
    pub(crate) const fn negated(self) -> Option<Self> {
        Some(match self {
            Self::CondBr => Self::BrZero,
            Self::BrEqI32 => Self::BrNotEqI32,
            Self::BrNeI32 => Self::BrNotNeI32,
            Self::BrLtI32S => Self::BrNotLtI32S,
            Self::BrLtI32U => Self::BrNotLtI32U,
            Self::BrEqI64 => Self::BrNotEqI64,
            Self::BrNeI64 => Self::BrNotNeI64,
            Self::BrLtI64S => Self::BrNotLtI64S,
            Self::BrLtI64U => Self::BrNotLtI64U,
            _ => return None,
        })
    }
}

#[cfg(feature = "jit")]
impl StepKind {
    /// Returns whether the step jumps to `y`, always or on a condition. Tables of branches are none of these.
    pub(crate) const fn is_jump(self) -> bool {
        match self {
            Self::Br | Self::Yield | Self::Break | Self::CondBreak | Self::BrZero => true,
            _ => self.negated().is_some() || self.is_negated(),
        }
    }

    /// Returns whether the step is what [`StepKind::negated`] gives for another.
    const fn is_negated(self) -> bool {
        matches!(
            self,
            Self::BrNotEqI32
                | Self::BrNotNeI32
                | Self::BrNotLtI32S
                | Self::BrNotLtI32U
                | Self::BrNotEqI64
                | Self::BrNotNeI64
                | Self::BrNotLtI64S
                | Self::BrNotLtI64U
        )
    }
}

/// Flag of a jump's target: the jump goes backwards.
pub(crate) const BACKWARDS: u32 = 1 << 31;

/// Flag of an entry of [`Function::offsets`]: the step belongs to the instruction of the step before it.
pub(crate) const CONTINUES: u32 = 1 << 31;

/// A function ready to run.
#[derive(Debug)]
pub(crate) struct Function {
    /// Its ordinal in the module.
    pub(crate) ordinal: u32,
    /// Count of registers of the 32-bit bank.
    pub(crate) register_count: u16,
    /// Count of ref registers.
    pub(crate) ref_count: u16,
    /// What it does; the last step never falls through.
    pub(crate) steps: Box<[Step]>,
    /// Byte offset of the instruction of each step, with [`CONTINUES`].
    pub(crate) offsets: Box<[u32]>,
    /// Register lists of switches, branch tables and discards, each found by a start (`x`) and a count (`y`).
    pub(crate) registers: Box<[u16]>,
    /// Targets of branch tables, each found by a start (`x`) and a count (`y`), with [`BACKWARDS`].
    pub(crate) targets: Box<[u32]>,
    /// Calls of functions of the module, found by `y`.
    pub(crate) calls: Box<[InternalCall]>,
    /// Calls of imports, found by `y`.
    pub(crate) import_calls: Box<[ImportCall]>,
    /// Values of returns, each found by a start (`x`) and a count (`y`).
    pub(crate) returns: Box<[Value]>,
    /// Messages of failures, found by `y`.
    pub(crate) messages: Box<[Box<str>]>,
    /// Loops, found by `x`.
    #[cfg(feature = "jit")]
    pub(crate) loops: Box<[crate::loops::Loop]>,
    /// Where the arguments go when the function is called from outside the module.
    pub(crate) arguments: Box<[Value]>,
}

/// A value in a register, register pair or ref register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// 32 bits in a register.
    Word(u16),
    /// 64 bits in a register pair, given by its low register.
    Pair(u16),
    /// A ref; may have the MOVE bit.
    Ref(u16),
}

/// A call of a function of the module.
#[derive(Debug)]
pub(crate) struct InternalCall {
    /// Ordinal of the callee.
    pub(crate) function: u32,
    /// Arguments, from the caller's registers to the callee's.
    pub(crate) arguments: Box<[Copy]>,
    /// Registers of the caller that take the results.
    pub(crate) results: Box<[Value]>,
}

/// A call of an import: how its argument block is filled and its results are taken.
#[derive(Debug)]
pub(crate) struct ImportCall {
    /// Ordinal of the import.
    pub(crate) import: u32,
    /// Where its block lies in the words of the program.
    pub(crate) block: Range<usize>,
    /// Registers that go into the block, with the word they go to.
    pub(crate) words: Box<[(u16, u32)]>,
    /// Register pairs that go into the block, with the first word they go to.
    pub(crate) pairs: Box<[(u16, u32)]>,
    /// Ref registers that the call consumes.
    pub(crate) consumed: Box<[u16]>,
    /// Registers that take the words of the results, in order; a pair is two.
    pub(crate) result_words: Box<[u16]>,
    /// Registers that take the refs of the results, in order.
    pub(crate) result_refs: Box<[u16]>,
    /// Whether the call neither consumes nor gives anything.
    pub(crate) is_plain: bool,
}

/// The functions of a module and the argument blocks of their calls to imports.
#[derive(Debug)]
pub(crate) struct Program {
    /// The functions, by ordinal.
    pub(crate) functions: Box<[Function]>,
    /// The blocks, one for each place that calls an import, with all that is known when the program is made: counts of
    /// spans, the caller's ref registers, constants. Each stack has a copy, so that a call only adds what varies.
    pub(crate) argument_words: Box<[u32]>,
    /// How many answers of pure imports can be remembered, as the steps that ask for them number them.
    pub(crate) answer_count: u32,
    /// How many places call an import with spans and without results, as their steps number them.
    pub(crate) site_count: u32,
}
