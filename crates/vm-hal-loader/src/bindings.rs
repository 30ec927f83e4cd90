//! Bindings of a dispatch: parts of buffers, checked, as kernels get them.

use core::any::Any;
use std::sync::Arc;

use hal_local::Binding;
use vm::{ArgumentBlock, Buffer, Bytes, Ref, Result};

use crate::dispatch::BindingArgument;

/// Returns the memory that a binding names.
pub(crate) fn bind<'a>(
    block: &ArgumentBlock<'a>,
    argument: BindingArgument,
) -> Result<Binding<'a>> {
    let buffer = block.resolve(argument.buffer)?.as_buffer()?;
    let bytes = buffer.span(argument.offset, argument.length)?;
    Ok(binding(buffer, bytes))
}

/// Returns the memory that a binding names, or `None` when [`bind`] fails.
#[inline(always)]
pub(crate) fn try_bind<'a>(
    block: &ArgumentBlock<'a>,
    argument: &BindingArgument,
) -> Option<Binding<'a>> {
    let Ref::Buffer(buffer) = block.get(argument.buffer)? else {
        return None;
    };
    let bytes = buffer.get_span(argument.offset, argument.length)?;
    Some(binding(buffer, bytes))
}

/// Returns the binding of some bytes of a buffer.
///
/// Constant bytes may only be read. Bytes that can change are given for writing even when the program may not write
/// them: whether a kernel writes is the compiler's affair, and the reference runtime lets it.
#[inline(always)]
fn binding<'a>(buffer: &'a Arc<Buffer>, bytes: Bytes<'a>) -> Binding<'a> {
    // Executables that are not native code find the buffer behind the bytes by its type.
    let owner = Some(buffer as &(dyn Any + Send + Sync));
    match bytes {
        Bytes::Shared(bytes) => Binding::shared(bytes, owner),
        Bytes::Constant(bytes) => Binding::read_only(bytes, owner),
    }
}
