//! Verification of one function: its descriptor, its body, its blocks.
//!
//! Operands are checked in [`super::operands`].

use core::ops::Range;

use vm::CallingConvention;

use super::operands::check_instruction;
use super::{VerifiedFunction, argument_registers};
use crate::decode::decode_body;
use crate::fault::{Fault, FunctionError};
use crate::{Block, FunctionDescriptor, ModuleDef};

/// Most registers of the 32-bit bank.
const MAX_I32_REGISTERS: u16 = 0x7FFF;
/// Most registers of the ref bank.
const MAX_REF_REGISTERS: u16 = 0x3FFF;

/// The parts of a module that instructions refer to.
#[derive(Clone, Copy)]
pub(super) struct ModuleView<'a> {
    pub(super) def: &'a ModuleDef,
    pub(super) imports: &'a [CallingConvention],
    pub(super) functions: &'a [CallingConvention],
}

/// The parts of a function that its instructions refer to.
#[derive(Clone, Copy)]
pub(super) struct FunctionView<'a> {
    pub(super) module: ModuleView<'a>,
    pub(super) descriptor: &'a FunctionDescriptor,
    pub(super) convention: &'a CallingConvention,
    pub(super) i32_register_count: u16,
    pub(super) ref_register_count: u16,
    pub(super) blocks: &'a [Block],
}

/// Verifies the function whose body is the range `body` of `file`.
pub(super) fn verify(
    module: &ModuleView<'_>,
    ordinal: u32,
    descriptor: &FunctionDescriptor,
    file: &[u8],
    body: Range<usize>,
) -> Result<VerifiedFunction, FunctionError> {
    let convention = &module.functions[ordinal as usize];
    let (i32_arguments, ref_arguments) = argument_registers(convention);
    let i32_register_count = register_count(
        "32-bit",
        descriptor.i32_register_count,
        MAX_I32_REGISTERS,
        i32_arguments,
    )?;
    let ref_register_count = register_count(
        "ref",
        descriptor.ref_register_count,
        MAX_REF_REGISTERS,
        ref_arguments,
    )?;

    let (code, blocks) = decode_body(&file[body.clone()])?;
    if usize::try_from(descriptor.block_count) != Ok(blocks.len()) {
        let fault = Fault::BlockCount {
            declared: descriptor.block_count,
            found: blocks.len(),
        };
        return Err(FunctionError::at(0, fault));
    }
    let view = FunctionView {
        module: *module,
        descriptor,
        convention,
        i32_register_count,
        ref_register_count,
        blocks: &blocks,
    };
    for index in 0..code.len() {
        check_instruction(&view, &code.instruction(index))?;
    }
    Ok(VerifiedFunction {
        convention: convention.clone(),
        features: descriptor.features,
        i32_register_count,
        ref_register_count,
        body,
        blocks,
        code,
    })
}

/// Checks the size of a register bank.
fn register_count(
    bank: &'static str,
    declared: i16,
    most: u16,
    arguments: usize,
) -> Result<u16, FunctionError> {
    let count = u16::try_from(declared)
        .ok()
        .filter(|&count| count <= most && usize::from(count) >= arguments);
    count.ok_or_else(|| {
        FunctionError::at(
            0,
            Fault::RegisterCount {
                bank,
                declared,
                most,
                arguments,
            },
        )
    })
}
