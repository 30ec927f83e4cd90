//! Compiled loops where there are none: everything is refused.

use core::convert::Infallible;
use core::sync::atomic::AtomicBool;

use crate::check::check;
use crate::{CompileError, Loop, Span};

/// A loop as machine code, which this host cannot run: there is no value of this type.
#[derive(Debug)]
pub struct CompiledLoop(Infallible);

impl CompiledLoop {
    /// Fails: no machine code can be made here.
    ///
    /// # Errors
    /// [`CompileError::Host`], or [`CompileError::Malformed`] when the loop is not well-formed.
    pub fn compile(body: &Loop) -> Result<Self, CompileError> {
        check(body)?;
        Err(CompileError::Host(
            "no code generator for this processor or system",
        ))
    }

    /// Runs the loop.
    #[must_use]
    pub fn run(&self, _: &mut [u8], _: &[Span<'_>], _: &AtomicBool) -> Option<u32> {
        match self.0 {}
    }

    /// Returns the size of the code in bytes.
    #[must_use]
    pub fn code_size(&self) -> usize {
        match self.0 {}
    }
}
