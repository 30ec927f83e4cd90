//! Hot loops as machine code.
//!
//! A loop is known by its head: the step that jumps backwards lead to. The interpreter counts those jumps. When a loop
//! has turned often enough, the steps of the natural loop around its head are translated to a `vm_jit::Loop`
//! (`translate`) and compiled, if each of them can be; from then on the interpreter enters the code at the head.
//!
//! The rule to know: the code never does what may fail. Before a step that would, and wherever the steps lead out of the
//! loop, it stores the registers that are still needed and gives the step to go on at; the interpreter runs that step
//! and makes the error, so that there is one source of both.

mod flow;
mod translate;

#[cfg(test)]
mod tests;

use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use vm::{Buffer, Bytes, Invocation, Ref};
use vm_jit::{CompiledLoop, MAX_BUFFERS, Span};

use crate::interpreter::REF_MASK;
use crate::program::{BACKWARDS, Function, Step};

/// The turns after which a loop is compiled. Compiling takes 0.2 to 0.5 ms for a loop of 5 to 30 steps, and interpreting so
/// many turns of it about as long.
pub(crate) const HOT_AFTER: u32 = 8000;

/// A loop of a function and what is known of it. Shared by all that run the function.
#[derive(Debug)]
pub(crate) struct Loop {
    head: u32,
    /// Turns that were counted; may miss some that threads count at the same time. [`GIVEN_UP`] when the loop cannot be
    /// compiled.
    turns: AtomicU32,
    /// The machine code; `None` inside when the loop cannot be compiled.
    code: OnceLock<Option<Code>>,
}

/// The machine code of a loop.
#[derive(Debug)]
struct Code {
    compiled: CompiledLoop,
    /// The ref registers whose buffers it accesses.
    buffers: Box<[u16]>,
}

/// Says that a loop is interpreted for good.
const GIVEN_UP: u32 = u32::MAX;

/// Finds the loops of a function and gives each step that jumps backwards the index of its loop, in `x`.
pub(crate) fn number(steps: &mut [Step]) -> Box<[Loop]> {
    let mut heads: Vec<u32> = steps.iter().filter_map(backward_target).collect();
    heads.sort_unstable();
    heads.dedup();
    for step in steps {
        if let Some(index) = backward_target(step).and_then(|head| heads.binary_search(&head).ok())
        {
            step.x = u32::try_from(index).expect("there are fewer loops than steps");
        }
    }
    let new = |head| Loop {
        head,
        turns: AtomicU32::new(0),
        code: OnceLock::new(),
    };
    heads.into_iter().map(new).collect()
}

/// Returns where a step jumps, when that is backwards. Tables of branches are left out.
fn backward_target(step: &Step) -> Option<u32> {
    let is_backwards = step.kind.is_jump() && step.y & BACKWARDS != 0;
    is_backwards.then_some(step.y & !BACKWARDS)
}

impl Loop {
    /// Returns whether turns of the loop are of interest: it has machine code or may have some.
    #[inline]
    pub(crate) fn is_watched(&self) -> bool {
        self.turns.load(Ordering::Relaxed) != GIVEN_UP
    }

    /// Takes note of a turn of the loop, runs its code when there is any, and returns the step to go on at. Makes the
    /// code when the loop turned `hot_after` times.
    pub(crate) fn turn(
        &self,
        function: &Function,
        hot_after: u32,
        registers: &mut [u8],
        refs: &[Ref],
        invocation: &Invocation<'_>,
    ) -> usize {
        let code = match self.code.get() {
            Some(code) => code,
            None => {
                let turns = self.turns.load(Ordering::Relaxed).saturating_add(1);
                self.turns.store(turns, Ordering::Relaxed);
                if turns < hot_after {
                    return self.head as usize;
                }
                let code = self.code.get_or_init(|| Code::new(function, self.head));
                if code.is_none() {
                    self.turns.store(GIVEN_UP, Ordering::Relaxed);
                }
                code
            }
        };
        let next = code
            .as_ref()
            .and_then(|code| code.run(registers, refs, invocation));
        next.unwrap_or(self.head) as usize
    }
}

impl Code {
    /// Compiles the loop around `head`, if that can be done.
    fn new(function: &Function, head: u32) -> Option<Self> {
        let (body, buffers) = translate::translate(function, head as usize)?;
        #[cfg(feature = "tracing")]
        let _span =
            tracing::debug_span!("compile_loop", function = function.ordinal, head).entered();
        let compiled = CompiledLoop::compile(&body);
        debug_assert!(
            !matches!(
                compiled,
                Err(vm_jit::CompileError::Malformed(_) | vm_jit::CompileError::Generator(_))
            ),
            "{compiled:?}"
        );
        Some(Self {
            compiled: compiled.ok()?,
            buffers: buffers.into(),
        })
    }

    /// Runs the code and returns the step to go on at, or `None` when the interpreter must run the loop: a register
    /// holds no buffer, or one that may not be written.
    fn run(&self, registers: &mut [u8], refs: &[Ref], invocation: &Invocation<'_>) -> Option<u32> {
        let mut spans = [Span::constant(&[]); MAX_BUFFERS];
        for (span, register) in spans.iter_mut().zip(&self.buffers) {
            let buffer = refs[usize::from(register & REF_MASK)].as_buffer().ok()?;
            *span = span_of(buffer);
        }
        let spans = &spans[..self.buffers.len()];
        self.compiled
            .run(registers, spans, invocation.interrupt_flag())
    }
}

/// Returns the bytes of a buffer, for machine code.
fn span_of(buffer: &Buffer) -> Span<'_> {
    match buffer.span(0, buffer.length() as u64) {
        Ok(Bytes::Constant(bytes)) => Span::constant(bytes),
        Ok(Bytes::Shared(bytes)) if buffer.access().is_mutable() => Span::writable(bytes),
        Ok(Bytes::Shared(bytes)) => Span::read_only(bytes),
        Err(_) => unreachable!("a buffer has all its bytes"),
    }
}
