//! Soaks for a while and checks that memory stays flat: `soak SECONDS PLUGIN`, as a child of `cargo xtask soak`.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a developer's program, which ends when something is missing"
)]

use std::path::PathBuf;
use std::time::{Duration, Instant};

use halite_tests::soak::soak;

/// How much more memory may be resident at the end than after the first quarter.
const MOST_GROWTH_KIB: u64 = 8 * 1024;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds: u64 = arguments.next().unwrap().parse().unwrap();
    let plugin = PathBuf::from(arguments.next().unwrap());
    let start = Instant::now();
    let quarter = Duration::from_secs(seconds) / 4;
    let mut after_quarter = None;
    let rounds = soak(&plugin, |_| {
        std::thread::sleep(Duration::from_millis(50));
        if after_quarter.is_none() && start.elapsed() >= quarter {
            after_quarter = resident_kib();
        }
        start.elapsed() >= 4 * quarter
    });
    let end = resident_kib();
    let shown = |size: Option<u64>| size.map_or("unknown".into(), |size| format!("{size} KiB"));
    println!(
        "soak: {rounds} rounds in {seconds} s; resident after a quarter {}, at the end {}",
        shown(after_quarter),
        shown(end)
    );
    if let (Some(quarter), Some(end)) = (after_quarter, end) {
        assert!(end <= quarter + MOST_GROWTH_KIB, "memory grew");
    }
    assert!(start.elapsed() >= 4 * quarter, "a thread failed");
}

/// Returns the resident memory of this process, where the system tells.
fn resident_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
