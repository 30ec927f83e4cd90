//! The few statistics that the tables show.

/// What came out of several rounds in which two sides were measured one right after the other.
///
/// The ratio is the median of the rounds' ratios: what slows the machine down for longer than a round meets both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Comparison {
    /// Medians of each side.
    pub(super) ours: f64,
    pub(super) theirs: f64,
    /// Median, least and greatest of the ratios `ours / theirs`.
    pub(super) ratio: f64,
    pub(super) least: f64,
    pub(super) greatest: f64,
}

impl Comparison {
    /// Compares what was measured; `None` when nothing was.
    pub(super) fn of(rounds: &[(f64, f64)]) -> Option<Self> {
        let ratios: Vec<f64> = rounds.iter().map(|(ours, theirs)| ours / theirs).collect();
        Some(Self {
            ours: median(rounds.iter().map(|round| round.0))?,
            theirs: median(rounds.iter().map(|round| round.1))?,
            ratio: median(ratios.iter().copied())?,
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            greatest: ratios.iter().copied().fold(0.0, f64::max),
        })
    }
}

/// Returns the middle value, or the mean of the two in the middle; `None` of nothing.
pub(super) fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((values[middle - 1] + upper) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), Some(2.5));
        assert_eq!(median([].into_iter()), None);
    }

    #[test]
    fn a_slow_round_does_not_move_the_ratio() {
        let rounds = [(1.0, 2.0), (10.0, 20.0), (1.0, 2.0)];
        let expected = Comparison {
            ours: 1.0,
            theirs: 2.0,
            ratio: 0.5,
            least: 0.5,
            greatest: 0.5,
        };
        assert_eq!(Comparison::of(&rounds), Some(expected));
        assert_eq!(Comparison::of(&[]), None);
    }
}
