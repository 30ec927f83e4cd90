//! `halite bench`, and the flags that watch what a command does.

use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{fails, halite, says};

const CALL: [&str; 5] = [
    "--module={fixtures}/3.13.0/vmvx/mul.vmfb",
    "--function=mul",
    "--input=4xf32=1,2,3,4",
    "--input=4xf32=10",
    "--threads=1",
];

fn bench(more: &[&str]) -> crate::support::Outcome {
    halite(&[&["bench", "--benchmark_min_time=0.001s"], &CALL[..], more].concat())
}

#[test]
fn json_is_one_object_with_times_per_call() {
    let outcome = bench(&["--format=json", "--batch_size=2"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["name"], "mul");
    assert_eq!(report["batch_size"], 2);
    let number = |key: &str| report[key].as_f64().unwrap();
    assert!(number("iterations") >= 2.0 && number("iterations") % 2.0 == 0.0);
    assert!(number("min_ns") > 0.0);
    for (less, more) in [
        ("min_ns", "p10_ns"),
        ("p10_ns", "median_ns"),
        ("median_ns", "p90_ns"),
        ("p90_ns", "max_ns"),
        ("min_ns", "mean_ns"),
        ("mean_ns", "max_ns"),
    ] {
        assert!(number(less) <= number(more) + 0.1, "{less} {more} {report}");
    }
    assert!(report["cpu_ns"].is_number() || !cfg!(unix));
}

#[test]
fn the_table_has_a_row_for_the_function() {
    let outcome = bench(&[]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "{}", outcome.stdout);
    assert!(lines[0].starts_with("function") && lines[1].starts_with("mul "));
}

#[test]
fn what_cannot_be_called_is_an_error() {
    fails(
        1,
        &["bench", CALL[0], "--input=4xf32=1"],
        &["error: INVALID_ARGUMENT: the function `mul` takes 2 inputs"],
    );
    fails(
        1,
        &["bench", CALL[0], "--function=nope"],
        &["error: NOT_FOUND: no function `nope`"],
    );
    fails(2, &["bench", CALL[0], "--batch_size=0"], &["--batch_size"]);
    fails(
        2,
        &["bench", CALL[0], "--benchmark_min_time=-1"],
        &["--benchmark_min_time"],
    );
}

#[test]
fn the_profile_counts_dispatches_on_standard_error() {
    let outcome = halite(&[&["run", "--profile", "-v"], &CALL[..]].concat());
    assert_eq!(
        outcome.stdout,
        "EXEC @mul\nresult[0]: hal.buffer_view\n4xf32=10 20 30 40\n"
    );
    says(
        &outcome,
        &[
            "info: loaded {fixtures}/3.13.0/vmvx/mul.vmfb in ",
            "info: called `mul` for ",
            "kernel ",
        ],
    );
    let row = outcome
        .stderr
        .lines()
        .find(|line| line.starts_with("mul_dispatch_0"))
        .unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[..3], ["mul_dispatch_0_elementwise_4_f32", "1", "1"]);
    assert!(row.ends_with("100.0 %"), "{row}");
    // The warm-up does not count.
    let outcome = bench(&["--profile", "--format=json"]);
    let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let row = outcome
        .stderr
        .lines()
        .find(|line| line.starts_with("mul_dispatch_0"))
        .unwrap();
    assert_eq!(
        row.split_whitespace().nth(1).unwrap(),
        report["iterations"].to_string()
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn kernels_are_shown_with_the_line_they_come_from() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.json");
    let flag = format!("--trace={}", path.display());
    let mut call = CALL;
    call[0] = "--module={fixtures}/2.9.0/llvm-cpu/mul.vmfb";
    let outcome = halite(&[&["run", "--profile", flag.as_str()], &call[..]].concat());
    says(&outcome, &["100.0 %  src/mul.mlir:2\n"]);
    let trace: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().iter();
    let sources: Vec<_> = events
        .filter(|event| event["cat"] == "work" || event["cat"] == "dispatch")
        .map(|event| event["args"]["source"].as_str().unwrap())
        .collect();
    assert_eq!(sources, ["src/mul.mlir:2", "src/mul.mlir:2"]);
}

#[test]
fn a_timeline_is_stored_in_the_chrome_trace_format() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("trace.json");
    let flag = format!("--trace={}", path.display());
    let outcome = halite(&[&["run", flag.as_str()], &CALL[..]].concat());
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let trace: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let kinds: Vec<(&str, &str)> = events
        .iter()
        .filter(|event| event["ph"] == "X")
        .map(|event| {
            (
                event["cat"].as_str().unwrap(),
                event["name"].as_str().unwrap(),
            )
        })
        .collect();
    let kernel = "mul_dispatch_0_elementwise_4_f32";
    assert_eq!(
        kinds,
        [("work", kernel), ("dispatch", kernel), ("call", "mul")]
    );
    let tracks: Vec<&str> = events
        .iter()
        .filter(|event| event["ph"] == "M")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(tracks, ["caller", "worker 0"]);
    let outcome = halite(&[&["run", "--trace=/nonexistent/trace.json"], &CALL[..]].concat());
    assert_eq!(outcome.status, 1);
    says(
        &outcome,
        &["error: UNKNOWN: cannot write the timeline to `/nonexistent/trace.json`"],
    );
}
