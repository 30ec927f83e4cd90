//! The bookkeeping of the memory a call has handed out, so that references never alias.

use crate::StatusCode;

/// The most views of memory one call can hold. A view inside another view of its kind is free.
pub const MAX_VIEWS: usize = 16;

/// How a span of memory is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Read only; may overlap others that are read only.
    Shared,
    /// Read and written cell by cell on one thread; may overlap other cells.
    Cells,
    /// Read and written; overlaps nothing.
    Exclusive,
}

/// Addresses from `start` up to, not including, `end`. Never empty.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: usize,
    end: usize,
    access: Access,
}

impl Span {
    /// Describes `byte_length` bytes from `start`.
    ///
    /// # Errors
    ///
    /// OUT_OF_RANGE if the span runs past the end of the address space or is longer than a Rust
    /// object may be.
    pub(crate) fn new(
        start: usize,
        byte_length: usize,
        access: Access,
    ) -> Result<Self, StatusCode> {
        if isize::try_from(byte_length).is_err() {
            return Err(StatusCode::OUT_OF_RANGE);
        }
        let end = start
            .checked_add(byte_length)
            .ok_or(StatusCode::OUT_OF_RANGE)?;
        Ok(Self { start, end, access })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    fn contains(&self, other: &Self) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}

/// The spans that a call has handed out.
#[derive(Debug)]
pub(crate) struct Views {
    spans: [Option<Span>; MAX_VIEWS],
}

impl Views {
    /// No spans.
    pub(crate) const fn new() -> Self {
        Self {
            spans: [None; MAX_VIEWS],
        }
    }

    /// Records a span.
    ///
    /// # Errors
    ///
    /// FAILED_PRECONDITION if it overlaps a span that it must not, RESOURCE_EXHAUSTED if there is
    /// no room for it.
    pub(crate) fn claim(&mut self, span: Span) -> Result<(), StatusCode> {
        for slot in &mut self.spans {
            let Some(held) = slot else {
                *slot = Some(span);
                return Ok(());
            };
            if !held.overlaps(&span) {
                continue;
            }
            if held.access == Access::Exclusive || held.access != span.access {
                return Err(StatusCode::FAILED_PRECONDITION);
            }
            if held.contains(&span) {
                return Ok(());
            }
        }
        Err(StatusCode::RESOURCE_EXHAUSTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(
        views: &mut Views,
        start: usize,
        end: usize,
        access: Access,
    ) -> Result<(), StatusCode> {
        views.claim(Span::new(start, end - start, access)?)
    }

    #[test]
    fn shared_spans_may_overlap_and_cells_may_overlap() {
        for access in [Access::Shared, Access::Cells] {
            let mut views = Views::new();
            assert_eq!(claim(&mut views, 16, 32, access), Ok(()));
            assert_eq!(claim(&mut views, 24, 48, access), Ok(()));
        }
    }

    #[test]
    fn an_overlap_of_different_kinds_is_refused() {
        use Access::{Cells, Exclusive, Shared};
        for (first, second) in [
            (Shared, Exclusive),
            (Exclusive, Shared),
            (Exclusive, Exclusive),
            (Cells, Shared),
            (Shared, Cells),
            (Cells, Exclusive),
        ] {
            let mut views = Views::new();
            assert_eq!(claim(&mut views, 16, 32, first), Ok(()));
            assert_eq!(
                claim(&mut views, 31, 40, second),
                Err(StatusCode::FAILED_PRECONDITION)
            );
            assert_eq!(claim(&mut views, 32, 40, second), Ok(()), "neighbors");
        }
    }

    #[test]
    fn a_view_inside_another_of_its_kind_takes_no_room() {
        let mut views = Views::new();
        for _ in 0..2 * MAX_VIEWS {
            assert_eq!(claim(&mut views, 16, 32, Access::Shared), Ok(()));
        }
    }

    #[test]
    fn the_view_after_the_last_is_refused() {
        let mut views = Views::new();
        for index in 0..MAX_VIEWS {
            let start = 64 * index;
            assert_eq!(
                claim(&mut views, start, start + 64, Access::Exclusive),
                Ok(())
            );
        }
        assert_eq!(
            claim(&mut views, 0x10000, 0x10001, Access::Exclusive),
            Err(StatusCode::RESOURCE_EXHAUSTED)
        );
    }

    #[test]
    fn a_span_past_the_address_space_is_out_of_range() {
        for (start, byte_length) in [(usize::MAX, 1), (8, usize::MAX), (0, usize::MAX / 2 + 1)] {
            assert_eq!(
                Span::new(start, byte_length, Access::Shared).map(|_| ()),
                Err(StatusCode::OUT_OF_RANGE)
            );
        }
    }
}
