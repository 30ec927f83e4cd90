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
    /// In units of 1/256 ns, saturating at 16 ms; 0 means "not observed yet".
    units: AtomicU32,
    /// How often the estimate was asked for.
    uses: AtomicU32,
}

impl TileCost {
    /// Returns the estimated time of `tiles` workgroups in nanoseconds, or `None` if the estimate
    /// should be renewed first: often in the beginning, then once in every 64 times.
    #[inline]
    pub(crate) fn estimate(&self, tiles: u64) -> Option<u64> {
        let uses = self.uses.load(Ordering::Relaxed);
        self.uses.store(uses.wrapping_add(1), Ordering::Relaxed);
        let units = self.units.load(Ordering::Relaxed);
        if units == 0 || uses.is_power_of_two() || uses.is_multiple_of(64) {
            return None;
        }
        Some(u64::from(units).saturating_mul(tiles) / UNITS_PER_NANOSECOND)
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

    /// Returns the next estimate that need not be renewed.
    fn settled(cost: &TileCost, tiles: u64) -> u64 {
        (0..4)
            .find_map(|_| cost.estimate(tiles))
            .expect("no more than three times in a row are renewed")
    }

    #[test]
    fn nothing_is_estimated_before_the_first_observation() {
        let cost = TileCost::default();
        assert_eq!(cost.estimate(10), None);
        assert_eq!(cost.estimate(10), None);
    }

    #[test]
    fn the_estimate_scales_with_the_number_of_workgroups() {
        let cost = TileCost::default();
        cost.observe(4, Duration::from_nanos(400));
        assert_eq!(settled(&cost, 10), 1000);
    }

    #[test]
    fn a_lower_observation_is_believed_at_once_and_a_higher_one_half() {
        let cost = TileCost::default();
        cost.observe(1, Duration::from_nanos(1000));
        cost.observe(1, Duration::from_nanos(100));
        assert_eq!(settled(&cost, 1), 100);
        cost.observe(1, Duration::from_nanos(200));
        assert_eq!(settled(&cost, 1), 150);
    }

    #[test]
    fn the_estimate_is_renewed_now_and_then() {
        let cost = TileCost::default();
        cost.observe(1, Duration::from_nanos(100));
        let renewals = (0..640).filter(|_| cost.estimate(1).is_none()).count();
        // At 0, 1, 2, 4, 8, 16, 32 and then at each multiple of 64.
        assert_eq!(renewals, 7 + 9);
    }

    #[test]
    fn extreme_observations_saturate() {
        let cost = TileCost::default();
        cost.observe(1, Duration::MAX);
        assert!(settled(&cost, u64::MAX) > 1 << 40);
        cost.observe(u64::MAX, Duration::ZERO);
        assert_eq!(settled(&cost, 1), 0);
    }
}
