//! Two-dimensional strided spans of a buffer: the operands of the `vmvx` functions, checked.
//!
//! Offsets and strides count elements, not bytes (`docs/vmvx.md`, section "Operands"). A span that was made lies in its
//! buffer, so reading and writing it cannot fail.

use std::sync::Arc;

use vm::{ArgumentReader, Buffer, Ref, Result, Trap, Word};

/// Sizes and strides must be below this; a product of two then fits 64 bits.
const LIMIT: u64 = u32::MAX as u64;

/// Position and strides of an operand, as a function was given them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operand<'a> {
    /// The name the error messages use: `in`, `lhs`, `rhs` or `out`.
    pub(crate) name: &'static str,
    pub(crate) buffer: &'a Ref,
    pub(crate) offset: i64,
    pub(crate) strides: [i64; 2],
}

/// A run of `sizes[0]` rows of `sizes[1]` elements of type `W` that lies in its buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span<'a> {
    buffer: &'a Arc<Buffer>,
    offset: usize,
    strides: [usize; 2],
}

impl<'a> Operand<'a> {
    /// Reads buffer, offset and the two strides.
    pub(crate) fn read(name: &'static str, arguments: &mut ArgumentReader<'a>) -> Result<Self> {
        let (buffer, offset) = (arguments.reference()?, arguments.i64()?);
        let strides = [arguments.i64()?, arguments.i64()?];
        Ok(Self {
            name,
            buffer,
            offset,
            strides,
        })
    }

    /// Checks the operand as one that is read; `sizes` are checked by [`checked_sizes`].
    pub(crate) fn source<W: Word>(&self, sizes: [u64; 2]) -> Result<Span<'a>> {
        let strides = self.checked_strides()?;
        self.within::<W>(self.buffer.as_buffer()?, strides, sizes)
    }

    /// Checks the operand as one that is written; `sizes` are checked by [`checked_sizes`].
    pub(crate) fn target<W: Word>(&self, sizes: [u64; 2]) -> Result<Span<'a>> {
        let strides = self.checked_strides()?;
        let buffer = self.buffer.as_buffer()?;
        // An empty write checks the right to write.
        buffer.write(0, &[])?;
        self.within::<W>(buffer, strides, sizes)
    }

    fn checked_strides(&self) -> Result<[u64; 2]> {
        let [first, second] = self
            .strides
            .map(|stride| u64::try_from(stride).ok().filter(|&stride| stride < LIMIT));
        match (first, second) {
            (Some(first), Some(second)) => Ok([first, second]),
            _ => Err(overflow(self.name)),
        }
    }

    fn within<W: Word>(
        &self,
        buffer: &'a Arc<Buffer>,
        strides: [u64; 2],
        sizes: [u64; 2],
    ) -> Result<Span<'a>> {
        if sizes.contains(&0) {
            return Ok(Span {
                buffer,
                offset: 0,
                strides: [0, 0],
            });
        }
        let width = size_of::<W>();
        let bytes = |elements: u128| {
            u64::try_from(elements.saturating_mul(width as u128)).unwrap_or(u64::MAX)
        };
        let extent = u128::from(sizes[0] - 1) * u128::from(strides[0])
            + u128::from(sizes[1] - 1) * u128::from(strides[1])
            + 1;
        let range = buffer.range(
            bytes(self.offset.cast_unsigned().into()),
            bytes(extent),
            width,
        )?;
        // A stride that moves fits the buffer's length; one that does not (of a single row or column) is not used.
        let strides = strides.map(|stride| usize::try_from(stride).unwrap_or(usize::MAX));
        Ok(Span {
            buffer,
            offset: range.start / width,
            strides,
        })
    }
}

/// Checks sizes, which count for all operands; the name is that of the first, as the reference reports it.
pub(crate) fn checked_sizes(name: &'static str, sizes: [i64; 2]) -> Result<[u64; 2]> {
    let [first, second] = sizes.map(|size| u64::try_from(size).ok().filter(|&size| size <= LIMIT));
    match (first, second) {
        (Some(first), Some(second)) => Ok([first, second]),
        _ => Err(overflow(name)),
    }
}

#[cold]
fn overflow(name: &str) -> Trap {
    Trap::invalid_argument(format!("buffer overflow for {name}"))
}

impl Span<'_> {
    /// Reads elements `column..column + target.len()` of a row.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when they do not lie in the buffer, which those of a checked span do.
    pub(crate) fn read<W: Word + bytemuck::Pod>(
        &self,
        row: usize,
        column: usize,
        target: &mut [W],
    ) -> Result<()> {
        let start = self.offset + row * self.strides[0] + column * self.strides[1];
        match self.strides[1] {
            1 => self.buffer.read(
                (start * size_of::<W>()) as u64,
                bytemuck::must_cast_slice_mut(target),
            ),
            0 => {
                target.fill(self.buffer.load(start as u64)?);
                Ok(())
            }
            stride => target
                .iter_mut()
                .enumerate()
                .try_for_each(|(index, element)| {
                    *element = self.buffer.load((start + index * stride) as u64)?;
                    Ok(())
                }),
        }
    }

    /// Writes elements `column..column + source.len()` of a row.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` when they do not lie in the buffer, which those of a checked span do.
    pub(crate) fn write<W: Word + bytemuck::Pod>(
        &self,
        row: usize,
        column: usize,
        source: &[W],
    ) -> Result<()> {
        let start = self.offset + row * self.strides[0] + column * self.strides[1];
        if self.strides[1] == 1 {
            return self.buffer.write(
                (start * size_of::<W>()) as u64,
                bytemuck::must_cast_slice(source),
            );
        }
        let stride = self.strides[1];
        source.iter().enumerate().try_for_each(|(index, &element)| {
            self.buffer.store((start + index * stride) as u64, element)
        })
    }
}

#[cfg(test)]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "the numbers of the tests are small"
)]
mod tests {
    use proptest::prelude::*;
    use vm::{Access, StatusCode};

    use super::*;

    fn operand(buffer: &Ref, offset: i64, strides: [i64; 2]) -> Operand<'_> {
        Operand {
            name: "in",
            buffer,
            offset,
            strides,
        }
    }

    fn words(count: u32) -> Ref {
        let bytes: Vec<u8> = (0..count).flat_map(u32::to_le_bytes).collect();
        Ref::from(Buffer::copied_from(&bytes, Access::HOST).unwrap())
    }

    #[test]
    fn strides_and_sizes_that_are_negative_or_huge_overflow() {
        let buffer = words(8);
        for strides in [[-1, 1], [1, -2], [i64::MIN, 0], [0, LIMIT.cast_signed()]] {
            let error = operand(&buffer, 0, strides)
                .source::<u32>([1, 1])
                .unwrap_err();
            assert_eq!(
                (error.code(), error.message()),
                (StatusCode::INVALID_ARGUMENT, "buffer overflow for in")
            );
        }
        assert!(checked_sizes("in", [-1, 1]).is_err());
        assert!(checked_sizes("in", [1, 1 << 32]).is_err());
    }

    #[test]
    fn a_negative_offset_is_out_of_range() {
        let buffer = words(8);
        let error = operand(&buffer, -1, [1, 1])
            .source::<u32>([1, 1])
            .unwrap_err();
        assert_eq!(error.code(), StatusCode::OUT_OF_RANGE);
    }

    #[test]
    fn a_size_of_zero_touches_nothing() {
        let buffer = words(1);
        assert!(operand(&buffer, 100, [8, 8]).source::<u32>([0, 4]).is_ok());
        assert!(
            operand(&Ref::Null, 0, [1, 1])
                .source::<u32>([0, 4])
                .is_err()
        );
    }

    #[test]
    fn constants_cannot_be_targets() {
        let buffer =
            Ref::from(Buffer::constant(Arc::new([0u8; 8]), 0..8, Access::CONSTANT).unwrap());
        assert!(operand(&buffer, 0, [1, 1]).source::<u32>([1, 2]).is_ok());
        let error = operand(&buffer, 0, [1, 1])
            .target::<u32>([1, 2])
            .unwrap_err();
        assert_eq!(error.code(), StatusCode::PERMISSION_DENIED);
    }

    proptest! {
        #[test]
        fn a_span_is_accepted_exactly_when_its_last_element_lies_in_the_buffer(
            offset in -3i64..12, strides in prop::array::uniform2(0i64..5), sizes in prop::array::uniform2(1u64..5),
        ) {
            let buffer = words(16);
            let last = offset + strides[0] * (sizes[0] as i64 - 1) + strides[1] * (sizes[1] as i64 - 1);
            let span = operand(&buffer, offset, strides).source::<u32>(sizes);
            prop_assert_eq!(span.is_ok(), offset >= 0 && last < 16);
            let Ok(span) = span else { return Ok(()) };
            for row in 0..sizes[0] as usize {
                let mut elements = vec![0u32; sizes[1] as usize];
                span.read(row, 0, &mut elements).unwrap();
                for (column, element) in elements.iter().enumerate() {
                    let expected = offset + strides[0] * row as i64 + strides[1] * column as i64;
                    prop_assert_eq!(i64::from(*element), expected);
                }
            }
        }
    }
}
