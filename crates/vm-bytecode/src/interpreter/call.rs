//! Calls: between functions of the module, and to imports.

use vm::{ArgumentBlock, Invocation, Ref, Result, Results, StatusCode, Trap};

use super::stack::{Direction, Registers, Stack};
use super::{Interpreter, release_ref, set_ref};
use crate::compile::copy;
use crate::program::{ImportCall, InternalCall, Value};

impl Interpreter<'_> {
    /// Pushes the frame of a callee and passes its arguments.
    pub(super) fn enter(&self, stack: &mut Stack, call: &InternalCall) -> Result<()> {
        // A program that only calls and returns must end too.
        self.invocation.check_interrupt()?;
        let callee = &self.functions[call.function as usize];
        stack.push(call.function, callee.register_count, callee.ref_count)?;
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
        match self.try_import(call, registers, refs, words, results, false) {
            Err(trap) if trap.code() == StatusCode::DEFERRED => Err(deferred(&trap)),
            outcome => outcome,
        }
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
        for &(register, at) in &call.pairs {
            words[at as usize] = registers.word(register);
            words[at as usize + 1] = registers.word(register | 1);
        }
        results.clear();
        let invocation: &Invocation<'_> = self.invocation;
        let block = ArgumentBlock::with_constants(words, refs, self.instance.rodata());
        invocation.call_or_resume(target, block, results, resuming)?;
        if results.words().len() != call.result_words || results.refs().len() != call.result_refs {
            return Err(self.instance.wrong_results(call.import));
        }
        for &register in &call.consumed {
            release_ref(refs, register);
        }
        // In order: a register may be named twice, and then holds the last of its results.
        let (mut word, mut reference) = (0, 0);
        for &value in &call.results {
            match value {
                Value::Word(register) => {
                    registers.set_word(register, results.words()[word]);
                    word += 1;
                }
                Value::Pair(register) => {
                    let [low, high] = results.words()[word..word + 2] else {
                        unreachable!("the range has two words");
                    };
                    registers.set_word(register, low);
                    registers.set_word(register | 1, high);
                    word += 2;
                }
                Value::Ref(register) => {
                    set_ref(refs, register, results.take_ref(reference));
                    reference += 1;
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn deferred(trap: &Trap) -> Trap {
    Trap::new(
        StatusCode::INTERNAL,
        format!(
            "an import that was called as one that does not yield yielded: {}",
            trap.message()
        ),
    )
}
