//! Elementwise functions: one result for each element of one or two operands.
//!
//! Rows are worked on in pieces that lie on the stack, so that the compiler vectorizes the inner loop and a buffer is
//! touched in whole runs. Results equal those of a loop over single elements, unless an output overlaps an input at
//! another position, which programs do not do.

use vm::{Call, Result, Trap, Word};

use crate::span::{Operand, checked_sizes};

/// Elements of a piece.
const PIECE: usize = 256;

/// Runs a function of one operand: `in, in_offset, in_strides, out, out_offset, out_strides, sizes`.
pub(crate) fn unary<W: Word + bytemuck::Pod>(
    call: &mut Call<'_, '_>,
    function: impl Fn(W) -> W,
) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let input = Operand::read("in", &mut arguments)?;
    let output = Operand::read("out", &mut arguments)?;
    let sizes = checked_sizes(input.name, [arguments.i64()?, arguments.i64()?])?;
    let input = input.source::<W>(sizes)?;
    let output = output.target::<W>(sizes)?;
    for_each_piece(call, sizes, |row, column, length| {
        let mut values = [W::zeroed(); PIECE];
        let values = &mut values[..length];
        input.read(row, column, values)?;
        values
            .iter_mut()
            .for_each(|value| *value = function(*value));
        output.write(row, column, values)
    })
}

/// Runs a function of two operands: `lhs…, rhs…, out…, sizes`.
pub(crate) fn binary<W: Word + bytemuck::Pod>(
    call: &mut Call<'_, '_>,
    function: impl Fn(W, W) -> W,
) -> Result<()> {
    try_binary(call, |left, right| Ok(function(left, right)))
}

/// Runs a function of two operands that may fail.
pub(crate) fn try_binary<W: Word + bytemuck::Pod>(
    call: &mut Call<'_, '_>,
    function: impl Fn(W, W) -> Result<W>,
) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let left = Operand::read("lhs", &mut arguments)?;
    let right = Operand::read("rhs", &mut arguments)?;
    let output = Operand::read("out", &mut arguments)?;
    let sizes = checked_sizes(left.name, [arguments.i64()?, arguments.i64()?])?;
    let left = left.source::<W>(sizes)?;
    let right = right.source::<W>(sizes)?;
    let output = output.target::<W>(sizes)?;
    for_each_piece(call, sizes, |row, column, length| {
        let (mut values, mut others) = ([W::zeroed(); PIECE], [W::zeroed(); PIECE]);
        let (values, others) = (&mut values[..length], &mut others[..length]);
        left.read(row, column, values)?;
        right.read(row, column, others)?;
        for (value, other) in values.iter_mut().zip(&*others) {
            *value = function(*value, *other)?;
        }
        output.write(row, column, values)
    })
}

/// Runs a function of the bits of two floats.
pub(crate) fn binary_f32(
    call: &mut Call<'_, '_>,
    function: impl Fn(f32, f32) -> f32,
) -> Result<()> {
    binary(call, |left: u32, right| {
        function(f32::from_bits(left), f32::from_bits(right)).to_bits()
    })
}

/// Runs a function of the bits of a float.
pub(crate) fn unary_f32(call: &mut Call<'_, '_>, function: impl Fn(f32) -> f32) -> Result<()> {
    unary(call, |value: u32| function(f32::from_bits(value)).to_bits())
}

/// Sets all elements: `value, out, out_offset, out_row_stride, sizes`; the elements of a row lie side by side.
pub(crate) fn fill(call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let value = arguments.i32()?.cast_unsigned();
    let (buffer, offset, stride) = (arguments.reference()?, arguments.i64()?, arguments.i64()?);
    let output = Operand {
        name: "out",
        buffer,
        offset,
        strides: [stride, 1],
    };
    let sizes = checked_sizes(output.name, [arguments.i64()?, arguments.i64()?])?;
    let output = output.target::<u32>(sizes)?;
    let values = [value; PIECE];
    for_each_piece(call, sizes, |row, column, length| {
        output.write(row, column, &values[..length])
    })
}

/// Divides signed, truncating; the smallest number by -1 wraps to itself.
pub(crate) fn divide_signed(left: u32, right: u32) -> Result<u32> {
    if right == 0 {
        return Err(division_by_zero());
    }
    Ok(left
        .cast_signed()
        .wrapping_div(right.cast_signed())
        .cast_unsigned())
}

/// Divides unsigned.
pub(crate) fn divide_unsigned(left: u32, right: u32) -> Result<u32> {
    left.checked_div(right).ok_or_else(division_by_zero)
}

#[cold]
fn division_by_zero() -> Trap {
    Trap::invalid_argument("integer division by zero")
}

/// Calls `visit(row, column, length)` for pieces that cover the sizes, row by row. With strides of zero there may be
/// many more than the buffers have elements.
fn for_each_piece(
    call: &Call<'_, '_>,
    sizes: [u64; 2],
    mut visit: impl FnMut(usize, usize, usize) -> Result<()>,
) -> Result<()> {
    // Sizes are below 2^32, and spans that are larger than the machine's memory were refused.
    let [rows, columns] = sizes.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if columns == 0 {
        return Ok(());
    }
    for row in 0..rows {
        for column in (0..columns).step_by(PIECE) {
            call.invocation.do_piece()?;
            visit(row, column, PIECE.min(columns - column))?;
        }
    }
    Ok(())
}
