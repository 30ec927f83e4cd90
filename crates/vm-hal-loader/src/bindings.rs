//! Bindings of a dispatch: parts of buffers, checked, as kernels get them.

use std::sync::Arc;

use arrayvec::ArrayVec;
use hal_local::Binding;
use vm::{ArgumentBlock, Buffer, Bytes, Result};

use crate::dispatch::{BindingArgument, DispatchArguments, MAX_BINDINGS};
use crate::failure::binding_failure;

/// Bindings on the stack: a dispatch allocates nothing.
pub(crate) type Bindings<'a> = ArrayVec<Binding<'a>, MAX_BINDINGS>;

/// Appends the bindings of a dispatch to `bindings`, which is empty.
///
/// Constant bytes may only be read. Bytes that can change are given for writing even when the program may not write
/// them: whether a kernel writes is the compiler's affair, and the reference runtime lets it.
#[inline(always)]
pub(crate) fn collect<'a>(
    block: ArgumentBlock<'a>,
    arguments: &DispatchArguments<'a>,
    bindings: &mut Bindings<'a>,
) -> Result<()> {
    for argument in arguments.bindings() {
        match bind(block, argument) {
            // There is room: `arguments` has at most `MAX_BINDINGS`.
            Ok(binding) => bindings.push(binding),
            Err(trap) => return Err(binding_failure(bindings.len(), &trap)),
        }
    }
    Ok(())
}

#[inline]
fn bind<'a>(block: ArgumentBlock<'a>, argument: BindingArgument) -> Result<Binding<'a>> {
    let buffer: &'a Arc<Buffer> = block.resolve(argument.buffer)?.as_buffer()?;
    // Executables that are not native code find the buffer behind the bytes by its type.
    let owner = Some(buffer as &(dyn core::any::Any + Send + Sync));
    Ok(match buffer.span(argument.offset, argument.length)? {
        Bytes::Shared(bytes) => Binding::shared(bytes, owner),
        Bytes::Constant(bytes) => Binding::read_only(bytes, owner),
    })
}
