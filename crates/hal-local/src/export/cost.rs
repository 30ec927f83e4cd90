//! How long one workgroup of a function takes, as observed: [`TileCost`].
//!
//! An estimate for choosing between threads, never for results. All accesses are relaxed: threads
//! may overwrite each other's observations, which only makes the estimate slower to settle.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The estimate counts this fraction of a nanosecond, as empty workgroups take about one.
const UNITS_PER_NANOSECOND: u64 = 256;

/// A running estimate of the cost of one workgroup.
#[derive(Debug, Default)]
pub(crate) struct TileCost {
    /// In units of 1/256 ns, saturating at 16 ms; 0 if not observed yet.
    units: AtomicU32,
    /// The number of dispatches so far, wrapping.
    uses: AtomicU32,
}

impl TileCost {
    /// Returns whether the cost should be observed (again) in this dispatch: often in the beginning,
    /// then once in every 64 times.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.wrapping_add(1), Ordering::Relaxed);
        uses.is_power_of_two() || uses.is_multiple_of(64)
    }

    /// Returns the estimated time of `tiles` workgroups on one thread in nanoseconds; 0 if none was
    /// observed yet.
    #[inline]
    pub(crate) fn nanoseconds(&self, tiles: u64) -> u64 {
        let units = self.units.load(Ordering::Relaxed);
        u64::from(units).saturating_mul(tiles) / UNITS_PER_NANOSECOND
    }

    /// Notes that `tiles` workgroups took `elapsed` on one thread.
    pub(crate) fn observe(&self, tiles: u64, elapsed: Duration) {
        let tiles = u128::from(tiles.max(1));
        let observed = elapsed
            .as_nanos()
            .saturating_mul(UNITS_PER_NANOSECOND.into())
            / tiles;
        let observed = u32::try_from(observed).unwrap_or(u32::MAX).max(1);
        let known = self.units.load(Ordering::Relaxed);
        // What disturbs an observation (a page fault, an interrupt) only ever adds to it. So a lower
        // one is believed at once, and a higher one half.
        let units = if known == 0 || observed < known {
            observed
        } else {
            known.midpoint(observed)
        };
        self.units.store(units.max(1), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_estimated_before_the_first_observation() {
        assert_eq!(TileCost::default().nanoseconds(10), 0);
    }

    #[test]
    fn the_estimate_scales_with_the_number_of_workgroups() {
        let cost = TileCost::default();
        cost.observe(4, Duration::from_nanos(400));
        assert_eq!(cost.nanoseconds(10), 1000);
    }

    #[test]
    fn a_lower_observation_is_believed_at_once_and_a_higher_one_half() {
        let cost = TileCost::default();
        cost.observe(1, Duration::from_nanos(1000));
        cost.observe(1, Duration::from_nanos(100));
        assert_eq!(cost.nanoseconds(1), 100);
        cost.observe(1, Duration::from_nanos(200));
        assert_eq!(cost.nanoseconds(1), 150);
    }

    #[test]
    fn the_estimate_is_renewed_often_at_first_and_then_now_and_then() {
        let cost = TileCost::default();
        let due: Vec<_> = (0..200).filter(|_| cost.is_due()).collect();
        assert_eq!(due, [0, 1, 2, 4, 8, 16, 32, 64, 128, 192]);
    }

    #[test]
    fn extreme_observations_saturate() {
        let cost = TileCost::default();
        cost.observe(1, Duration::MAX);
        assert!(cost.nanoseconds(u64::MAX) > 1 << 40);
        cost.observe(u64::MAX, Duration::ZERO);
        assert_eq!(cost.nanoseconds(1), 0);
    }
}
