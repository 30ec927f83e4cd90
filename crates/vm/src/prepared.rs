//! Prepared calls: what the calls of one function share, worked out once.
//!
//! Holds the argument block and the results of calls that follow one another. The layout of a block is that of
//! [`crate::argument_block`]; the call is made by [`Context::call_prepared`](crate::Context::call_prepared).

use core::mem;
use std::sync::Arc;

use crate::argument_block::{align_words, halves, pair, result_mismatch};
use crate::{
    ArgumentWriter, Atom, Call, CallingConvention, Function, Invocation, Item, Ref, Result,
    Results, Trap, Value,
};

/// The arguments and the results of a function, each in its place; reused from call to call.
///
/// Unlike those of an [`ArgumentBlock`](crate::ArgumentBlock), the refs among the arguments are given away: the function owns
/// them.
///
/// # Examples
/// ```
/// use vm::{Context, InvocationOptions, NativeModule, PreparedCall, Value};
///
/// let math = NativeModule::builder("math", 0)
///     .function("add", |_: &(), a: i32, b: i32| Ok((a.wrapping_add(b),)))
///     .build()?;
/// let context = Context::builder().module(math).build()?;
/// let add = context.lookup("math", "add")?;
/// let mut call = PreparedCall::new(&add);
/// call.set(0, Value::I32(40))?;
/// for n in 0..3 {
///     call.set(1, Value::I32(n))?;
///     let mut results = context.call_prepared(&add, &mut call, InvocationOptions::default())?;
///     assert!(matches!(results.next(), Some(Value::I32(sum)) if sum == 40 + n));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PreparedCall {
    convention: Arc<CallingConvention>,
    /// Where the arguments lie; `None` for spans.
    argument_slots: Box<[Option<Slot>]>,
    arguments: Values,
    result_slots: Box<[Slot]>,
    results: Values,
    /// For functions that take their arguments in a block.
    block: ArgumentWriter,
    block_results: Results,
}

/// Where a value lies: at a word of the numbers, or at a position of the refs.
#[derive(Clone, Copy, Debug)]
enum Slot {
    I32(usize),
    F32(usize),
    I64(usize),
    F64(usize),
    Ref(usize),
}

/// Values of one calling convention.
#[derive(Debug)]
struct Values {
    /// The words of the numbers in order, the low one first.
    numbers: Box<[u32]>,
    /// The refs in order.
    refs: Box<[Ref]>,
}

impl PreparedCall {
    /// Returns a call of `function` whose arguments are zeros, nulls and spans without tuples.
    #[must_use]
    pub fn new(function: &Function) -> Self {
        let convention = function.shared_convention();
        let mut arguments = Layout::default();
        let argument_slots = convention.arguments().iter().map(|item| match item {
            Item::Atom(atom) => Some(arguments.place(*atom, atom.word_alignment())),
            Item::Span(_) => None,
        });
        let argument_slots = argument_slots.collect();
        let mut results = Layout::default();
        let result_slots = convention.results().iter();
        let result_slots = result_slots.map(|atom| results.place(*atom, 1)).collect();
        Self {
            argument_slots,
            arguments: arguments.values(),
            result_slots,
            results: results.values(),
            block: ArgumentWriter::new(),
            block_results: Results::new(),
            convention: Arc::clone(convention),
        }
    }

    /// Sets an argument of the next call. Numbers stay for the calls after it, refs do not.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the function takes no such value at `index`.
    pub fn set(&mut self, index: usize, value: Value) -> Result<()> {
        let numbers = &mut self.arguments.numbers;
        let slot = self.argument_slots.get(index).copied().flatten();
        match (slot, value) {
            (_, Value::Ref(reference)) => return self.set_ref(index, reference),
            (Some(Slot::I32(at)), Value::I32(value)) => numbers[at] = value.cast_unsigned(),
            (Some(Slot::F32(at)), Value::F32(value)) => numbers[at] = value.to_bits(),
            (Some(Slot::I64(at)), Value::I64(value)) => {
                numbers[at..at + 2].copy_from_slice(&halves(value.cast_unsigned()));
            }
            (Some(Slot::F64(at)), Value::F64(value)) => {
                numbers[at..at + 2].copy_from_slice(&halves(value.to_bits()));
            }
            (_, value) => return Err(self.unfit(index, value.atom())),
        }
        Ok(())
    }

    /// Sets an argument of the next call that is a ref.
    ///
    /// # Errors
    /// As [`PreparedCall::set`].
    #[inline]
    pub fn set_ref(&mut self, index: usize, reference: Ref) -> Result<()> {
        match self.argument_slots.get(index) {
            Some(&Some(Slot::Ref(at))) => {
                put(&mut self.arguments.refs[at], reference);
                Ok(())
            }
            _ => Err(self.unfit(index, Atom::Ref)),
        }
    }

    /// Releases the refs among the arguments, and those among the results that nobody took: they stay until then, or until
    /// the next call.
    pub fn release_refs(&mut self) {
        self.arguments.refs.fill(Ref::Null);
        self.results.refs.fill(Ref::Null);
    }

    /// Returns the arguments, for the function that is called: the words of the numbers in order, the low one first and that
    /// of a 64-bit number at an even position; and the refs in order, which it takes.
    #[inline]
    pub fn arguments(&mut self) -> (&[u32], &mut [Ref]) {
        (&self.arguments.numbers, &mut self.arguments.refs)
    }

    /// Returns where the function that is called puts its results: the words of the numbers in order, the low one first,
    /// without gaps; and the refs in order.
    #[inline]
    pub fn results(&mut self) -> (&mut [u32], &mut [Ref]) {
        (&mut self.results.numbers, &mut self.results.refs)
    }

    /// Returns whether the call was prepared for functions of this convention.
    #[inline]
    pub(crate) fn fits(&self, convention: &Arc<CallingConvention>) -> bool {
        Arc::ptr_eq(&self.convention, convention) || self.convention == *convention
    }

    /// Returns the results, whose refs are moved out of the call.
    #[inline]
    pub(crate) fn take_results(&mut self) -> impl ExactSizeIterator<Item = Value> {
        let results = &mut self.results;
        self.result_slots.iter().map(|slot| results.take(*slot))
    }

    /// Makes the call with a block of arguments, as modules call each other.
    pub(crate) fn pass_block(
        &mut self,
        invocation: &Invocation<'_>,
        function: impl FnOnce(&mut Call<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        // A function that panicked may have left something.
        self.block.clear();
        self.block_results.clear();
        for slot in &self.argument_slots {
            match slot {
                Some(slot) => self.block.push(self.arguments.take(*slot)),
                None => self.block.push_span(0, &[]),
            }
        }
        let outcome = function(&mut Call {
            arguments: self.block.block(),
            results: &mut self.block_results,
            invocation,
            resuming: false,
        });
        self.block.clear();
        let outcome = outcome.and_then(|()| self.take_block_results());
        self.block_results.clear();
        outcome
    }

    fn take_block_results(&mut self) -> Result<()> {
        let Values { numbers, refs } = &mut self.results;
        let found = &mut self.block_results;
        if found.words().len() != numbers.len() || found.refs().len() != refs.len() {
            return Err(result_mismatch(&self.convention));
        }
        numbers.copy_from_slice(found.words());
        for (index, reference) in refs.iter_mut().enumerate() {
            *reference = found.take_ref(index);
        }
        Ok(())
    }

    #[cold]
    fn unfit(&self, index: usize, found: Atom) -> Trap {
        let convention = &self.convention;
        let items = convention.arguments();
        let found = found.letter();
        Trap::invalid_argument(match items.get(index) {
            None => format!("`{convention}` takes only {} values", items.len()),
            Some(Item::Span(_)) => format!("argument {index} of `{convention}` is a span"),
            Some(Item::Atom(atom)) => format!(
                "argument {index} of `{convention}` must be `{}` but is `{found}`",
                atom.letter()
            ),
        })
    }
}

impl Values {
    /// Returns a value, moved out if it is a ref.
    #[inline]
    fn take(&mut self, slot: Slot) -> Value {
        let numbers = &self.numbers;
        match slot {
            Slot::I32(at) => Value::I32(numbers[at].cast_signed()),
            Slot::F32(at) => Value::F32(f32::from_bits(numbers[at])),
            Slot::I64(at) => Value::I64(pair(numbers[at], numbers[at + 1]).cast_signed()),
            Slot::F64(at) => Value::F64(f64::from_bits(pair(numbers[at], numbers[at + 1]))),
            Slot::Ref(at) => Value::Ref(mem::take(&mut self.refs[at])),
        }
    }
}

/// Counts of numbers' words and of refs.
#[derive(Default)]
struct Layout {
    words: usize,
    refs: usize,
}

impl Layout {
    /// Returns the place of the next value.
    fn place(&mut self, atom: Atom, word_alignment: usize) -> Slot {
        let at = align_words(self.words, word_alignment);
        if atom != Atom::Ref {
            self.words = at + atom.word_count();
        }
        match atom {
            Atom::I32 => Slot::I32(at),
            Atom::F32 => Slot::F32(at),
            Atom::I64 => Slot::I64(at),
            Atom::F64 => Slot::F64(at),
            Atom::Ref => {
                self.refs += 1;
                Slot::Ref(self.refs - 1)
            }
        }
    }

    fn values(&self) -> Values {
        Values {
            numbers: vec![0; self.words].into(),
            refs: vec![Ref::Null; self.refs].into(),
        }
    }
}

#[inline]
#[expect(
    clippy::mem_forget,
    reason = "null owns nothing; its drop would be a call"
)]
fn put(slot: &mut Ref, reference: Ref) {
    if !slot.is_null() {
        *slot = Ref::Null;
    }
    mem::forget(mem::replace(slot, reference));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Context, InvocationOptions, NativeModule, StatusCode};

    fn context() -> Context {
        let module = NativeModule::builder("m", 0)
            .function("mixed", |_: &(), a: i32, b: f64, c: Ref, d: i64, e: f32| {
                Ok((e, d, c, b, a))
            })
            .function("hold", |_: &(), first: Ref, second: Ref| {
                Ok((i32::from(first.is_null()), i32::from(second.is_null())))
            })
            .raw_function("spans", "0iCiD_v", |_: &(), _| Ok(()))
            .raw_function("liar", "0v_rI", |_: &(), call| {
                call.results.push_i64(1);
                Ok(())
            })
            .build()
            .unwrap();
        Context::builder().module(module).build().unwrap()
    }

    fn buffer() -> Arc<Buffer> {
        Buffer::allocate(4, 0).unwrap()
    }

    const NO_LIMITS: fn() -> InvocationOptions<'static> = InvocationOptions::default;

    #[test]
    fn values_of_every_kind_go_in_and_come_out() {
        let context = context();
        let mixed = context.lookup("m", "mixed").unwrap();
        let mut call = PreparedCall::new(&mixed);
        let shared = buffer();
        let values = [
            Value::I32(-1),
            Value::F64(-2.5),
            Value::Ref(Arc::clone(&shared).into()),
            Value::I64(i64::MIN),
            Value::F32(0.5),
        ];
        for (index, value) in values.into_iter().enumerate() {
            call.set(index, value).unwrap();
        }
        let results = context
            .call_prepared(&mixed, &mut call, NO_LIMITS())
            .unwrap();
        let results: Vec<Value> = results.collect();
        assert!(matches!(
            &results[..],
            [Value::F32(e), Value::I64(i64::MIN), Value::Ref(Ref::Buffer(c)), Value::F64(b), Value::I32(-1)]
                if *e == 0.5 && *b == -2.5 && Arc::ptr_eq(c, &shared)
        ));
    }

    #[test]
    fn refs_that_a_function_leaves_are_released_and_do_not_come_again() {
        let context = context();
        let hold = context.lookup("m", "hold").unwrap();
        let mut call = PreparedCall::new(&hold);
        let shared = buffer();
        call.set(1, Value::Ref(Arc::clone(&shared).into())).unwrap();
        for expected in [[1, 0], [1, 1]] {
            let results = context.call_prepared(&hold, &mut call, NO_LIMITS());
            let nulls: Vec<Value> = results.unwrap().collect();
            assert!(matches!(nulls[..], [Value::I32(a), Value::I32(b)] if [a, b] == expected));
            assert_eq!(Arc::strong_count(&shared), 1);
        }
        call.set(0, Value::Ref(Arc::clone(&shared).into())).unwrap();
        call.set(0, Value::Ref(Ref::Null)).unwrap();
        assert_eq!(Arc::strong_count(&shared), 1);
        call.set(0, Value::Ref(Arc::clone(&shared).into())).unwrap();
        call.release_refs();
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn a_value_that_the_function_does_not_take_is_refused() {
        let context = context();
        let mut call = PreparedCall::new(&context.lookup("m", "mixed").unwrap());
        let error = call.set(1, Value::F32(1.0)).unwrap_err();
        assert_eq!(error.code(), StatusCode::INVALID_ARGUMENT);
        assert_eq!(
            error.message(),
            "argument 1 of `0iFrIf_fIrFi` must be `F` but is `f`"
        );
        let error = call.set(5, Value::F32(1.0)).unwrap_err();
        assert_eq!(error.message(), "`0iFrIf_fIrFi` takes only 5 values");
        let mut call = PreparedCall::new(&context.lookup("m", "spans").unwrap());
        assert!(call.set(1, Value::I32(1)).is_err());
    }

    #[test]
    fn a_call_of_another_function_is_refused_and_its_refs_are_released() {
        let context = context();
        let mut call = PreparedCall::new(&context.lookup("m", "hold").unwrap());
        let shared = buffer();
        call.set(0, Value::Ref(Arc::clone(&shared).into())).unwrap();
        let mixed = context.lookup("m", "mixed").unwrap();
        let error = context
            .call_prepared(&mixed, &mut call, NO_LIMITS())
            .err()
            .unwrap();
        assert_eq!(error.code(), StatusCode::INVALID_ARGUMENT);
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn results_that_nobody_took_are_released() {
        let module = NativeModule::builder("m", 0)
            .function("pass", |_: &(), value: Ref| Ok((value,)))
            .build()
            .unwrap();
        let context = Context::builder().module(module).build().unwrap();
        let pass = context.lookup("m", "pass").unwrap();
        let mut call = PreparedCall::new(&pass);
        let shared = buffer();
        call.set(0, Value::Ref(Arc::clone(&shared).into())).unwrap();
        let results = context.call_prepared(&pass, &mut call, NO_LIMITS());
        drop(results.unwrap());
        assert_eq!(Arc::strong_count(&shared), 2);
        call.release_refs();
        assert_eq!(Arc::strong_count(&shared), 1);
    }

    #[test]
    fn nothing_is_left_of_a_call_that_panicked() {
        let module = NativeModule::builder("m", 0)
            .function("checked", |_: &(), value: i32| {
                assert!(value != 0, "a function that panics");
                Ok((value,))
            })
            .build()
            .unwrap();
        let context = Context::builder().module(module).build().unwrap();
        let checked = context.lookup("m", "checked").unwrap();
        let mut call = PreparedCall::new(&checked);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            drop(context.call_prepared(&checked, &mut call, NO_LIMITS()));
        }));
        assert!(panicked.is_err());
        call.set(0, Value::I32(7)).unwrap();
        let results = context.call_prepared(&checked, &mut call, NO_LIMITS());
        let results: Vec<Value> = results.unwrap().collect();
        assert!(matches!(results[..], [Value::I32(7)]));
    }

    #[test]
    fn a_function_of_another_context_is_refused() {
        let (own, other) = (context(), context());
        let hold = other.lookup("m", "hold").unwrap();
        let mut call = PreparedCall::new(&hold);
        let error = own.call_prepared(&hold, &mut call, NO_LIMITS()).err();
        let error = error.unwrap();
        assert_eq!(error.code(), StatusCode::INVALID_ARGUMENT);
        assert_eq!(error.message(), "the function belongs to another context");
        let values = [Value::Ref(Ref::Null), Value::Ref(Ref::Null)];
        assert!(own.invoke(&hold, values).is_err());
    }

    #[test]
    fn results_that_do_not_fit_are_the_functions_fault() {
        let context = context();
        let liar = context.lookup("m", "liar").unwrap();
        let mut call = PreparedCall::new(&liar);
        let error = context
            .call_prepared(&liar, &mut call, NO_LIMITS())
            .err()
            .unwrap();
        assert_eq!(error.code(), StatusCode::INTERNAL);
    }
}
