//! The interpreter: runs the steps of a program.
//!
//! Takes programs only, which come from verified functions only; its own checks are those of the language it is
//! written in. Holds the loop and what each step does; scalar operations with rules of their own are in `scalar`, calls
//! in `call`, calls from outside the module in `entry`, frames in `stack`.
//!
//! The rule to know: an operation that fails leaves the loop with a trap at once; the frames are then unwound and their
//! refs released, whatever the program does or does not clean up.

mod call;
mod entry;
mod global;
mod list;
mod scalar;
mod stack;

use core::cmp::Ordering;
use core::ops::Range;
use std::sync::Arc;

use vm::{Buffer, Invocation, Ref, Result, StatusCode, Trap};

#[cfg(feature = "jit")]
use crate::loops::Loop;
use crate::module::BytecodeInstance;
use crate::program::{BACKWARDS, CONTINUES, Function, Step, StepKind};
#[cfg(feature = "jit")]
use stack::Registers;
use stack::{Site, release_ref, set_ref, take_or_clone};

pub(crate) use entry::Caller;
use list::{list, set_list};
pub(crate) use stack::{Copy, MOVE_BIT, REF_MASK, Stack, Window};

/// How the loop runs.
pub(crate) trait Mode {
    /// Whether every instruction is counted and traced; the functions then have a step for each.
    const METERED: bool;
}

/// Runs without counting.
pub(crate) struct Fast;

/// Counts every instruction against the fuel and tells the tracer of it.
pub(crate) struct Metered;

impl Mode for Fast {
    const METERED: bool = false;
}

impl Mode for Metered {
    const METERED: bool = true;
}

/// A program at work: its functions, its module's state and the invocation it belongs to.
pub(crate) struct Interpreter<'a> {
    pub(crate) functions: &'a [Function],
    pub(crate) instance: &'a BytecodeInstance,
    pub(crate) invocation: &'a Invocation<'a>,
}

/// Why the loop over one frame ended.
enum Exit {
    /// The frame calls the function of the module that its call with this index names.
    Call(u32),
    /// The frame returns these of its function's returns.
    Return(Range<usize>),
}

impl Interpreter<'_> {
    /// Runs the steps of `function` from `next` until it calls a function of the module, returns or fails; `next` is
    /// then the step after that.
    #[expect(
        clippy::cast_precision_loss,
        reason = "conversions to floats round, as the instructions say"
    )]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "narrow stores keep the low bits, as the instructions say"
    )]
    fn run_frame<M: Mode>(
        &self,
        function: &Function,
        next: &mut usize,
        window: &mut Window<'_>,
    ) -> Result<Exit> {
        let Window {
            registers: mut r,
            refs,
            words,
            sites,
            results,
        } = window.reborrow();
        let steps = &function.steps[..];
        let mut rest = steps[*next..].iter();

        /// Unwraps the result of an operation, or leaves the loop.
        macro_rules! check {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(trap) => {
                        *next = steps.len() - rest.len();
                        return Err(trap);
                    }
                }
            };
        }
        /// Goes on at a step. A program that does not end is stopped at its jumps backwards.
        macro_rules! jump_to {
            ($target:expr) => {{
                let target: u32 = $target;
                if target & BACKWARDS != 0 {
                    check!(self.invocation.check_interrupt());
                }
                rest = steps[(target & !BACKWARDS) as usize..].iter();
            }};
        }
        /// Goes on where a step jumps to, or, when that is the head of a loop with machine code, where the code ends.
        macro_rules! jump {
            ($step:ident) => {{
                let target = $step.y;
                if target & BACKWARDS != 0 {
                    check!(self.invocation.check_interrupt());
                    #[cfg(feature = "jit")]
                    if !M::METERED
                        && let Some(hot_after) = self.instance.hot_after()
                        && let turned = &function.loops[$step.x as usize]
                        && turned.is_watched()
                    {
                        let next = self.turn(turned, function, hot_after, &mut r, refs);
                        rest = steps[next..].iter();
                        continue;
                    }
                }
                rest = steps[(target & !BACKWARDS) as usize..].iter();
            }};
        }
        /// Sets a register from one or two others, read and written as one type.
        macro_rules! operate {
            ($read:ident $set:ident $step:ident, |$a:ident| $value:expr) => {{
                let $a = r.$read($step.a);
                r.$set($step.b, $value);
            }};
            ($read:ident $set:ident $step:ident, |$a:ident, $b:ident| $value:expr) => {{
                let ($a, $b) = (r.$read($step.a), r.$read($step.b));
                r.$set($step.c, $value);
            }};
        }
        macro_rules! i32_op { ($($rest:tt)*) => { operate!(i32 set_i32 $($rest)*) } }
        macro_rules! u32_op { ($($rest:tt)*) => { operate!(word set_word $($rest)*) } }
        macro_rules! i64_op { ($($rest:tt)*) => { operate!(i64 set_i64 $($rest)*) } }
        macro_rules! u64_op { ($($rest:tt)*) => { operate!(pair set_pair $($rest)*) } }
        macro_rules! f32_op { ($($rest:tt)*) => { operate!(f32 set_f32 $($rest)*) } }
        macro_rules! f64_op { ($($rest:tt)*) => { operate!(f64 set_f64 $($rest)*) } }
        /// Sets a register to 1 or 0 by a comparison of two values.
        macro_rules! compare {
            ($step:ident, $read:ident, |$a:ident, $b:ident| $value:expr) => {{
                let ($a, $b) = (r.$read($step.a), r.$read($step.b));
                r.set_word($step.c, u32::from($value));
            }};
        }
        /// Compares as `compare!` and jumps when the outcome is the one given.
        macro_rules! compare_and_branch {
            ($step:ident, $read:ident, $outcome:literal, |$a:ident, $b:ident| $value:expr) => {{
                let ($a, $b) = (r.$read($step.a), r.$read($step.b));
                let holds = $value;
                r.set_word($step.c, u32::from(holds));
                if holds == $outcome {
                    jump!($step);
                }
            }};
        }
        /// Borrows the buffer a ref operand names.
        macro_rules! buffer {
            ($operand:expr) => {
                check!(refs[index($operand)].as_buffer())
            };
        }
        macro_rules! load {
            ($step:ident, $word:ty, $set:ident, |$value:ident| $converted:expr) => {{
                let $value = check!(buffer!($step.a).load::<$word>(r.pair($step.b)));
                r.$set($step.c, $converted);
            }};
        }
        macro_rules! store {
            ($step:ident, $value:expr) => {
                check!(buffer!($step.a).store(r.pair($step.b), $value))
            };
        }
        macro_rules! fill {
            ($step:ident, $value:expr) => {
                check!(buffer!($step.a).fill(r.pair($step.b), r.pair($step.c), $value))
            };
        }

        loop {
            let Some(step) = rest.next() else {
                unreachable!("the last step of a function returns, fails or jumps");
            };
            if M::METERED {
                check!(self.meter(function, steps.len() - rest.len() - 1));
            }
            match step.kind {
                // Globals.
                StepKind::GlobalLoadI32 | StepKind::GlobalLoadF32 => {
                    r.set_word(
                        step.a,
                        u32::from_le_bytes(check!(self.instance.load_global(step.y))),
                    );
                }
                StepKind::GlobalStoreI32 | StepKind::GlobalStoreF32 => {
                    check!(
                        self.instance
                            .store_global(step.y, r.word(step.a).to_le_bytes())
                    );
                }
                StepKind::GlobalLoadIndirectI32 | StepKind::GlobalLoadIndirectF32 => {
                    r.set_word(
                        step.b,
                        u32::from_le_bytes(check!(self.instance.load_global(r.word(step.a)))),
                    );
                }
                StepKind::GlobalStoreIndirectI32 | StepKind::GlobalStoreIndirectF32 => {
                    check!(
                        self.instance
                            .store_global(r.word(step.a), r.word(step.b).to_le_bytes())
                    );
                }
                StepKind::GlobalLoadI64 | StepKind::GlobalLoadF64 => {
                    r.set_pair(
                        step.a,
                        u64::from_le_bytes(check!(self.instance.load_global(step.y))),
                    );
                }
                StepKind::GlobalStoreI64 | StepKind::GlobalStoreF64 => {
                    check!(
                        self.instance
                            .store_global(step.y, r.pair(step.a).to_le_bytes())
                    );
                }
                StepKind::GlobalLoadIndirectI64 | StepKind::GlobalLoadIndirectF64 => {
                    r.set_pair(
                        step.b,
                        u64::from_le_bytes(check!(self.instance.load_global(r.word(step.a)))),
                    );
                }
                StepKind::GlobalStoreIndirectI64 | StepKind::GlobalStoreIndirectF64 => {
                    check!(
                        self.instance
                            .store_global(r.word(step.a), r.pair(step.b).to_le_bytes())
                    );
                }
                StepKind::GlobalLoadRef => {
                    check!(self.load_global_ref(step.y, step.x, step.a, refs));
                }
                StepKind::GlobalLoadIndirectRef => {
                    check!(self.load_global_ref(r.word(step.a), step.y, step.b, refs));
                }
                StepKind::GlobalStoreRef => {
                    let value = take_or_clone(refs, step.a);
                    check!(self.store_global_ref(step.y, step.x, value));
                }
                StepKind::GlobalStoreIndirectRef => {
                    let value = take_or_clone(refs, step.b);
                    check!(self.store_global_ref(r.word(step.a), step.y, value));
                }

                // Constants.
                StepKind::ConstI32Zero | StepKind::ConstF32Zero => r.set_word(step.a, 0),
                StepKind::ConstI32 | StepKind::ConstF32 => r.set_word(step.a, step.y),
                StepKind::ConstI64Zero | StepKind::ConstF64Zero => r.set_pair(step.a, 0),
                StepKind::ConstI64 | StepKind::ConstF64 => r.set_pair(step.a, step.immediate64()),
                StepKind::ConstRefZero => release_ref(refs, step.a),
                StepKind::ConstRefRodata => {
                    let constant = &self.instance.rodata()[step.y as usize];
                    set_ref(refs, step.a, constant.clone());
                }

                // Lists.
                StepKind::ListAlloc => {
                    let list = check!(self.new_list(step.y, r.word(step.a)));
                    set_ref(refs, step.b, list);
                }
                StepKind::ListReserve => {
                    check!(list(refs, step.a).and_then(|list| list.reserve(r.word(step.b))))
                }
                StepKind::ListResize => {
                    check!(list(refs, step.a).and_then(|list| list.resize(r.word(step.b))))
                }
                StepKind::ListSize => {
                    let length = check!(list(refs, step.a)).len();
                    // Lists are shorter than 2^32.
                    r.set_word(step.b, length as u32);
                }
                StepKind::ListGetI32 => {
                    let value = check!(
                        list(refs, step.a).and_then(|list| list.get_integer(r.word(step.b)))
                    );
                    r.set_i32(step.c, value as i32);
                }
                StepKind::ListGetI64 => {
                    let value = check!(
                        list(refs, step.a).and_then(|list| list.get_integer(r.word(step.b)))
                    );
                    r.set_i64(step.c, value);
                }
                StepKind::ListGetF32 => {
                    let value =
                        check!(list(refs, step.a).and_then(|list| list.get_float(r.word(step.b))));
                    r.set_f32(step.c, value as f32);
                }
                StepKind::ListGetF64 => {
                    let value =
                        check!(list(refs, step.a).and_then(|list| list.get_float(r.word(step.b))));
                    r.set_f64(step.c, value);
                }
                StepKind::ListSetI32 => {
                    check!(set_list(refs, step.a, r.word(step.b), r.i32(step.c)))
                }
                StepKind::ListSetI64 => {
                    check!(set_list(refs, step.a, r.word(step.b), r.i64(step.c)))
                }
                StepKind::ListSetF32 => {
                    check!(set_list(refs, step.a, r.word(step.b), r.f32(step.c)))
                }
                StepKind::ListSetF64 => {
                    check!(set_list(refs, step.a, r.word(step.b), r.f64(step.c)))
                }
                StepKind::ListGetRef => {
                    let value = check!(self.list_ref(refs, step.a, r.word(step.b), step.y, step.c));
                    set_ref(refs, step.c, value);
                }
                StepKind::ListSetRef => {
                    // The list may be the value that is moved, so it is found first.
                    let list = Arc::clone(check!(list(refs, step.a)));
                    let value = take_or_clone(refs, step.c);
                    check!(list.set(r.word(step.b), value.into()));
                }

                // Choices.
                StepKind::SelectI32 | StepKind::SelectF32 => {
                    let value = if r.word(step.a) != 0 {
                        r.word(step.b)
                    } else {
                        r.word(step.c)
                    };
                    r.set_word(step.d(), value);
                }
                StepKind::SelectI64 | StepKind::SelectF64 => {
                    let value = if r.word(step.a) != 0 {
                        r.pair(step.b)
                    } else {
                        r.pair(step.c)
                    };
                    r.set_pair(step.d(), value);
                }
                StepKind::SelectRef => {
                    let (chosen, other) = if r.word(step.a) != 0 {
                        (step.b, step.c)
                    } else {
                        (step.c, step.b)
                    };
                    let value = take_or_clone(refs, chosen);
                    check!(self.check_type(&value, step.y));
                    if other & MOVE_BIT != 0 {
                        release_ref(refs, other);
                    }
                    set_ref(refs, step.d(), value);
                }
                StepKind::SwitchI32 | StepKind::SwitchF32 => {
                    let list = &function.registers[range(step)];
                    let choice = list.get(r.word(step.a) as usize).copied().unwrap_or(step.b);
                    r.set_word(step.c, r.word(choice));
                }
                StepKind::SwitchI64 | StepKind::SwitchF64 => {
                    let list = &function.registers[range(step)];
                    let choice = list.get(r.word(step.a) as usize).copied().unwrap_or(step.b);
                    r.set_pair(step.c, r.pair(choice));
                }
                StepKind::SwitchRef => {
                    let range = range(step);
                    let choice = function.registers[range.clone()]
                        .get(r.word(step.a) as usize)
                        .copied();
                    let value = take_or_clone(refs, choice.unwrap_or(step.b));
                    // The type's index stands before the list.
                    let type_words = &function.registers[range.start - 2..range.start];
                    check!(self.check_type(
                        &value,
                        u32::from(type_words[0]) | u32::from(type_words[1]) << 16
                    ));
                    set_ref(refs, step.c, value);
                }

                // Integer arithmetic.
                StepKind::AddI32 => u32_op!(step, |a, b| a.wrapping_add(b)),
                StepKind::SubI32 => u32_op!(step, |a, b| a.wrapping_sub(b)),
                StepKind::MulI32 => u32_op!(step, |a, b| a.wrapping_mul(b)),
                StepKind::DivI32S => i32_op!(step, |a, b| check!(scalar::div_i32_s(a, b))),
                StepKind::DivI32U => u32_op!(step, |a, b| check!(scalar::div_i32_u(a, b))),
                StepKind::RemI32S => i32_op!(step, |a, b| check!(scalar::rem_i32_s(a, b))),
                StepKind::RemI32U => u32_op!(step, |a, b| check!(scalar::rem_i32_u(a, b))),
                StepKind::FmaI32 => {
                    let product = r.word(step.a).wrapping_mul(r.word(step.b));
                    r.set_word(step.d(), product.wrapping_add(r.word(step.c)));
                }
                StepKind::AbsI32 => i32_op!(step, |a| a.wrapping_abs()),
                StepKind::MinI32S => i32_op!(step, |a, b| a.min(b)),
                StepKind::MinI32U => u32_op!(step, |a, b| a.min(b)),
                StepKind::MaxI32S => i32_op!(step, |a, b| a.max(b)),
                StepKind::MaxI32U => u32_op!(step, |a, b| a.max(b)),
                StepKind::NotI32 => u32_op!(step, |a| !a),
                StepKind::AndI32 => u32_op!(step, |a, b| a & b),
                StepKind::OrI32 => u32_op!(step, |a, b| a | b),
                StepKind::XorI32 => u32_op!(step, |a, b| a ^ b),
                StepKind::CtlzI32 => u32_op!(step, |a| a.leading_zeros()),
                StepKind::AddI64 => u64_op!(step, |a, b| a.wrapping_add(b)),
                StepKind::SubI64 => u64_op!(step, |a, b| a.wrapping_sub(b)),
                StepKind::MulI64 => u64_op!(step, |a, b| a.wrapping_mul(b)),
                StepKind::DivI64S => i64_op!(step, |a, b| check!(scalar::div_i64_s(a, b))),
                StepKind::DivI64U => u64_op!(step, |a, b| check!(scalar::div_i64_u(a, b))),
                StepKind::RemI64S => i64_op!(step, |a, b| check!(scalar::rem_i64_s(a, b))),
                StepKind::RemI64U => u64_op!(step, |a, b| check!(scalar::rem_i64_u(a, b))),
                StepKind::FmaI64 => {
                    let product = r.pair(step.a).wrapping_mul(r.pair(step.b));
                    r.set_pair(step.d(), product.wrapping_add(r.pair(step.c)));
                }
                StepKind::AbsI64 => i64_op!(step, |a| a.wrapping_abs()),
                StepKind::MinI64S => i64_op!(step, |a, b| a.min(b)),
                StepKind::MinI64U => u64_op!(step, |a, b| a.min(b)),
                StepKind::MaxI64S => i64_op!(step, |a, b| a.max(b)),
                StepKind::MaxI64U => u64_op!(step, |a, b| a.max(b)),
                StepKind::NotI64 => u64_op!(step, |a| !a),
                StepKind::AndI64 => u64_op!(step, |a, b| a & b),
                StepKind::OrI64 => u64_op!(step, |a, b| a | b),
                StepKind::XorI64 => u64_op!(step, |a, b| a ^ b),
                StepKind::CtlzI64 => u64_op!(step, |a| a.leading_zeros().into()),
                StepKind::ShlI32 => u32_op!(step, |a, b| a.wrapping_shl(b)),
                StepKind::ShrI32U => u32_op!(step, |a, b| a.wrapping_shr(b)),
                StepKind::ShrI32S => r.set_i32(step.c, r.i32(step.a).wrapping_shr(r.word(step.b))),
                StepKind::ShlI64 => r.set_pair(step.c, r.pair(step.a).wrapping_shl(r.word(step.b))),
                StepKind::ShrI64U => {
                    r.set_pair(step.c, r.pair(step.a).wrapping_shr(r.word(step.b)))
                }
                StepKind::ShrI64S => r.set_i64(step.c, r.i64(step.a).wrapping_shr(r.word(step.b))),
                // Conversions between integers.
                StepKind::TruncI32I8 => u32_op!(step, |a| a & 0xFF),
                StepKind::TruncI32I16 => u32_op!(step, |a| a & 0xFFFF),
                StepKind::TruncI64I32 => r.set_word(step.b, (r.pair(step.a) & 0xFFFF_FFFF) as u32),
                StepKind::ExtI8I32S => i32_op!(step, |a| (a << 24) >> 24),
                StepKind::ExtI8I32U => u32_op!(step, |a| a & 0xFF),
                StepKind::ExtI16I32S => i32_op!(step, |a| (a << 16) >> 16),
                StepKind::ExtI16I32U => u32_op!(step, |a| a & 0xFFFF),
                StepKind::ExtI32I64S => r.set_i64(step.b, r.i32(step.a).into()),
                StepKind::ExtI32I64U => r.set_pair(step.b, r.word(step.a).into()),
                // Comparisons.
                StepKind::CmpEqI32 => compare!(step, word, |a, b| a == b),
                StepKind::BrEqI32 => compare_and_branch!(step, word, true, |a, b| a == b),
                StepKind::BrNotEqI32 => compare_and_branch!(step, word, false, |a, b| a == b),
                StepKind::CmpNeI32 => compare!(step, word, |a, b| a != b),
                StepKind::BrNeI32 => compare_and_branch!(step, word, true, |a, b| a != b),
                StepKind::BrNotNeI32 => compare_and_branch!(step, word, false, |a, b| a != b),
                StepKind::CmpLtI32S => compare!(step, i32, |a, b| a < b),
                StepKind::BrLtI32S => compare_and_branch!(step, i32, true, |a, b| a < b),
                StepKind::BrNotLtI32S => compare_and_branch!(step, i32, false, |a, b| a < b),
                StepKind::CmpLtI32U => compare!(step, word, |a, b| a < b),
                StepKind::BrLtI32U => compare_and_branch!(step, word, true, |a, b| a < b),
                StepKind::BrNotLtI32U => compare_and_branch!(step, word, false, |a, b| a < b),
                StepKind::CmpNzI32 => r.set_word(step.b, u32::from(r.word(step.a) != 0)),
                StepKind::CmpEqI64 => compare!(step, pair, |a, b| a == b),
                StepKind::BrEqI64 => compare_and_branch!(step, pair, true, |a, b| a == b),
                StepKind::BrNotEqI64 => compare_and_branch!(step, pair, false, |a, b| a == b),
                StepKind::CmpNeI64 => compare!(step, pair, |a, b| a != b),
                StepKind::BrNeI64 => compare_and_branch!(step, pair, true, |a, b| a != b),
                StepKind::BrNotNeI64 => compare_and_branch!(step, pair, false, |a, b| a != b),
                StepKind::CmpLtI64S => compare!(step, i64, |a, b| a < b),
                StepKind::BrLtI64S => compare_and_branch!(step, i64, true, |a, b| a < b),
                StepKind::BrNotLtI64S => compare_and_branch!(step, i64, false, |a, b| a < b),
                StepKind::CmpLtI64U => compare!(step, pair, |a, b| a < b),
                StepKind::BrLtI64U => compare_and_branch!(step, pair, true, |a, b| a < b),
                StepKind::BrNotLtI64U => compare_and_branch!(step, pair, false, |a, b| a < b),
                StepKind::CmpNzI64 => r.set_word(step.b, u32::from(r.pair(step.a) != 0)),
                StepKind::CmpEqRef => {
                    r.set_word(
                        step.c,
                        u32::from(refs[index(step.a)].same(&refs[index(step.b)])),
                    );
                }
                StepKind::CmpNeRef => {
                    r.set_word(
                        step.c,
                        u32::from(!refs[index(step.a)].same(&refs[index(step.b)])),
                    );
                }
                StepKind::CmpNzRef => r.set_word(step.b, u32::from(!refs[index(step.a)].is_null())),
                // Float arithmetic.
                StepKind::AddF32 => f32_op!(step, |a, b| a + b),
                StepKind::SubF32 => f32_op!(step, |a, b| a - b),
                StepKind::MulF32 => f32_op!(step, |a, b| a * b),
                StepKind::DivF32 => f32_op!(step, |a, b| a / b),
                StepKind::RemF32 => f32_op!(step, |a, b| libm::remainderf(a, b)),
                StepKind::FmaF32 => {
                    let value = scalar::fma_f32(r.f32(step.a), r.f32(step.b), r.f32(step.c));
                    r.set_f32(step.d(), value);
                }
                StepKind::AbsF32 => f32_op!(step, |a| a.abs()),
                StepKind::NegF32 => f32_op!(step, |a| -a),
                StepKind::CeilF32 => f32_op!(step, |a| a.ceil()),
                StepKind::FloorF32 => f32_op!(step, |a| a.floor()),
                StepKind::RoundF32 => f32_op!(step, |a| a.round()),
                StepKind::RoundF32Even => f32_op!(step, |a| scalar::round_even_f32(a)),
                StepKind::MinF32 => f32_op!(step, |a, b| scalar::min_f32(a, b)),
                StepKind::MaxF32 => f32_op!(step, |a, b| scalar::max_f32(a, b)),
                StepKind::AtanF32 => f32_op!(step, |a| libm::atanf(a)),
                StepKind::CosF32 => f32_op!(step, |a| libm::cosf(a)),
                StepKind::SinF32 => f32_op!(step, |a| libm::sinf(a)),
                StepKind::ExpF32 => f32_op!(step, |a| libm::expf(a)),
                StepKind::Exp2F32 => f32_op!(step, |a| libm::exp2f(a)),
                StepKind::Expm1F32 => f32_op!(step, |a| libm::expm1f(a)),
                StepKind::LogF32 => f32_op!(step, |a| libm::logf(a)),
                StepKind::Log10F32 => f32_op!(step, |a| scalar::log10_f32(a)),
                StepKind::Log1pF32 => f32_op!(step, |a| libm::log1pf(a)),
                StepKind::Log2F32 => f32_op!(step, |a| libm::log2f(a)),
                StepKind::RsqrtF32 => f32_op!(step, |a| scalar::rsqrt_f32(a)),
                StepKind::SqrtF32 => f32_op!(step, |a| a.sqrt()),
                StepKind::TanhF32 => f32_op!(step, |a| libm::tanhf(a)),
                StepKind::ErfF32 => f32_op!(step, |a| libm::erff(a)),
                StepKind::Atan2F32 => f32_op!(step, |a, b| libm::atan2f(a, b)),
                StepKind::PowF32 => f32_op!(step, |a, b| libm::powf(a, b)),
                StepKind::CmpEqF32O => compare!(step, f32, |a, b| a == b),
                StepKind::CmpEqF32U => compare!(step, f32, |a, b| a
                    .partial_cmp(&b)
                    .is_none_or(Ordering::is_eq)),
                StepKind::CmpNeF32O => compare!(step, f32, |a, b| a != b),
                StepKind::CmpNeF32U => compare!(step, f32, |a, b| a != b),
                StepKind::CmpLtF32O => compare!(step, f32, |a, b| a < b),
                StepKind::CmpLtF32U => compare!(step, f32, |a, b| a
                    .partial_cmp(&b)
                    .is_none_or(Ordering::is_lt)),
                StepKind::CmpLteF32O => compare!(step, f32, |a, b| a <= b),
                StepKind::CmpLteF32U => compare!(step, f32, |a, b| a
                    .partial_cmp(&b)
                    .is_none_or(Ordering::is_le)),
                StepKind::CmpNanF32 => r.set_word(step.b, u32::from(r.f32(step.a).is_nan())),
                StepKind::AddF64 => f64_op!(step, |a, b| a + b),
                StepKind::SubF64 => f64_op!(step, |a, b| a - b),
                StepKind::MulF64 => f64_op!(step, |a, b| a * b),
                StepKind::DivF64 => f64_op!(step, |a, b| a / b),
                StepKind::RemF64 => f64_op!(step, |a, b| libm::remainder(a, b)),
                StepKind::FmaF64 => {
                    let value = scalar::fma_f64(r.f64(step.a), r.f64(step.b), r.f64(step.c));
                    r.set_f64(step.d(), value);
                }
                StepKind::AbsF64 => f64_op!(step, |a| a.abs()),
                StepKind::NegF64 => f64_op!(step, |a| -a),
                StepKind::CeilF64 => f64_op!(step, |a| a.ceil()),
                StepKind::FloorF64 => f64_op!(step, |a| a.floor()),
                StepKind::RoundF64 => f64_op!(step, |a| a.round()),
                StepKind::RoundF64Even => f64_op!(step, |a| scalar::round_even_f64(a)),
                StepKind::MinF64 => f64_op!(step, |a, b| scalar::min_f64(a, b)),
                StepKind::MaxF64 => f64_op!(step, |a, b| scalar::max_f64(a, b)),
                StepKind::AtanF64 => f64_op!(step, |a| libm::atan(a)),
                StepKind::CosF64 => f64_op!(step, |a| libm::cos(a)),
                StepKind::SinF64 => f64_op!(step, |a| libm::sin(a)),
                StepKind::ExpF64 => f64_op!(step, |a| libm::exp(a)),
                StepKind::Exp2F64 => f64_op!(step, |a| libm::exp2(a)),
                StepKind::Expm1F64 => f64_op!(step, |a| libm::expm1(a)),
                StepKind::LogF64 => f64_op!(step, |a| scalar::log_f64(a)),
                StepKind::Log10F64 => f64_op!(step, |a| scalar::log10_f64(a)),
                StepKind::Log1pF64 => f64_op!(step, |a| libm::log1p(a)),
                StepKind::Log2F64 => f64_op!(step, |a| scalar::log2_f64(a)),
                StepKind::RsqrtF64 => f64_op!(step, |a| scalar::rsqrt_f64(a)),
                StepKind::SqrtF64 => f64_op!(step, |a| a.sqrt()),
                StepKind::TanhF64 => f64_op!(step, |a| libm::tanh(a)),
                StepKind::ErfF64 => f64_op!(step, |a| libm::erf(a)),
                StepKind::Atan2F64 => f64_op!(step, |a, b| libm::atan2(a, b)),
                StepKind::PowF64 => f64_op!(step, |a, b| libm::pow(a, b)),
                StepKind::CmpEqF64O => compare!(step, f64, |a, b| a == b),
                StepKind::CmpEqF64U => compare!(step, f64, |a, b| a
                    .partial_cmp(&b)
                    .is_none_or(Ordering::is_eq)),
                StepKind::CmpNeF64O => compare!(step, f64, |a, b| a != b),
                StepKind::CmpNeF64U => compare!(step, f64, |a, b| a != b),
                StepKind::CmpLtF64O => compare!(step, f64, |a, b| a < b),
                StepKind::CmpLtF64U => compare!(step, f64, |a, b| a
                    .partial_cmp(&b)
                    .is_none_or(Ordering::is_lt)),
                StepKind::CmpLteF64O => compare!(step, f64, |a, b| a <= b),
                StepKind::CmpLteF64U => compare!(step, f64, |a, b| a
                    .partial_cmp(&b)
                    .is_none_or(Ordering::is_le)),
                StepKind::CmpNanF64 => r.set_word(step.b, u32::from(r.f64(step.a).is_nan())),
                StepKind::FpowiF32 => {
                    r.set_f32(step.c, scalar::powi_f32(r.f32(step.a), r.i32(step.b)))
                }
                StepKind::FpowiF64 => {
                    r.set_f64(step.c, scalar::powi_f64(r.f64(step.a), r.i32(step.b)))
                }
                // Conversions of floats.
                StepKind::CastSi32F32 => r.set_f32(step.b, r.i32(step.a) as f32),
                StepKind::CastUi32F32 => r.set_f32(step.b, r.word(step.a) as f32),
                StepKind::CastSi64F32 => r.set_f32(step.b, r.i64(step.a) as f32),
                StepKind::CastUi64F32 => r.set_f32(step.b, r.pair(step.a) as f32),
                StepKind::CastF32Si32 | StepKind::CastF32Ui32 => {
                    r.set_i32(step.b, scalar::f32_to_i32(r.f32(step.a)));
                }
                StepKind::CastF32Si64 => r.set_i64(step.b, scalar::f32_to_i64(r.f32(step.a))),
                StepKind::CastF32Ui64 => r.set_pair(step.b, scalar::f32_to_u64(r.f32(step.a))),
                StepKind::CastSi32F64 => r.set_f64(step.b, r.i32(step.a).into()),
                StepKind::CastUi32F64 => r.set_f64(step.b, r.word(step.a).into()),
                StepKind::CastSi64F64 => r.set_f64(step.b, r.i64(step.a) as f64),
                StepKind::CastUi64F64 => r.set_f64(step.b, r.pair(step.a) as f64),
                StepKind::CastF64Si32 | StepKind::CastF64Ui32 => {
                    r.set_i32(step.b, scalar::f64_to_i32(r.f64(step.a)));
                }
                StepKind::CastF64Si64 | StepKind::CastF64Ui64 => {
                    r.set_i64(step.b, scalar::f64_to_i64(r.f64(step.a).round()));
                }
                StepKind::TruncF64F32 => r.set_f32(step.b, r.f64(step.a) as f32),
                StepKind::ExtF32F64 => r.set_f64(step.b, r.f32(step.a).into()),
                StepKind::BitcastI32F32 | StepKind::BitcastF32I32 | StepKind::CopyI32 => {
                    r.set_word(step.b, r.word(step.a));
                }
                StepKind::BitcastI64F64 | StepKind::BitcastF64I64 | StepKind::CopyI64 => {
                    r.set_pair(step.b, r.pair(step.a));
                }

                // Control.
                StepKind::Br | StepKind::Yield | StepKind::Break | StepKind::CondBreak => {
                    jump!(step)
                }
                StepKind::CondBr => {
                    if r.word(step.a) != 0 {
                        jump!(step);
                    }
                }
                StepKind::BrZero => {
                    if r.word(step.a) == 0 {
                        jump!(step);
                    }
                }
                StepKind::BrTable => {
                    let targets = &function.targets[range(step)];
                    if let Some(&target) = targets.get(r.word(step.a) as usize) {
                        jump_to!(target);
                    }
                }
                StepKind::Call => {
                    *next = steps.len() - rest.len();
                    return Ok(Exit::Call(step.y));
                }
                StepKind::CallVariadic => {
                    let call = &function.import_calls[step.y as usize];
                    check!(self.call_import(call, &mut r, refs, words, results));
                }
                StepKind::CallSite => {
                    let site = &mut sites[step.x as usize];
                    if let Site::Prepared(site) = site {
                        check!(self.call_site(site, &r, refs));
                    } else {
                        let call = &function.import_calls[step.y as usize];
                        check!(self.call_unprepared(site, call, &mut r, refs, words, results));
                    }
                }
                StepKind::CallRef => {
                    check!(self.call_ref(step, refs));
                }
                StepKind::CallPure => {
                    match self.instance.remembered(step.x, &refs[index(step.a)]) {
                        Some(value) => r.set_pair(step.b, value),
                        None => {
                            let call = &function.import_calls[step.y as usize];
                            check!(self.call_pure(step, call, &mut r, refs, words, results));
                        }
                    }
                }
                StepKind::CallYieldable | StepKind::CallVariadicYieldable => {
                    let call = &function.import_calls[step.y as usize];
                    check!(self.call_import_until_done(call, &mut r, refs, words, results));
                }
                StepKind::Return => {
                    *next = steps.len() - rest.len();
                    return Ok(Exit::Return(range(step)));
                }
                StepKind::Fail => {
                    let message = &function.messages[step.y as usize];
                    check!(Err(failure(r.word(step.a), message)));
                }
                StepKind::ImportResolved => {
                    r.set_word(step.a, u32::from(self.instance.import(step.y).is_some()));
                }
                StepKind::DiscardRefs | StepKind::Trace | StepKind::Print => {
                    for &register in &function.registers[range(step)] {
                        release_ref(refs, register);
                    }
                }

                // Refs.
                StepKind::AssignRef => {
                    let value = take_or_clone(refs, step.a);
                    set_ref(refs, step.b, value);
                }
                StepKind::CastAnyRef => {
                    let value = take_or_clone(refs, step.a);
                    check!(self.check_type(&value, step.y));
                    set_ref(refs, step.b, value);
                }

                // Buffers.
                StepKind::BufferLoadI8U => load!(step, u8, set_word, |value| value.into()),
                StepKind::BufferLoadI8S => {
                    load!(step, u8, set_i32, |value| value.cast_signed().into())
                }
                StepKind::BufferLoadI16U => load!(step, u16, set_word, |value| value.into()),
                StepKind::BufferLoadI16S => {
                    load!(step, u16, set_i32, |value| value.cast_signed().into())
                }
                StepKind::BufferLoadI32 | StepKind::BufferLoadF32 => {
                    load!(step, u32, set_word, |value| value)
                }
                StepKind::BufferLoadI64 | StepKind::BufferLoadF64 => {
                    load!(step, u64, set_pair, |value| value)
                }
                StepKind::BufferStoreI8 => store!(step, r.word(step.c) as u8),
                StepKind::BufferStoreI16 => store!(step, r.word(step.c) as u16),
                StepKind::BufferStoreI32 | StepKind::BufferStoreF32 => store!(step, r.word(step.c)),
                StepKind::BufferStoreI64 | StepKind::BufferStoreF64 => store!(step, r.pair(step.c)),
                StepKind::BufferFillI8 => fill!(step, r.word(step.d()) as u8),
                StepKind::BufferFillI16 => fill!(step, r.word(step.d()) as u16),
                StepKind::BufferFillI32 | StepKind::BufferFillF32 => fill!(step, r.word(step.d())),
                StepKind::BufferFillI64 | StepKind::BufferFillF64 => fill!(step, r.pair(step.d())),
                StepKind::BufferAlloc => {
                    let buffer = check!(Buffer::allocate(r.pair(step.a), r.word(step.b).into()));
                    set_ref(refs, step.c, Ref::Buffer(buffer));
                }
                StepKind::BufferClone => {
                    let (offset, length, alignment) =
                        (r.pair(step.b), r.pair(step.c), r.word(step.d()));
                    let clone =
                        check!(buffer!(step.a).clone_range(offset, length, alignment.into()));
                    set_ref(refs, step.e(), Ref::Buffer(clone));
                }
                StepKind::BufferLength => {
                    let length = buffer!(step.a).length();
                    r.set_pair(step.b, length as u64);
                }
                StepKind::BufferCopy => {
                    let source = buffer!(step.a);
                    let target = buffer!(step.c);
                    let (source_offset, offset, length) =
                        (r.pair(step.b), r.pair(step.d()), r.pair(step.e()));
                    check!(target.copy_from(offset, source, source_offset, length));
                }
                StepKind::BufferCompare => {
                    let (left, right) = (buffer!(step.a), buffer!(step.c));
                    let (left_offset, right_offset, length) =
                        (r.pair(step.b), r.pair(step.d()), r.pair(step.e()));
                    let equal = check!(left.equals(left_offset, right, right_offset, length));
                    r.set_word(step.f(), u32::from(equal));
                }
                StepKind::BufferHash => {
                    let hash = check!(buffer!(step.a).hash(r.pair(step.b), r.pair(step.c)));
                    r.set_pair(step.d(), hash);
                }
            }
        }
    }

    /// Takes note of a turn of a loop, runs the machine code of the loop, if there is any, and returns the step to go on at.
    #[cfg(feature = "jit")]
    #[inline(never)]
    fn turn(
        &self,
        turned: &Loop,
        function: &Function,
        hot_after: u32,
        registers: &mut Registers<'_>,
        refs: &[Ref],
    ) -> usize {
        let registers = registers.bytes();
        turned.turn(function, hot_after, registers, refs, self.invocation)
    }

    /// Takes note of the step at `at`, when it is the first of an instruction.
    fn meter(&self, function: &Function, at: usize) -> Result<()> {
        let offset = function.offsets[at];
        if offset & CONTINUES != 0 {
            return Ok(());
        }
        if let Some(tracer) = self.invocation.tracer() {
            tracer.instruction(self.instance.module_name(), function.ordinal, offset);
        }
        self.invocation.burn()
    }
}

/// Returns the ordinal in a ref operand.
#[inline(always)]
fn index(operand: u16) -> usize {
    usize::from(operand & REF_MASK)
}

/// Returns the range of a pool that a step names.
#[inline(always)]
fn range(step: &Step) -> Range<usize> {
    let start = step.x as usize;
    start..start + step.y as usize
}

#[cold]
fn failure(status: u32, message: &str) -> Trap {
    match StatusCode::from_low_bits(status) {
        StatusCode::OK => Trap::new(
            StatusCode::INTERNAL,
            format!("`vm.fail` was given the status OK: {message}"),
        ),
        code => Trap::new(code, message),
    }
}
