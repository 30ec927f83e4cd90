//! Workgroup counts and the walk over them: [`Grid`].
//!
//! Workgroups are numbered from 0 with x innermost, then y, then z. The walk keeps the coordinates
//! as it goes, so that only its start costs divisions.

use std::ops::Range;

/// The workgroups of a dispatch: a box of `x * y * z` of them.
///
/// Invariant: the number of workgroups fits a `u64`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    count: [u32; 3],
    total: u64,
}

impl Grid {
    /// Returns the grid of `count` workgroups in x, y and z, or `None` if their number exceeds a
    /// `u64`.
    #[must_use]
    #[inline]
    pub fn new(count: [u32; 3]) -> Option<Self> {
        let plane = u64::from(count[0]) * u64::from(count[1]);
        let total = plane.checked_mul(u64::from(count[2]))?;
        Some(Self { count, total })
    }

    /// Returns the counts in x, y and z.
    #[must_use]
    #[inline]
    pub fn count(&self) -> [u32; 3] {
        self.count
    }

    /// Returns the number of workgroups.
    #[must_use]
    #[inline]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Calls `visit` with the coordinates of each workgroup numbered in `tiles`, in order, until one
    /// call fails. Numbers past the end of the grid are skipped.
    ///
    /// # Errors
    ///
    /// Returns the first error of `visit`.
    #[inline]
    pub fn try_for_each<E>(
        &self,
        tiles: Range<u64>,
        mut visit: impl FnMut([u32; 3]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.try_for_each_row(tiles, |xs, y, z| {
            xs.into_iter().try_for_each(|x| visit([x, y, z]))
        })
    }

    /// As [`Grid::try_for_each`], with a call per row of neighbors in x.
    #[inline]
    pub(crate) fn try_for_each_row<E>(
        &self,
        tiles: Range<u64>,
        mut visit: impl FnMut(Range<u32>, u32, u32) -> Result<(), E>,
    ) -> Result<(), E> {
        let end = tiles.end.min(self.total);
        if tiles.start >= end {
            return Ok(());
        }
        let mut left = end - tiles.start;
        let [mut x, mut y, mut z] = if tiles.start == 0 {
            [0; 3]
        } else {
            self.coordinates(tiles.start)
        };
        loop {
            // The rest of this row, or as much of it as is wanted.
            let row = u64::from(self.count[0] - x).min(left);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "`row` is at most `count[0] - x`, which is a u32"
            )]
            let row_end = x + row as u32;
            visit(x..row_end, y, z)?;
            left -= row;
            if left == 0 {
                return Ok(());
            }
            x = 0;
            y += 1;
            if y == self.count[1] {
                y = 0;
                z += 1;
            }
        }
    }

    /// Returns the coordinates of the workgroup numbered `tile`, which must be below the total.
    ///
    /// Out of line: most dispatches begin at 0 and do not come here.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "each coordinate is below its count, which is a u32"
    )]
    fn coordinates(&self, tile: u64) -> [u32; 3] {
        let [width, height, _] = self.count.map(u64::from);
        let row = tile / width;
        [
            (tile % width) as u32,
            (row % height) as u32,
            (row / height) as u32,
        ]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn visited(grid: Grid, tiles: Range<u64>) -> Vec<[u32; 3]> {
        let mut seen = Vec::new();
        let result: Result<(), ()> = grid.try_for_each(tiles, |id| {
            seen.push(id);
            Ok(())
        });
        assert_eq!(result, Ok(()));
        seen
    }

    #[test]
    fn a_count_of_zero_makes_an_empty_grid() {
        for count in [[0, 5, 5], [5, 0, 5], [5, 5, 0], [0, 0, 0]] {
            let grid = Grid::new(count).unwrap();
            assert_eq!(grid.total(), 0);
            assert!(visited(grid, 0..u64::MAX).is_empty());
        }
    }

    #[test]
    fn a_grid_larger_than_64_bits_is_refused() {
        assert!(Grid::new([u32::MAX, u32::MAX, 2]).is_none());
        assert!(Grid::new([u32::MAX, u32::MAX, 1]).is_some());
    }

    #[test]
    fn the_end_of_a_huge_grid_can_be_visited() {
        let grid = Grid::new([u32::MAX, u32::MAX, 1]).unwrap();
        let last = grid.total() - 1;
        assert_eq!(
            visited(grid, last..u64::MAX),
            [[u32::MAX - 1, u32::MAX - 1, 0]]
        );
    }

    #[test]
    fn the_walk_stops_at_the_first_error() {
        let grid = Grid::new([2, 2, 2]).unwrap();
        let mut calls = 0;
        let result = grid.try_for_each(0..8, |id| {
            calls += 1;
            if id == [1, 0, 0] {
                Err("failed")
            } else {
                Ok(())
            }
        });
        assert_eq!(result, Err("failed"));
        assert_eq!(calls, 2);
    }

    proptest! {
        #[test]
        fn chunks_visit_each_workgroup_once_and_in_order(
            count in [0u32..9, 0u32..9, 0u32..9],
            chunk in 1u64..40,
        ) {
            let grid = Grid::new(count).unwrap();
            let mut expected = Vec::new();
            for z in 0..count[2] {
                for y in 0..count[1] {
                    for x in 0..count[0] {
                        expected.push([x, y, z]);
                    }
                }
            }
            prop_assert_eq!(grid.total(), expected.len() as u64);

            let mut found = Vec::new();
            let mut start = 0;
            while start < grid.total() {
                found.extend(visited(grid, start..start + chunk));
                start += chunk;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
