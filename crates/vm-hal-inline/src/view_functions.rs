//! The functions on `hal.buffer_view`.

use core::fmt;
use std::sync::Arc;

use vm::{
    ArgumentBlock, ArgumentReader, Atom, Buffer, BufferPool, Call, CallShape, CallSite, Invocation,
    Ref, Result, Trap,
};

use crate::buffer::{HAL_BUFFER_TYPE, hal_buffer, part};
use crate::buffer_view::{BUFFER_VIEW_TYPE, BufferView, BufferViewError, check_rank};
use crate::shape::{Shape, Spelled};
use crate::{ElementType, EncodingType, TraceSink};

/// `buffer_view.create`, `0rIIiiCID_r`: buffer, offset, length, element type, encoding type and dimensions to a view.
pub(crate) fn create(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    let block = &call.arguments;
    let Some(arguments) = ViewArguments::parse(block.words()) else {
        return Err(explain(block, &[Atom::Ref, Atom::I64, Atom::I64]));
    };
    let &[
        buffer,
        _,
        _,
        _,
        offset_low,
        offset_high,
        length_low,
        length_high,
    ] = arguments.head;
    let buffer = block.resolve(buffer)?.as_aliased(&HAL_BUFFER_TYPE)?;
    let offset = wide([offset_low, offset_high]).cast_signed();
    let length = wide([length_low, length_high]).cast_signed();
    check_rank(arguments.dimensions.len())?;
    let shape = shape(arguments.dimensions)?;
    let buffer = part(buffer, offset, length)?;
    let (element_type, encoding_type) = (arguments.element_type, arguments.encoding_type);
    let view = BufferView::with_shape(buffer, element_type, encoding_type, shape)?;
    call.results.push_ref(view.into_ref());
    Ok(())
}

/// `buffer_view.assert`, `0rriiCID_v`: checks that a view is as the program expects. The second argument is how a
/// message calls the view, for example `input0`.
pub(crate) fn assert(_pool: &BufferPool, call: &mut Call<'_, '_>) -> Result<()> {
    assert_in(&call.arguments)
}

/// Returns what calls `buffer_view.assert` from one place: a program expects the same each time.
pub(crate) fn assert_site(
    _pool: &BufferPool,
    call_shape: CallShape<'_>,
) -> Option<Box<dyn CallSite>> {
    let words = call_shape.words();
    let expected = ViewArguments::parse(words)?;
    if (0..words.len()).any(|at| call_shape.varies(at))
        || check_rank(expected.dimensions.len()).is_err()
    {
        return None;
    }
    let &[view, _, _, _, name, ..] = expected.head;
    Some(Box::new(AssertSite {
        view,
        name,
        element_type: expected.element_type,
        encoding_type: expected.encoding_type,
        shape: shape(expected.dimensions).ok()?,
    }))
}

/// A place of a program that checks views: the indices of the refs, and what is expected.
#[derive(Debug)]
struct AssertSite {
    view: u32,
    name: u32,
    element_type: ElementType,
    encoding_type: EncodingType,
    shape: Shape,
}

impl AssertSite {
    #[inline]
    fn accepts(&self, view: &BufferView) -> bool {
        let encoding_type = view.encoding_type();
        (encoding_type == self.encoding_type || encoding_type == EncodingType::OPAQUE)
            && *view.shape() == *self.shape
            && view.element_type().is_compatible_with(self.element_type)
    }
}

impl CallSite for AssertSite {
    fn call(&mut self, block: ArgumentBlock<'_>, _invocation: &Invocation<'_>) -> Result<()> {
        if let Some(view) = block.get(self.view).and_then(Ref::object_of_type)
            && let Some(Ref::Buffer(_)) = block.get(self.name)
            && self.accepts(view)
        {
            return Ok(());
        }
        assert_in(&block)
    }
}

/// Checks a view that a block passes.
fn assert_in(block: &ArgumentBlock<'_>) -> Result<()> {
    let Some(expected) = ViewArguments::parse(block.words()) else {
        return Err(explain(block, &[Atom::Ref, Atom::Ref]));
    };
    let &[view, _, _, _, name, ..] = expected.head;
    let view: &BufferView = block.resolve(view)?.as_object(&BUFFER_VIEW_TYPE)?;
    let name = block.resolve(name)?.as_buffer()?;
    check_rank(expected.dimensions.len())?;

    let encoding_fits = view.encoding_type() == expected.encoding_type
        || view.encoding_type() == EncodingType::OPAQUE;
    let shape = view.shape();
    let mut dimensions = expected.dimensions.iter().zip(shape);
    if encoding_fits
        && shape.len() == expected.dimensions.len()
        && dimensions.all(|(expected, actual)| wide(*expected) == *actual as u64)
        && view
            .element_type()
            .is_compatible_with(expected.element_type)
    {
        return Ok(());
    }
    Err(mismatch(view, name, block.words()))
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

/// The arguments of `create` and `assert`, which differ in their first eight words only.
struct ViewArguments<'a> {
    head: &'a [u32; 8],
    element_type: ElementType,
    encoding_type: EncodingType,
    /// Each in two words.
    dimensions: &'a [[u32; 2]],
}

impl<'a> ViewArguments<'a> {
    /// Returns the arguments in a block of these words, or `None` when it ends before them.
    #[inline]
    fn parse(words: &'a [u32]) -> Option<Self> {
        let (head, rest) = words.split_first_chunk()?;
        let (&[element_type, encoding_type, rank], rest) = rest.split_first_chunk()?;
        // Dimensions begin at an even word; nothing need be there when there are none.
        let dimensions = match rank {
            0 => &[],
            _ => rest.get(1..)?.as_chunks().0.get(..rank as usize)?,
        };
        Some(Self {
            head,
            element_type: ElementType::from_raw(element_type),
            encoding_type: EncodingType::from_raw(encoding_type),
            dimensions,
        })
    }
}

/// Returns why [`ViewArguments::parse`] refuses a block; `head` are the arguments before the types.
#[cold]
fn explain(block: &ArgumentBlock<'_>, head: &[Atom]) -> Trap {
    match read_step_by_step(block, head) {
        Err(trap) => trap,
        Ok(()) => Trap::invalid_argument("argument/result signature mismatch"),
    }
}

/// Reads the arguments as [`ViewArguments`], to find the first that is not there.
fn read_step_by_step(block: &ArgumentBlock<'_>, head: &[Atom]) -> Result<()> {
    let mut arguments = block.reader();
    for atom in head {
        match atom {
            Atom::Ref => arguments.reference().map(drop)?,
            _ => arguments.i64().map(drop)?,
        }
    }
    arguments.i32()?;
    arguments.i32()?;
    let rank = arguments.span(&[Atom::I64])?;
    check_rank(rank)?;
    arguments.words(2 * rank).map(drop)
}

/// Returns the shape of these dimensions.
#[inline]
fn shape(dimensions: &[[u32; 2]]) -> core::result::Result<Shape, BufferViewError> {
    if let Some(error) = dimensions.iter().enumerate().find_map(too_large) {
        return Err(error);
    }
    // None is truncated: all were found to fit.
    Ok(Shape::new(dimensions, |dimension| {
        usize::try_from(wide(*dimension)).unwrap_or(usize::MAX)
    }))
}

/// Returns the error of a dimension that does not fit the address space.
#[inline]
fn too_large((index, dimension): (usize, &[u32; 2])) -> Option<BufferViewError> {
    let dimension = wide(*dimension);
    let fits = usize::try_from(dimension).is_ok();
    (!fits).then_some(BufferViewError::Dimension { index, dimension })
}

#[inline]
fn wide([low, high]: [u32; 2]) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

/// Returns the first difference between a view and what was expected of it, in the words of IREE's runtime.
#[cold]
fn mismatch(view: &BufferView, name: &Buffer, words: &[u32]) -> Trap {
    let name = text(name);
    // Read again, so that the caller need not keep them in memory for this.
    let Some(ViewArguments {
        element_type,
        encoding_type,
        dimensions,
        ..
    }) = ViewArguments::parse(words)
    else {
        return Trap::invalid_argument("argument/result signature mismatch");
    };
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
