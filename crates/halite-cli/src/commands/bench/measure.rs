//! Measuring what a call takes.
//!
//! A sample is several calls in a row, so many that reading the clock does not count beside them, and so many that the
//! samples of a long measurement fit into little memory.
#![forbid(unsafe_code)]

use std::time::{Duration, Instant};

use super::clock;

/// The least a sample takes: some hundred times what reading the clock does.
const MIN_SAMPLE: Duration = Duration::from_micros(10);
/// About how many samples there are at most.
const MAX_SAMPLES: u32 = 100_000;
/// The share of the whole time that is spent on warming up.
const WARM_UP_SHARE: u32 = 10;

/// How to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    min_time: Duration,
    calls_per_sample: u64,
}

/// What was measured.
#[derive(Clone, Debug)]
pub(super) struct Measurement {
    /// Nanoseconds per call of each sample, in ascending order; not empty.
    samples: Vec<f64>,
    calls: u64,
    /// Nanoseconds of all samples together.
    total: f64,
    /// Nanoseconds of processor time meanwhile.
    cpu: Option<f64>,
}

impl Plan {
    /// Calls for a tenth of the time, once at least, and finds out how many calls make a sample.
    pub(super) fn warm_up<E>(
        min_time: Duration,
        mut call: impl FnMut() -> Result<(), E>,
    ) -> Result<Self, E> {
        let begin = Instant::now();
        let mut fastest = Duration::MAX;
        loop {
            let start = Instant::now();
            call()?;
            fastest = fastest.min(start.elapsed());
            if begin.elapsed() >= min_time / WARM_UP_SHARE {
                break;
            }
        }
        let sample = MIN_SAMPLE.max(min_time / MAX_SAMPLES);
        let calls = sample.as_nanos().div_ceil(fastest.as_nanos().max(1));
        Ok(Self {
            min_time,
            calls_per_sample: u64::try_from(calls).unwrap_or(u64::MAX).max(1),
        })
    }

    /// Returns how many calls make a sample.
    pub(super) fn calls_per_sample(&self) -> u64 {
        self.calls_per_sample
    }

    /// Calls until the time is over, and so often that there is a sample at least.
    pub(super) fn measure<E>(
        &self,
        mut call: impl FnMut() -> Result<(), E>,
    ) -> Result<Measurement, E> {
        let mut samples = Vec::new();
        let mut total = 0.0;
        let cpu_begin = clock::process_time();
        let begin = Instant::now();
        loop {
            let start = Instant::now();
            for _ in 0..self.calls_per_sample {
                call()?;
            }
            let sample = nanoseconds(start.elapsed());
            total += sample;
            samples.push(sample / self.calls_per_sample as f64);
            if begin.elapsed() >= self.min_time {
                break;
            }
        }
        let cpu = clock::process_time().zip(cpu_begin);
        let cpu = cpu.map(|(end, begin)| nanoseconds(end.saturating_sub(begin)));
        let calls = self.calls_per_sample.saturating_mul(samples.len() as u64);
        Ok(Measurement::new(samples, calls, total, cpu))
    }
}

impl Measurement {
    fn new(mut samples: Vec<f64>, calls: u64, total: f64, cpu: Option<f64>) -> Self {
        samples.sort_by(f64::total_cmp);
        Self {
            samples,
            calls,
            total,
            cpu,
        }
    }

    /// Returns how many calls were measured.
    pub(super) fn calls(&self) -> u64 {
        self.calls
    }

    /// Returns the nanoseconds of a call that this many tenths of all calls, at most 10, do not exceed.
    pub(super) fn tenths(&self, tenths: usize) -> f64 {
        let last = self.samples.len() - 1;
        let position = tenths * last;
        let (below, rest) = (position / 10, position % 10);
        let (lower, upper) = (self.samples[below], self.samples[(below + 1).min(last)]);
        lower + (upper - lower) * rest as f64 / 10.0
    }

    /// Returns the nanoseconds that a call takes on average.
    pub(super) fn mean(&self) -> f64 {
        self.total / self.calls as f64
    }

    /// Returns the nanoseconds of processor time that a call takes on average, if the system tells.
    pub(super) fn cpu(&self) -> Option<f64> {
        self.cpu.map(|cpu| cpu / self.calls as f64)
    }
}

fn nanoseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e9
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::*;

    #[test]
    fn tenths_lie_between_the_samples() {
        let measurement = Measurement::new(vec![30.0, 10.0, 20.0, 40.0], 8, 200.0, Some(400.0));
        assert_eq!(measurement.tenths(0), 10.0);
        assert_eq!(measurement.tenths(5), 25.0);
        assert_eq!(measurement.tenths(10), 40.0);
        assert_eq!((measurement.mean(), measurement.cpu()), (25.0, Some(50.0)));
        let single = Measurement::new(vec![7.0], 1, 7.0, None);
        assert_eq!((single.tenths(1), single.tenths(9)), (7.0, 7.0));
    }

    #[test]
    fn without_time_there_is_one_sample_all_the_same() {
        let calls = Cell::new(0u64);
        let call = || {
            calls.set(calls.get() + 1);
            Ok::<(), ()>(())
        };
        let plan = Plan::warm_up(Duration::ZERO, call).unwrap();
        assert_eq!(calls.get(), 1);
        let measurement = plan.measure(call).unwrap();
        assert_eq!(measurement.calls(), plan.calls_per_sample());
        assert_eq!(calls.get(), 1 + measurement.calls());
    }

    #[test]
    fn a_call_that_fails_ends_the_measurement() {
        let plan = Plan::warm_up(Duration::from_secs(60), || Err("failed"));
        assert_eq!(plan.unwrap_err(), "failed");
        let plan = Plan {
            min_time: Duration::from_secs(60),
            calls_per_sample: 5,
        };
        assert_eq!(plan.measure(|| Err("failed")).unwrap_err(), "failed");
    }
}
