//! The processor time of this process.
#![forbid(unsafe_code)]

use std::time::Duration;

/// Returns the processor time that all threads of the process have used, or `None` where the system does not tell.
#[cfg(unix)]
pub(super) fn process_time() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    let nanoseconds = u32::try_from(time.tv_nsec).ok()?;
    Some(Duration::new(seconds, nanoseconds))
}

/// Returns `None`.
#[cfg(not(unix))]
pub(super) fn process_time() -> Option<Duration> {
    None
}
