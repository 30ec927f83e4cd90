//! Bindings of a dispatch: parts of buffers, checked, as kernels get them.

use core::any::Any;
use std::sync::Arc;

use hal_local::{Binding, BindingSource};
use vm::{ArgumentBlock, Buffer, Bytes, Result};

use crate::dispatch::{BindingArgument, DispatchAbi, parse_dispatch};

/// The bindings that a block passes, for executables that ask for them one by one.
pub(crate) struct PassedBindings<'a> {
    pub(crate) block: &'a ArgumentBlock<'a>,
    pub(crate) abi: DispatchAbi,
}

impl BindingSource for PassedBindings<'_> {
    fn binding(&self, index: usize) -> Option<Binding<'_>> {
        let arguments = parse_dispatch(self.block.words(), self.abi).ok()?;
        let argument = arguments.bindings().nth(index)?;
        bind(self.block, argument).ok()
    }
}

/// Returns the memory that a binding names.
///
/// Constant bytes may only be read. Bytes that can change are given for writing even when the program may not write
/// them: whether a kernel writes is the compiler's affair, and the reference runtime lets it.
#[inline(always)]
pub(crate) fn bind<'a>(
    block: &ArgumentBlock<'a>,
    argument: BindingArgument,
) -> Result<Binding<'a>> {
    let buffer: &'a Arc<Buffer> = block.resolve(argument.buffer)?.as_buffer()?;
    // Executables that are not native code find the buffer behind the bytes by its type.
    let owner = Some(buffer as &(dyn Any + Send + Sync));
    Ok(match buffer.span(argument.offset, argument.length)? {
        Bytes::Shared(bytes) => Binding::shared(bytes, owner),
        Bytes::Constant(bytes) => Binding::read_only(bytes, owner),
    })
}
