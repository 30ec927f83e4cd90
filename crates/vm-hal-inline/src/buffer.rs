//! The functions on `hal.buffer`.

use std::sync::Arc;

use vm::{Buffer, BufferPool, Call, Ref, RefType, Result, StatusCode, Trap};

/// The type of refs made by [`hal_buffer`].
pub static HAL_BUFFER_TYPE: RefType = RefType::new("hal.buffer");

/// Returns `buffer` as a `hal.buffer`: the same memory under another type.
#[must_use]
#[inline]
pub fn hal_buffer(buffer: Arc<Buffer>) -> Ref {
    Ref::Aliased(&HAL_BUFFER_TYPE, buffer)
}

/// `buffer.allocate`, `0iI_rr`: alignment and length to a buffer and its storage. The bytes are not cleared.
pub(crate) fn allocate(pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let alignment = i64::from(arguments.i32()?);
    let length = arguments.i64()?;
    let buffer = Buffer::allocate_in(pool, length.cast_unsigned(), alignment.cast_unsigned())?;
    call.results.push_ref(hal_buffer(Arc::clone(&buffer)));
    call.results.push_ref(buffer);
    Ok(())
}

/// `buffer.allocate.initialized`, `0irII_rr`: alignment, source, offset and length to a buffer that holds a copy of
/// that part of the source, and its storage.
pub(crate) fn allocate_initialized(pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let alignment = i64::from(arguments.i32()?);
    let source = arguments.buffer()?;
    let offset = arguments.i64()?.cast_unsigned();
    let length = arguments.i64()?.cast_unsigned();
    // Checked before memory is asked for: a length beyond the source is a mistake, not a shortage.
    source.range(offset, length, 1)?;
    let buffer = Buffer::allocate_in(pool, length, alignment.cast_unsigned())?;
    buffer.copy_from(0, source, offset, length)?;
    call.results.push_ref(hal_buffer(Arc::clone(&buffer)));
    call.results.push_ref(buffer);
    Ok(())
}

/// `buffer.length`, `0r_I`.
pub(crate) fn length(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let buffer = call.arguments.reader().aliased(&HAL_BUFFER_TYPE)?;
    // A buffer is never longer than `isize::MAX`.
    call.results
        .push_i64((buffer.length() as u64).cast_signed());
    Ok(())
}

/// `buffer.storage`, `0r_r`: the memory of a buffer as a `vm.buffer`.
pub(crate) fn storage(_pool: &BufferPool, buffer: Ref) -> Result<Ref> {
    buffer.into_aliased(&HAL_BUFFER_TYPE).map(Ref::Buffer)
}

/// `buffer.subspan`, `0rII_r`: a part of a buffer, or the buffer itself when the part is all of it.
pub(crate) fn subspan(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let buffer = arguments.aliased(&HAL_BUFFER_TYPE)?;
    let (offset, length) = (arguments.i64()?, arguments.i64()?);
    let part = part(buffer, offset, length)?;
    call.results.push_ref(hal_buffer(part));
    Ok(())
}

/// `buffer.wrap`, `0rII_r`: refused, as in IREE's runtime.
///
/// The compiler emits it for traced tensors only; a program that traces fails the same way in both runtimes.
pub(crate) fn wrap(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    call.arguments.reader().buffer()?;
    Err(Trap::new(
        StatusCode::UNIMPLEMENTED,
        "vm->hal buffer wrapping not yet implemented",
    ))
}

/// Returns a part of a buffer; a length of -1 means up to its end.
#[inline]
pub(crate) fn part(buffer: &Arc<Buffer>, offset: i64, length: i64) -> Result<Arc<Buffer>> {
    let offset = offset.cast_unsigned();
    let length = match length {
        -1 => (buffer.length() as u64).saturating_sub(offset),
        length => length.cast_unsigned(),
    };
    buffer.subspan(offset, length)
}
