//! Calls from outside the module: how arguments come in, how results leave, and the loop over the frames in between.

use core::mem;

use vm::{Call, PreparedCall, Result};

use super::stack::{MOVE_BIT, REF_MASK, Stack, Window, release, set_ref, take_or_clone};
use super::{Exit, Interpreter, Mode};
use crate::program::{Function, Value};

/// Who calls a function of the module from outside.
pub(crate) trait Caller {
    /// Passes the arguments of `function` to its new frame.
    fn pass_arguments(&mut self, function: &Function, window: &mut Window<'_>) -> Result<()>;

    /// Takes what the frame returns.
    fn take_results(&mut self, returns: &[Value], window: &mut Window<'_>);
}

impl Interpreter<'_> {
    /// Calls `function` for `caller`, on an empty stack. When it fails, the frames that failed are still there.
    ///
    /// # Errors
    /// Fails as the program does.
    #[inline]
    pub(crate) fn run<M: Mode>(
        &self,
        stack: &mut Stack,
        function: &Function,
        caller: &mut impl Caller,
    ) -> Result<()> {
        let mut window = stack.first_window(function);
        let mut next = 0;
        let left = match caller.pass_arguments(function, &mut window) {
            Ok(()) => self.run_frame::<M>(function, &mut next, &mut window),
            Err(trap) => Err(trap),
        };
        // Many a function calls no other of its module: then nothing ever looks for its frame.
        if let Ok(Exit::Return(range)) = left {
            caller.take_results(&function.returns[range], &mut window);
            window.refs.iter_mut().for_each(release);
            return Ok(());
        }
        stack.push_first(function);
        self.go_on::<M>(stack, function, next, left, caller)
    }

    /// Goes on where the frame on the stack, that of `function`, was left, until it returns.
    #[inline(never)]
    fn go_on<M: Mode>(
        &self,
        stack: &mut Stack,
        function: &Function,
        next: usize,
        left: Result<Exit>,
        caller: &mut impl Caller,
    ) -> Result<()> {
        let (mut function, mut next, mut left) = (function, next, left);
        loop {
            match left {
                Ok(Exit::Call(call)) => {
                    stack.set_next(next);
                    self.enter(stack, &function.calls[call as usize])?;
                }
                Ok(Exit::Return(range)) => {
                    let returns = &function.returns[range];
                    if stack.frames().len() == 1 {
                        caller.take_results(returns, &mut stack.window().1);
                        stack.pop();
                        return Ok(());
                    }
                    self.leave(stack, returns);
                }
                Err(trap) => {
                    stack.set_next(next);
                    return Err(trap);
                }
            }
            let (frame, mut window) = stack.window();
            function = &self.functions[frame.function as usize];
            next = frame.next;
            left = self.run_frame::<M>(function, &mut next, &mut window);
        }
    }
}

/// A module, which keeps the refs that it passes.
impl Caller for Call<'_, '_> {
    #[inline]
    fn pass_arguments(&mut self, function: &Function, window: &mut Window<'_>) -> Result<()> {
        let mut arguments = self.arguments.reader();
        for &place in &function.arguments {
            match place {
                Value::Word(register) => window.registers.set_i32(register, arguments.i32()?),
                Value::Pair(register) => window.registers.set_i64(register, arguments.i64()?),
                Value::Ref(register) => {
                    set_ref(window.refs, register, arguments.reference()?.clone());
                }
            }
        }
        Ok(())
    }

    #[inline]
    fn take_results(&mut self, returns: &[Value], window: &mut Window<'_>) {
        for &value in returns {
            match value {
                Value::Word(register) => self.results.push_i32(window.registers.i32(register)),
                Value::Pair(register) => self.results.push_i64(window.registers.i64(register)),
                Value::Ref(operand) => self.results.push_ref(take_or_clone(window.refs, operand)),
            }
        }
    }
}

/// An application, which gives its refs away.
impl Caller for PreparedCall {
    /// Both sides have the numbers and the refs in order, from register 0 of each bank, pairs at even positions.
    #[inline]
    fn pass_arguments(&mut self, function: &Function, window: &mut Window<'_>) -> Result<()> {
        let (numbers, refs) = self.arguments();
        for (register, &word) in (0..function.register_count).zip(numbers) {
            window.registers.set_word(register, word);
        }
        // Those of the frame are null.
        for (register, reference) in window.refs.iter_mut().zip(refs) {
            mem::swap(register, reference);
        }
        Ok(())
    }

    #[inline(always)]
    fn take_results(&mut self, returns: &[Value], window: &mut Window<'_>) {
        let (numbers, refs) = self.results();
        let (mut numbers, mut refs) = (numbers.iter_mut(), refs.iter_mut());
        // The verifier compared the returns with the convention, and so the context the call.
        let mut put_word = |value: u32| {
            if let Some(word) = numbers.next() {
                *word = value;
            }
        };
        for &value in returns {
            match value {
                Value::Word(register) => put_word(window.registers.word(register)),
                Value::Pair(register) => {
                    put_word(window.registers.word(register));
                    put_word(window.registers.word(register | 1));
                }
                Value::Ref(operand) => {
                    let register = &mut window.refs[usize::from(operand & REF_MASK)];
                    match refs.next() {
                        // What was left of an earlier call is released with the frame.
                        Some(result) if operand & MOVE_BIT != 0 => mem::swap(result, register),
                        Some(result) => *result = register.clone(),
                        None => {}
                    }
                }
            }
        }
    }
}
