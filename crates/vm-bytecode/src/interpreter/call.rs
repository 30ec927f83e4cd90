//! Calls: between functions of the module, and to imports.

use vm::{ArgumentBlock, CallShape, Invocation, Ref, Result, Results, StatusCode, Trap};

use super::stack::{Direction, MOVE_BIT, PreparedSite, REF_MASK, Registers, Site, Stack, release};
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

    /// Calls an import, which gives no results, from a place that nothing is prepared for; the first time, its instance may
    /// prepare something.
    #[inline(never)]
    pub(super) fn call_unprepared(
        &self,
        site: &mut Site,
        call: &ImportCall,
        registers: &mut Registers<'_>,
        refs: &mut [Ref],
        words: &mut [u32],
        results: &mut Results,
    ) -> Result<()> {
        if let Site::New = site {
            *site = self.new_site(call, words)?;
            if let Site::Prepared(site) = site {
                return self.call_site(site, registers, refs);
            }
        }
        self.call_import(call, registers, refs, words, results)
    }

    /// Calls an import, which gives no results, through what its instance prepared for the place.
    #[inline(always)]
    pub(super) fn call_site(
        &self,
        site: &mut PreparedSite,
        registers: &Registers<'_>,
        refs: &mut [Ref],
    ) -> Result<()> {
        fill(&mut site.words, &site.inputs, &site.pairs, registers);
        let block = ArgumentBlock::with_constants(&site.words, refs, self.instance.rodata());
        site.callee
            .call(block, self.invocation)
            .map_err(not_deferred)?;
        for &register in &site.consumed {
            release_ref(refs, register);
        }
        Ok(())
    }

    /// Returns what the instance that has an import prepares for the place of `call`.
    fn new_site(&self, call: &ImportCall, words: &[u32]) -> Result<Site> {
        let Some(target) = self.instance.import(call.import) else {
            return Ok(Site::Plain);
        };
        let words = &words[call.block.clone()];
        let mut varying = vec![false; words.len()];
        for &(_, at) in &call.words {
            varying[at as usize] = true;
        }
        for &(_, at) in &call.pairs {
            varying[at as usize..][..2].fill(true);
        }
        let shape = CallShape::new(words, &varying);
        Ok(match self.invocation.call_site(target, shape)? {
            None => Site::Plain,
            Some(callee) => Site::Prepared(PreparedSite {
                callee,
                words: words.into(),
                inputs: call.words.clone(),
                pairs: call.pairs.clone(),
                consumed: call.consumed.clone(),
            }),
        })
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
        fill(words, &call.words, &call.pairs, registers);
        let block = ArgumentBlock::with_constants(words, refs, self.instance.rodata());
        let invocation: &Invocation<'_> = self.invocation;
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

/// Puts the numbers that vary into a block, each at the word it goes to.
#[inline(always)]
fn fill(block: &mut [u32], words: &[(u16, u32)], pairs: &[(u16, u32)], registers: &Registers<'_>) {
    for &(register, at) in words {
        block[at as usize] = registers.word(register);
    }
    for &(register, at) in pairs {
        let pair = registers.pair(register);
        block[at as usize..][..2]
            .copy_from_slice(&[(pair & 0xFFFF_FFFF) as u32, (pair >> 32) as u32]);
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
