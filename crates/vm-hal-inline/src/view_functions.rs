//! The functions on `hal.buffer_view`.

use core::fmt;
use std::sync::Arc;

use vm::{ArgumentReader, Atom, Buffer, BufferPool, Call, Ref, Result, Trap};

use crate::buffer::{HAL_BUFFER_TYPE, hal_buffer, part};
use crate::buffer_view::{BUFFER_VIEW_TYPE, BufferView, BufferViewError, check_rank};
use crate::shape::{Shape, Spelled};
use crate::{ElementType, EncodingType, TraceSink};

/// `buffer_view.create`, `0rIIiiCID_r`: buffer, offset, length, element type, encoding type and dimensions to a view.
pub(crate) fn create(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let buffer = arguments.aliased(&HAL_BUFFER_TYPE)?;
    let (offset, length) = (arguments.i64()?, arguments.i64()?);
    let (element_type, encoding_type) = types(&mut arguments)?;
    let shape = shape(dimensions(&mut arguments)?)?;
    let buffer = part(buffer, offset, length)?;
    let view = BufferView::with_shape(buffer, element_type, encoding_type, shape)?;
    call.results.push_ref(view);
    Ok(())
}

/// `buffer_view.assert`, `0rriiCID_v`: checks that a view is as the program expects. The second argument is how a
/// message calls the view, for example `input0`.
pub(crate) fn assert(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let view = next_view(&mut arguments)?;
    let name = arguments.buffer()?;
    let (element_type, encoding_type) = types(&mut arguments)?;
    let dimensions = dimensions(&mut arguments)?;

    let encoding_fits =
        view.encoding_type() == encoding_type || view.encoding_type() == EncodingType::OPAQUE;
    let shape_fits = view.shape().len() == dimensions.len()
        && dimensions
            .iter()
            .zip(view.shape())
            .all(|(expected, actual)| wide(*expected) == *actual as u64);
    if encoding_fits && shape_fits && view.element_type().is_compatible_with(element_type) {
        return Ok(());
    }
    Err(mismatch(
        view,
        name,
        element_type,
        encoding_type,
        dimensions,
    ))
}

/// `buffer_view.buffer`, `0r_r`.
pub(crate) fn buffer(_pool: &BufferPool, view: Ref) -> Result<Ref> {
    let view: &BufferView = view.as_object(&BUFFER_VIEW_TYPE)?;
    Ok(hal_buffer(Arc::clone(view.buffer())))
}

/// `buffer_view.dim`, `0ri_I`: the size of a dimension, 0 when there is no such dimension.
pub(crate) fn dim(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let view = next_view(&mut arguments)?;
    let index = usize::try_from(arguments.i32()?).unwrap_or(usize::MAX);
    let dimension = view.shape().get(index).copied().unwrap_or(0);
    call.results.push_i64((dimension as u64).cast_signed());
    Ok(())
}

/// `buffer_view.element_type`, `0r_i`.
pub(crate) fn element_type(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let view = next_view(&mut call.arguments.reader())?;
    call.results
        .push_i32(view.element_type().raw().cast_signed());
    Ok(())
}

/// `buffer_view.encoding_type`, `0r_i`.
pub(crate) fn encoding_type(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let view = next_view(&mut call.arguments.reader())?;
    call.results
        .push_i32(view.encoding_type().raw().cast_signed());
    Ok(())
}

/// `buffer_view.rank`, `0r_i`.
pub(crate) fn rank(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let view = next_view(&mut call.arguments.reader())?;
    let rank = i32::try_from(view.shape().len());
    call.results.push_i32(rank.unwrap_or(i32::MAX));
    Ok(())
}

/// `buffer_view.trace`, `0rCrD_v`: gives a key and views to the embedder's sink. Without one there is nobody to tell,
/// but the arguments are checked all the same.
pub(crate) fn trace(sink: Option<&dyn TraceSink>, call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let key = arguments.buffer()?;
    let count = arguments.span(&[Atom::Ref])?;
    let views = (0..count)
        .map(|_| next_view(&mut arguments))
        .collect::<Result<Vec<_>>>()?;
    if let Some(sink) = sink {
        sink.trace(&text(key), &views);
    }
    Ok(())
}

/// Returns the bytes of a buffer as text; what is not UTF-8 is replaced.
pub(crate) fn text(buffer: &Buffer) -> String {
    String::from_utf8_lossy(&buffer.to_vec()).into_owned()
}

#[inline]
fn next_view<'a>(arguments: &mut ArgumentReader<'a>) -> Result<&'a BufferView> {
    arguments.reference()?.as_object(&BUFFER_VIEW_TYPE)
}

#[inline]
fn types(arguments: &mut ArgumentReader<'_>) -> Result<(ElementType, EncodingType)> {
    let element_type = ElementType::from_raw(arguments.i32()?.cast_unsigned());
    let encoding_type = EncodingType::from_raw(arguments.i32()?.cast_unsigned());
    Ok((element_type, encoding_type))
}

/// Reads a span of dimensions, each in two words.
#[inline]
fn dimensions<'a>(arguments: &mut ArgumentReader<'a>) -> Result<&'a [[u32; 2]]> {
    let rank = arguments.span(&[Atom::I64])?;
    check_rank(rank)?;
    let (dimensions, _) = arguments.words(2 * rank)?.as_chunks();
    Ok(dimensions)
}

/// Returns the shape of these dimensions.
#[inline]
fn shape(dimensions: &[[u32; 2]]) -> core::result::Result<Shape, BufferViewError> {
    Shape::try_collect(dimensions.iter().enumerate().map(|(index, dimension)| {
        let dimension = wide(*dimension);
        usize::try_from(dimension).map_err(|_| BufferViewError::Dimension { index, dimension })
    }))
}

#[inline]
fn wide([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Returns the first difference between a view and what was expected of it, in the words of IREE's runtime.
#[cold]
fn mismatch(
    view: &BufferView,
    name: &Buffer,
    element_type: ElementType,
    encoding_type: EncodingType,
    dimensions: &[[u32; 2]],
) -> Trap {
    let name = text(name);
    let (actual, expected) = (view.encoding_type(), encoding_type);
    if actual != expected && actual != EncodingType::OPAQUE {
        return Trap::invalid_argument(format!(
            "{name} encoding mismatch; expected {:08X} but have {:08X}",
            expected.raw(),
            actual.raw()
        ));
    }
    let (actual, expected) = (view.element_type(), element_type);
    if !actual.is_compatible_with(expected) {
        return Trap::invalid_argument(format!(
            "{name} element type mismatch; expected {expected} ({:08X}) but have {actual} ({:08X})",
            expected.raw(),
            actual.raw()
        ));
    }
    let (actual, expected) = match shape(dimensions) {
        Ok(expected) => (view.shape(), expected),
        Err(error) => return error.into(),
    };
    let shapes = format!(
        "expected shape `{}`, actual shape `{}`",
        Spelled(&expected),
        Spelled(actual)
    );
    if actual.len() != expected.len() {
        return Trap::invalid_argument(format!(
            "{name} shape rank mismatch; expected {} but have {}; {shapes}",
            Rank(expected.len()),
            Rank(actual.len())
        ));
    }
    let differing = actual
        .iter()
        .zip(&*expected)
        .position(|(actual, expected)| actual != expected);
    let index = differing.unwrap_or_default();
    Trap::invalid_argument(format!(
        "{name} shape dimension {index} mismatch; expected {} but have {}; {shapes}",
        expected.get(index).copied().unwrap_or_default(),
        actual.get(index).copied().unwrap_or_default()
    ))
}

/// Spells a rank for a message.
struct Rank(usize);

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scalar = if self.0 == 0 { " (scalar)" } else { "" };
        write!(f, "{}{scalar}", self.0)
    }
}
