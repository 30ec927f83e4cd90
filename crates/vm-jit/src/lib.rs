//! Compiles loops of register-machine code to machine code, with Cranelift.
//!
//! A [`Loop`] is a small form between bytecode and machine code: variables, blocks, typed operations, numbered buffers,
//! and ways out. [`CompiledLoop::compile`] checks it and makes code of it; [`CompiledLoop::run`] is safe to call with any
//! registers and buffers.
//!
//! The rule to know: whatever the loop says, its code only reads and writes the registers, buffers and flag that one
//! `run` is given. Accesses to registers are at offsets that are known when it is compiled, and `run` refuses a register
//! file that is too short; each access to a buffer compares its index with the buffer's length first, and leaves the loop
//! when the element is not there. The code calls nothing and keeps nothing.
//!
//! Where no machine code can be made, on processors other than x86-64 and systems other than Unix, `compile` fails and
//! the caller goes on without.
//!
//! # Examples
//! ```
//! use std::sync::atomic::AtomicBool;
//! use vm_jit::*;
//!
//! // Doubles the word at the start of the registers, and leaves with the code 7.
//! let word = Variable(0);
//! let double = Operation::Binary { operation: Binary::Add, on: Type::I32, to: word, left: word, right: word };
//! let place = Transfer { variable: word, offset: 0 };
//! let body = Loop {
//!     variables: vec![Width::Word],
//!     loads: vec![place],
//!     blocks: vec![Block { operations: vec![double], terminator: Terminator::Exit(ExitIndex(0)) }],
//!     exits: vec![Exit { stores: vec![place], code: 7 }],
//!     buffer_count: 0,
//! };
//! if let Ok(code) = CompiledLoop::compile(&body) {
//!     let mut registers = 21u32.to_le_bytes();
//!     assert_eq!(code.run(&mut registers, &[], &AtomicBool::new(false)), Some(7));
//!     assert_eq!(u32::from_le_bytes(registers), 42);
//! }
//! ```
#![deny(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod check;
mod ir;
mod span;

#[cfg(all(unix, target_arch = "x86_64"))]
mod code;
#[cfg(all(unix, target_arch = "x86_64"))]
mod translate;

#[cfg(not(all(unix, target_arch = "x86_64")))]
#[path = "no_code.rs"]
mod code;

#[cfg(test)]
mod tests;

pub use code::CompiledLoop;
pub use ir::{
    Binary, Block, BlockIndex, BufferIndex, Comparison, Conversion, Division, Element, Exit,
    ExitIndex, Loop, Operation, Shift, Terminator, Transfer, Type, Unary, Variable, Width,
};
pub use span::Span;

/// The most buffers of a loop.
pub const MAX_BUFFERS: usize = 16;

/// The most bytes of a register file that a loop can name.
pub const MAX_REGISTER_BYTES: u32 = 1 << 20;

/// Why a loop is not compiled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The loop is not well-formed.
    #[error("the loop is malformed: {0}")]
    Malformed(&'static str),
    /// No machine code can be made here.
    #[error("this host cannot run compiled loops: {0}")]
    Host(&'static str),
    /// The code generator failed.
    #[error("the code generator failed: {0}")]
    Generator(String),
    /// The code needs something that is not part of it, such as a function of the C library.
    #[error("the code of the loop would not be self-contained")]
    NotSelfContained,
    /// There is no memory for the code.
    #[error("no memory for the code of the loop")]
    Memory(#[source] std::io::Error),
}
