//! Calls: between functions of the module, and to imports.

use vm::{ArgumentBlock, Invocation, Ref, Result, Results, StatusCode, Trap};

use super::stack::{Direction, MOVE_BIT, REF_MASK, Registers, Stack, release};
use super::{Interpreter, release_ref, set_ref};
use crate::compile::copy;
use crate::program::{ImportCall, InternalCall, Step, Value};

impl Interpreter<'_> {
    /// Pushes the frame of a callee and passes its arguments.
    pub(super) fn enter(&self, stack: &mut Stack, call: &InternalCall) -> Result<()> {
        // A program that only calls and returns must end too.
        self.invocation.check_interrupt()?;
        let callee = &self.functions[call.function as usize];
        stack.push(callee)?;
        stack.copy(call.arguments.iter().copied(), Direction::Call);
        Ok(())
    }

    /// Passes what the top frame returns to its caller and pops it.
    pub(super) fn leave(&self, stack: &mut Stack, returns: &[Value]) {
        if let [.., caller, _] = stack.frames() {
            // The caller waits at its call, which names the registers for the results.
            let function = &self.functions[caller.function as usize];
            let step = function.steps[caller.next - 1];
            let results = &function.calls[step.y as usize].results;
            stack.copy(
                returns
                    .iter()
                    .zip(results)
                    .map(|(&source, &target)| copy(source, target)),
                Direction::Return,
            );
        }
        stack.pop();
    }

    /// Calls the import of the convention `0r_r` that `step` names: in the register for its result.
    #[inline(always)]
    pub(super) fn call_ref(&self, step: &Step, refs: &mut [Ref]) -> Result<()> {
        let Some(target) = self.instance.import(step.y) else {
            return Err(self.instance.unresolved(step.y));
        };
        let (argument, result) = (usize::from(step.a & REF_MASK), usize::from(step.b));
        if step.a & MOVE_BIT == 0 {
            let argument = refs[argument].clone();
            set_ref(refs, step.b, argument);
        } else if argument != result {
            refs.swap(argument, result);
            release_ref(refs, step.a);
        }
        self.invocation
            .call_ref(target, &mut refs[result])
            .map_err(not_deferred)
    }

    /// Calls an import that gives a 64-bit number for the object that `step` names, and remembers the number when the
    /// import is pure.
    #[inline(never)]
    pub(super) fn call_pure(
        &self,
        step: &Step,
        call: &ImportCall,
        registers: &mut Registers<'_>,
        refs: &mut [Ref],
        words: &mut [u32],
        results: &mut Results,
    ) -> Result<()> {
        self.call_import(call, registers, refs, words, results)?;
        if let Some(target) = self.instance.import(call.import)
            && self.invocation.is_pure(target)
            && let Ref::Object(object) = &refs[usize::from(step.a)]
        {
            self.instance
                .remember(step.x, object, registers.pair(step.b));
        }
        Ok(())
    }

    /// Calls an import. Inlined into the loop, where what it is given is at hand.
    #[inline(always)]
    pub(super) fn call_import(
        &self,
        call: &ImportCall,
        registers: &mut Registers<'_>,
        refs: &mut [Ref],
        words: &mut [u32],
        results: &mut Results,
    ) -> Result<()> {
        self.try_import(call, registers, refs, words, results, false)
            .map_err(not_deferred)
    }

    /// Calls an import that may answer `DEFERRED`, again and again until it gives another answer. Each time counts as
    /// an instruction.
    #[inline(never)]
    pub(super) fn call_import_until_done(
        &self,
        call: &ImportCall,
        registers: &mut Registers<'_>,
        refs: &mut [Ref],
        words: &mut [u32],
        results: &mut Results,
    ) -> Result<()> {
        let mut resuming = false;
        loop {
            match self.try_import(call, registers, refs, words, results, resuming) {
                Err(trap) if trap.code() == StatusCode::DEFERRED => {
                    self.invocation.check_interrupt()?;
                    self.invocation.burn()?;
                    std::thread::yield_now();
                    resuming = true;
                }
                outcome => return outcome,
            }
        }
    }

    #[inline(always)]
    fn try_import(
        &self,
        call: &ImportCall,
        registers: &mut Registers<'_>,
        refs: &mut [Ref],
        words: &mut [u32],
        results: &mut Results,
        resuming: bool,
    ) -> Result<()> {
        let Some(target) = self.instance.import(call.import) else {
            return Err(self.instance.unresolved(call.import));
        };
        // The block has all but the numbers that vary; refs are named by the registers of the caller or by its constants.
        let words = &mut words[call.block.clone()];
        for &(register, at) in &call.words {
            words[at as usize] = registers.word(register);
        }
        let invocation: &Invocation<'_> = self.invocation;
        let block = ArgumentBlock::with_constants(words, refs, self.instance.rodata());
        if let Err(trap) = invocation.call_or_resume(target, block, results, resuming) {
            results.clear();
            return Err(trap);
        }
        if call.is_plain && results.is_empty() {
            return Ok(());
        }
        if !results.are(call.result_words.len(), call.result_refs.len()) {
            results.clear();
            return Err(self.instance.wrong_results(call.import));
        }
        for &register in &call.consumed {
            release_ref(refs, register);
        }
        // In order: a register may be named twice, and then holds the last of its results.
        for (&register, &word) in call.result_words.iter().zip(results.words()) {
            registers.set_word(register, word);
        }
        results.clear_words();
        for (&register, result) in call.result_refs.iter().zip(results.take_refs()) {
            let slot = &mut refs[usize::from(register & REF_MASK)];
            release(slot);
            core::mem::swap(slot, result);
        }
        Ok(())
    }
}

/// Returns the trap of an import that was called as one that does not yield.
#[cold]
fn not_deferred(trap: Trap) -> Trap {
    if trap.code() != StatusCode::DEFERRED {
        return trap;
    }
    Trap::new(
        StatusCode::INTERNAL,
        format!(
            "an import that was called as one that does not yield yielded: {}",
            trap.message()
        ),
    )
}
