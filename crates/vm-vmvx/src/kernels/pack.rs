//! `pack` and `unpack`: matrices to and from tiles.
//!
//! The tiled side is `[outer 0][outer 1][tile 0][tile 1]`; each of the two pairs may be transposed against the matrix
//! (`docs/vmvx.md`, section "Pack and unpack").

use vm::{Call, Invocation, Result, StatusCode, Trap, Word};

use crate::span::{Operand, Span, checked_sizes};

const TRANSPOSE_INNER: u32 = 0x100;
const TRANSPOSE_OUTER: u32 = 0x200;

/// Element types in the low byte of the flags.
mod element {
    pub(super) const F32: u32 = 1;
    pub(super) const I8: u32 = 2;
    pub(super) const I32: u32 = 3;
}

/// Sizes of the tiled side, in its own order.
struct Tiling {
    outer: [usize; 2],
    tile: [usize; 2],
    transposes_outer: bool,
    transposes_inner: bool,
}

impl Tiling {
    /// Checks the four sizes of the tiled side. Fails when an outer size times the others does not fit.
    fn new(name: &'static str, sizes: [i64; 4], flags: u32) -> Result<Self> {
        let [first, second] =
            [[sizes[0], sizes[1]], [sizes[2], sizes[3]]].map(|pair| checked_sizes(name, pair));
        let host = |size: u64| usize::try_from(size).unwrap_or(usize::MAX);
        Ok(Self {
            outer: first?.map(host),
            tile: second?.map(host),
            transposes_outer: flags & TRANSPOSE_OUTER != 0,
            transposes_inner: flags & TRANSPOSE_INNER != 0,
        })
    }

    fn tile_elements(&self) -> u128 {
        self.tile[0] as u128 * self.tile[1] as u128
    }

    /// Returns the sizes of the tiled side as rows of whole tiles.
    fn rows(&self, name: &'static str) -> Result<[u64; 2]> {
        let columns = self.tile_elements() * self.outer[1] as u128;
        // A row that large fits no buffer; the bound check says so.
        let columns = i64::try_from(columns).unwrap_or(i64::MAX);
        checked_sizes(
            name,
            [i64::try_from(self.outer[0]).unwrap_or(i64::MAX), columns],
        )
    }

    /// Returns how many rows and columns of the matrix the tiles cover.
    fn covered(&self) -> [u128; 2] {
        let [outer, tile] = self.matrix_order();
        [
            outer[0] as u128 * tile[0] as u128,
            outer[1] as u128 * tile[1] as u128,
        ]
    }

    /// Returns outer and tile sizes in the order of the matrix: rows first.
    fn matrix_order(&self) -> [[usize; 2]; 2] {
        let swap =
            |pair: [usize; 2], swapped: bool| if swapped { [pair[1], pair[0]] } else { pair };
        [
            swap(self.outer, self.transposes_outer),
            swap(self.tile, self.transposes_inner),
        ]
    }

    /// Calls `visit(row, column, tiled row, tiled column)` for every element of the tiled side in its own order.
    fn for_each(
        &self,
        invocation: &Invocation<'_>,
        mut visit: impl FnMut(usize, usize, usize, usize) -> Result<()>,
    ) -> Result<()> {
        let [_, tile] = self.matrix_order();
        let [height, width] = self.tile;
        for first in 0..self.outer[0] {
            for second in 0..self.outer[1] {
                let (a, b) = if self.transposes_outer {
                    (second, first)
                } else {
                    (first, second)
                };
                for top in 0..height {
                    invocation.do_piece()?;
                    for left in 0..width {
                        let (i, j) = if self.transposes_inner {
                            (left, top)
                        } else {
                            (top, left)
                        };
                        let tiled = (second * height + top) * width + left;
                        visit(a * tile[0] + i, b * tile[1] + j, first, tiled)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Packs a matrix into tiles and pads them.
pub(crate) fn pack(call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    let input = Operand::read("in", &mut arguments)?;
    // The second stride of the tiled side is given and not used: tiles lie side by side.
    let output = Operand::read("out", &mut arguments)?;
    let output = Operand {
        strides: [output.strides[0], 1],
        ..output
    };
    let input_sizes = [arguments.i64()?, arguments.i64()?];
    let output_sizes = [
        arguments.i64()?,
        arguments.i64()?,
        arguments.i64()?,
        arguments.i64()?,
    ];
    let padding = arguments.i64()?.cast_unsigned();
    let flags = arguments.i32()?.cast_unsigned();
    match flags & 0xFF {
        element::F32 | element::I32 => pack_elements(
            call.invocation,
            input,
            output,
            input_sizes,
            output_sizes,
            (padding & 0xFFFF_FFFF) as u32,
            flags,
        ),
        element::I8 => pack_elements(
            call.invocation,
            input,
            output,
            input_sizes,
            output_sizes,
            (padding & 0xFF) as u8,
            flags,
        ),
        _ => Err(unhandled_flags()),
    }
}

fn pack_elements<W: Word + bytemuck::Pod>(
    invocation: &Invocation<'_>,
    input: Operand<'_>,
    output: Operand<'_>,
    input_sizes: [i64; 2],
    output_sizes: [i64; 4],
    padding: W,
    flags: u32,
) -> Result<()> {
    let input_sizes = checked_sizes(input.name, input_sizes)?;
    let tiling = Tiling::new(output.name, output_sizes, flags)?;
    let source: Span<'_> = input.source::<W>(input_sizes)?;
    let target = output.target::<W>(tiling.rows(output.name)?)?;
    if tiling.tile_elements() == 0 || tiling.outer.contains(&0) {
        return Ok(());
    }
    check_covered(&tiling, input_sizes, "input")?;
    let [rows, columns] = input_sizes.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    tiling.for_each(invocation, |row, column, tiled_row, tiled_column| {
        let mut value = [padding];
        if row < rows && column < columns {
            source.read(row, column, &mut value)?;
        }
        target.write(tiled_row, tiled_column, &value)
    })
}

/// Unpacks tiles into a matrix and drops their padding.
pub(crate) fn unpack(call: &mut Call<'_, '_>) -> Result<()> {
    let mut arguments = call.arguments.reader();
    // The second stride of the tiled side is given and not used: tiles lie side by side.
    let input = Operand::read("in", &mut arguments)?;
    let input = Operand {
        strides: [input.strides[0], 1],
        ..input
    };
    let output = Operand::read("out", &mut arguments)?;
    let input_sizes = [
        arguments.i64()?,
        arguments.i64()?,
        arguments.i64()?,
        arguments.i64()?,
    ];
    let output_sizes = [arguments.i64()?, arguments.i64()?];
    let flags = arguments.i32()?.cast_unsigned();
    if !matches!(flags & 0xFF, element::F32 | element::I32) {
        return Err(unhandled_flags());
    }
    let output_sizes = checked_sizes(output.name, output_sizes)?;
    let tiling = Tiling::new(input.name, input_sizes, flags)?;
    let source = input.source::<u32>(tiling.rows(input.name)?)?;
    let target = output.target::<u32>(output_sizes)?;
    if output_sizes.contains(&0) {
        return Ok(());
    }
    check_covered(&tiling, output_sizes, "output")?;
    let [rows, columns] = output_sizes.map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    tiling.for_each(call.invocation, |row, column, tiled_row, tiled_column| {
        if row >= rows || column >= columns {
            return Ok(());
        }
        let mut value = [0u32];
        source.read(tiled_row, tiled_column, &mut value)?;
        target.write(row, column, &value)
    })
}

/// Checks that the tiles cover the matrix; the reference writes or reads past its checks when they do not.
fn check_covered(tiling: &Tiling, sizes: [u64; 2], matrix: &str) -> Result<()> {
    let covered = tiling.covered();
    if u128::from(sizes[0]) <= covered[0] && u128::from(sizes[1]) <= covered[1] {
        return Ok(());
    }
    Err(Trap::new(
        StatusCode::INVALID_ARGUMENT,
        format!(
            "the {matrix} of {}x{} elements is larger than its tiles, which cover {}x{}",
            sizes[0], sizes[1], covered[0], covered[1]
        ),
    ))
}

#[cold]
pub(crate) fn unhandled_flags() -> Trap {
    Trap::invalid_argument("unhandled flags")
}
