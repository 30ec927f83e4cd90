//! The shape of a buffer view, stored so that a view of a common rank is one allocation.

use core::convert::Infallible;
use core::fmt;
use core::ops::Deref;

/// How many dimensions are stored in place.
const INLINE_RANK: usize = 6;

/// The dimensions of a tensor, outermost first.
#[derive(Clone)]
pub(crate) enum Shape {
    /// Invariant: `rank` is at most [`INLINE_RANK`].
    Inline {
        rank: u8,
        dimensions: [usize; INLINE_RANK],
    },
    Boxed(Box<[usize]>),
}

impl Shape {
    /// Returns the shape of these dimensions.
    #[inline]
    pub(crate) fn try_collect<E>(
        given: impl ExactSizeIterator<Item = Result<usize, E>>,
    ) -> Result<Self, E> {
        let rank = given.len();
        let mut dimensions = [0; INLINE_RANK];
        let Some(used) = dimensions.get_mut(..rank) else {
            return given.collect::<Result<_, E>>().map(Self::Boxed);
        };
        for (dimension, given) in used.iter_mut().zip(given) {
            *dimension = given?;
        }
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a slice of this length exists above"
        )]
        let rank = rank as u8;
        Ok(Self::Inline { rank, dimensions })
    }
}

impl From<&[usize]> for Shape {
    fn from(dimensions: &[usize]) -> Self {
        let given = dimensions
            .iter()
            .map(|dimension| Ok::<_, Infallible>(*dimension));
        match Self::try_collect(given) {
            Ok(shape) => shape,
            Err(never) => match never {},
        }
    }
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        match self {
            Self::Inline { rank, dimensions } => &dimensions[..usize::from(*rank)],
            Self::Boxed(dimensions) => dimensions,
        }
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// Spells a shape as messages and tensor texts do: `2x3`, and nothing for a scalar.
pub(crate) struct Spelled<'a>(pub(crate) &'a [usize]);

impl fmt::Display for Spelled<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, dimension) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "x" };
            write!(f, "{separator}{dimension}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_of_any_rank_keep_their_dimensions() {
        for rank in 0..=2 * INLINE_RANK {
            let dimensions: Vec<usize> = (10..10 + rank).collect();
            let shape = Shape::from(&dimensions[..]);
            assert_eq!(*shape, *dimensions);
            assert_eq!(matches!(shape, Shape::Inline { .. }), rank <= INLINE_RANK);
        }
    }

    #[test]
    fn a_failing_dimension_fails_the_shape() {
        for rank in [1, 9] {
            let given = (0..rank).map(|_| Err("no"));
            assert_eq!(Shape::try_collect(given).err(), Some("no"));
        }
    }

    #[test]
    fn a_scalar_spells_as_nothing() {
        assert_eq!(Spelled(&[]).to_string(), "");
        assert_eq!(Spelled(&[5]).to_string(), "5");
        assert_eq!(Spelled(&[2, 0, 3]).to_string(), "2x0x3");
    }
}
