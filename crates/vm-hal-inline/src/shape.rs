//! The shape of a buffer view, stored so that a view of a common rank is one allocation.

use core::array;
use core::fmt;
use core::ops::Deref;

/// How many dimensions are stored in place.
const IN_PLACE: usize = 5;

/// The dimensions of a tensor, outermost first.
#[derive(Clone)]
pub(crate) struct Shape {
    rank: usize,
    /// The dimensions, if there are no more than this.
    in_place: [usize; IN_PLACE],
    /// All dimensions, if there are more.
    boxed: Option<Box<[usize]>>,
}

impl Shape {
    /// Returns the shape of these dimensions, made of `given` by `size`.
    #[inline(always)]
    pub(crate) fn new<D>(given: &[D], size: impl Fn(&D) -> usize) -> Self {
        let boxed = match given.len() {
            0..=IN_PLACE => None,
            _ => Some(collect(given, &size)),
        };
        Self {
            rank: given.len(),
            in_place: array::from_fn(|index| given.get(index).map_or(0, &size)),
            boxed,
        }
    }
}

#[cold]
fn collect<D>(given: &[D], size: impl Fn(&D) -> usize) -> Box<[usize]> {
    given.iter().map(size).collect()
}

impl Deref for Shape {
    type Target = [usize];

    #[inline]
    fn deref(&self) -> &[usize] {
        match self.in_place.get(..self.rank) {
            Some(dimensions) => dimensions,
            None => self.boxed.as_deref().unwrap_or_default(),
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
        for rank in 0..=2 * IN_PLACE {
            let dimensions: Vec<usize> = (10..10 + rank).collect();
            let shape = Shape::new(&dimensions, |dimension| *dimension);
            assert_eq!(*shape, *dimensions);
            assert_eq!(shape.boxed.is_none(), rank <= IN_PLACE);
        }
    }

    #[test]
    fn a_scalar_spells_as_nothing() {
        assert_eq!(Spelled(&[]).to_string(), "");
        assert_eq!(Spelled(&[5]).to_string(), "5");
        assert_eq!(Spelled(&[2, 0, 3]).to_string(), "2x0x3");
    }
}
