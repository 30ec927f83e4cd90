//! `mmt4d`: the product of a tiled matrix and a transposed tiled matrix.
//!
//! `lhs` is `[M][K][M0][K0]`, `rhs` is `[N][K][N0][K0]`, `out` is `[M][N][M0][N0]`; only the outermost stride is free
//! (`docs/vmvx.md`, section "Matrix product"). Products are added in the order of K, then K0, each multiplication and
//! addition rounded: the results do not depend on the machine or the shape of the tiles.
//!
//! How it is fast: a panel of `rhs` is copied once, with the N0 elements of each step side by side, and used for all
//! rows; a block of rows and columns is summed in registers. The compiler vectorizes over the columns.

use vm::{Call, Invocation, Result, StatusCode, Trap, Word};

use super::pack::unhandled_flags;
use crate::span::{Operand, Span, checked_sizes};

/// Element types in the low byte of the flags.
const F32_F32_F32: u32 = 1;
const S8_S8_S32: u32 = 2;
/// Adds to what `out` holds instead of setting it.
const ACCUMULATE: u32 = 0x100;

/// Rows and columns that are summed at once.
const ROWS: usize = 4;
const COLUMNS: usize = 4;

/// An element type of the product: how inputs are read and summed.
trait Element {
    /// Bits of an input.
    type Input: Word + bytemuck::Pod + Default;
    /// An input ready to multiply, and a sum.
    type Number: Copy + Default;

    fn widen(input: Self::Input) -> Self::Number;
    fn multiply_add(sum: Self::Number, left: Self::Number, right: Self::Number) -> Self::Number;
    fn from_bits(bits: u32) -> Self::Number;
    fn to_bits(number: Self::Number) -> u32;
}

struct Float;

impl Element for Float {
    type Input = u32;
    type Number = f32;

    fn widen(input: u32) -> f32 {
        f32::from_bits(input)
    }

    fn multiply_add(sum: f32, left: f32, right: f32) -> f32 {
        sum + left * right
    }

    fn from_bits(bits: u32) -> f32 {
        f32::from_bits(bits)
    }

    fn to_bits(number: f32) -> u32 {
        number.to_bits()
    }
}

struct Integer;

impl Element for Integer {
    type Input = u8;
    type Number = i32;

    fn widen(input: u8) -> i32 {
        input.cast_signed().into()
    }

    fn multiply_add(sum: i32, left: i32, right: i32) -> i32 {
        sum.wrapping_add(left.wrapping_mul(right))
    }

    fn from_bits(bits: u32) -> i32 {
        bits.cast_signed()
    }

    fn to_bits(number: i32) -> u32 {
        number.cast_unsigned()
    }
}

/// Sizes of the product. All products of sizes that are used fit: the operands lie in buffers.
struct Sizes {
    outer: [usize; 3],
    tile: [usize; 3],
}

/// Runs the export.
pub(crate) fn mmt4d(call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let mut operand = |name| {
        let (buffer, offset, stride) = (arguments.reference()?, arguments.i64()?, arguments.i64()?);
        Ok::<_, Trap>(Operand {
            name,
            buffer,
            offset,
            strides: [stride, 1],
        })
    };
    let (left, right, output) = (operand("lhs")?, operand("rhs")?, operand("out")?);
    let outer = [arguments.i64()?, arguments.i64()?, arguments.i64()?];
    let tile = [arguments.i32()?, arguments.i32()?, arguments.i32()?].map(i64::from);
    let flags = arguments.i32()?.cast_unsigned();
    match flags & 0xFF {
        F32_F32_F32 => product::<Float>(call.invocation, left, right, output, outer, tile, flags),
        S8_S8_S32 => product::<Integer>(call.invocation, left, right, output, outer, tile, flags),
        _ => Err(unhandled_flags()),
    }
}

fn product<E: Element>(
    invocation: &Invocation<'_>,
    left: Operand<'_>,
    right: Operand<'_>,
    output: Operand<'_>,
    [m, n, k]: [i64; 3],
    [m0, n0, k0]: [i64; 3],
    flags: u32,
) -> Result<()> {
    // Tile sizes are 32-bit, so a product of two of them fits; one that is multiplied by an outer size may not, and is
    // then larger than any buffer.
    let columns = |outer: i64, tile: i64| outer.checked_mul(tile).unwrap_or(i64::MAX);
    let left_span = left.source::<E::Input>(checked_sizes(left.name, [m, columns(k, m0 * k0)])?)?;
    let right_span =
        right.source::<E::Input>(checked_sizes(right.name, [n, columns(k, n0 * k0)])?)?;
    let output_span =
        output.target::<u32>(checked_sizes(output.name, [m, columns(n, m0 * n0)])?)?;
    let [m, n, k, m0, n0, k0] =
        [m, n, k, m0, n0, k0].map(|size| usize::try_from(size).unwrap_or(0));
    // Not their products: those of sizes beside a zero need not fit.
    let is_empty = [m, n, m0, n0].contains(&0);
    let adds_nothing = [k, k0].contains(&0) && flags & ACCUMULATE != 0;
    if is_empty || adds_nothing {
        return Ok(());
    }
    let sizes = Sizes {
        outer: [m, n, k],
        tile: [m0, n0, k0],
    };
    multiply::<E>(
        invocation,
        &sizes,
        &left_span,
        &right_span,
        &output_span,
        flags & ACCUMULATE != 0,
    )
}

fn multiply<E: Element>(
    invocation: &Invocation<'_>,
    sizes: &Sizes,
    left: &Span<'_>,
    right: &Span<'_>,
    output: &Span<'_>,
    accumulates: bool,
) -> Result<()> {
    let ([m, n, k], [m0, n0, k0]) = (sizes.outer, sizes.tile);
    let depth = k * k0;
    // Steps of a panel lie side by side, padded to whole blocks of columns and rows.
    let (width, height) = (n0.next_multiple_of(COLUMNS), m0.next_multiple_of(ROWS));
    let mut input = zeros::<E::Input>(depth * n0.max(m0))?;
    let mut left_panels = zeros::<E::Number>(m * depth * height)?;
    for i in 0..m {
        invocation.do_piece()?;
        let panel = &mut left_panels[i * depth * height..][..depth * height];
        read_panel::<E>(left, i, [k, m0, k0], &mut input, panel, height)?;
    }
    let mut right_panel = zeros::<E::Number>(depth * width)?;
    let mut bits = zeros::<u32>(m0 * n0)?;
    for j in 0..n {
        read_panel::<E>(right, j, [k, n0, k0], &mut input, &mut right_panel, width)?;
        for i in 0..m {
            invocation.do_piece()?;
            let left_panel = &left_panels[i * depth * height..][..depth * height];
            if accumulates {
                output.read(i, j * m0 * n0, &mut bits)?;
            }
            for top in (0..m0).step_by(ROWS) {
                for first in (0..n0).step_by(COLUMNS) {
                    let mut sums = [[E::Number::default(); COLUMNS]; ROWS];
                    if accumulates {
                        for (sums, row) in sums.iter_mut().zip(bits[top * n0..].chunks(n0)) {
                            sums.iter_mut()
                                .zip(&row[first..])
                                .for_each(|(sum, bits)| *sum = E::from_bits(*bits));
                        }
                    }
                    add_products::<E>(
                        &mut sums,
                        left_panel,
                        height,
                        top,
                        &right_panel,
                        width,
                        first,
                    );
                    for (sums, row) in sums.iter().zip(bits[top * n0..].chunks_mut(n0)) {
                        row[first..]
                            .iter_mut()
                            .zip(sums)
                            .for_each(|(bits, sum)| *bits = E::to_bits(*sum));
                    }
                }
            }
            output.write(i, j * m0 * n0, &bits)?;
        }
    }
    Ok(())
}

/// Adds the products of a block of rows at `top` and columns at `first`, step by step.
#[inline]
fn add_products<E: Element>(
    sums: &mut [[E::Number; COLUMNS]; ROWS],
    left: &[E::Number],
    height: usize,
    top: usize,
    right: &[E::Number],
    width: usize,
    first: usize,
) {
    for (left, right) in left.chunks_exact(height).zip(right.chunks_exact(width)) {
        // Panels are padded to whole blocks.
        let (Some(left), Some(right)) = (
            left[top..].first_chunk::<ROWS>(),
            right[first..].first_chunk::<COLUMNS>(),
        ) else {
            return;
        };
        for (sums, left) in sums.iter_mut().zip(left) {
            for (sum, right) in sums.iter_mut().zip(right) {
                *sum = E::multiply_add(*sum, *left, *right);
            }
        }
    }
}

/// Reads the tiles `[K][T][K0]` of a row of `span` into a panel `[K][K0][T]` whose T is padded to `padded`.
fn read_panel<E: Element>(
    span: &Span<'_>,
    row: usize,
    [k, t, k0]: [usize; 3],
    input: &mut [E::Input],
    panel: &mut [E::Number],
    padded: usize,
) -> Result<()> {
    let input = &mut input[..k * t * k0];
    if input.is_empty() {
        return Ok(());
    }
    span.read(row, 0, input)?;
    for (tile, steps) in input
        .chunks_exact(t * k0)
        .zip(panel.chunks_exact_mut(k0 * padded))
    {
        for (position, elements) in tile.chunks_exact(k0).enumerate() {
            for (element, step) in elements.iter().zip(steps.chunks_exact_mut(padded)) {
                step[position] = E::widen(*element);
            }
        }
    }
    Ok(())
}

fn zeros<T: Copy + Default>(count: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(count).map_err(|_| {
        Trap::new(
            StatusCode::RESOURCE_EXHAUSTED,
            format!("no memory for a panel of {count} elements"),
        )
    })?;
    values.resize(count, T::default());
    Ok(values)
}
