//! Reads, verifies, runs and disassembles IREE VM bytecode modules.
//!
//! A module file (`.vmfb`) becomes a [`VerifiedModule`] in one step, [`VerifiedModule::load`]: the container is found
//! ([`Archive`]), its description read ([`ModuleDef`]), and every instruction decoded and checked. Nothing else in this
//! crate accepts bytecode, so what runs was verified.
//!
//! Any bytes may be loaded: bad ones give an error that says what is wrong where, in time and memory linear in their
//! length.
//!
//! ```no_run
//! let file = std::fs::read("model.vmfb")?;
//! let module = vm_bytecode::VerifiedModule::load(&file)?;
//! for export in &module.def().exports {
//!     println!("{}", export.name);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`BytecodeModule`] makes a verified module ready to join a `vm::Context`: each function is compiled once to steps with
//! resolved branches and prepared calls, which the interpreter runs.
//!
//! The instruction set is one table; [`Opcode`] and all that knows opcodes is derived from it.
//!
//! # Features
//!
//! `jit` lets [`BytecodeModule::compiling`] compile hot loops to machine code, on x86-64.
//!
//! `tracing` adds the spans `load_module` and `compile_loop` of the [`tracing`](https://docs.rs/tracing) crate, and those
//! of `vm`.
#![forbid(unsafe_code)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod archive;
mod code;
mod compile;
mod constants;
mod debug;
mod decode;
mod disassemble;
#[cfg(test)]
mod encode;
mod fault;
mod features;
mod file_kind;
mod flatbuffer;
mod interpreter;
mod isa;
#[cfg(feature = "jit")]
mod loops;
mod module;
mod module_def;
mod program;
mod schema;
#[cfg(test)]
mod testing;
mod verify;

pub use archive::{Archive, ArchiveError, Container};
pub use code::{
    AnyReg, FunctionRef, I32Reg, I64Reg, Instruction, Operand, PoolRange, RefReg, Register,
    RemapPair,
};
pub use debug::DebugDatabase;
pub use disassemble::{Disassembler, FunctionDisassembler, Offsets, RodataText};
pub use fault::{Fault, FunctionError, Place};
pub use features::{BytecodeVersion, Features};
pub use file_kind::FileKind;
pub use flatbuffer::{FieldError, Problem};
pub use isa::{Opcode, OperandKind, Page};
pub use module::BytecodeModule;
pub use module_def::{
    Attribute, Dependency, Export, FunctionDescriptor, Import, ModuleDef, RodataPlacement,
    RodataSegment, Signature,
};
pub use verify::{Block, LoadError, VerifiedFunction, VerifiedModule, VerifyError};
