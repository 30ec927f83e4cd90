//! Micro-benchmarks: what one operation of each layer costs.
//!
//! `cargo bench -p halite` measures time with criterion. `micro --count SCENARIO CALLS` runs one scenario that many
//! times and nothing else, for a tool that counts instructions: the difference of two run lengths has neither the start
//! of the process nor the making of the session in it. `cargo xtask bench` does both and prints a table.
//!
//! The scenarios are in `scenarios`, what they run on in `workbench`, the kernels they dispatch in `kernels`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program for developers"
)]

mod kernels;
mod scenarios;
mod workbench;

use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

use criterion::Criterion;

use crate::scenarios::{SCENARIOS, Scenario};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match words[..] {
        ["--count", name, calls] => count(name, calls),
        _ => measure(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one scenario `calls` times.
fn count(name: &str, calls: &str) -> Result<(), Box<dyn Error>> {
    let calls = calls.parse()?;
    let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name);
    let scenario: &Scenario = scenario.ok_or_else(|| format!("no scenario named `{name}`"))?;
    (scenario.prepare)()?(calls)?;
    println!("{name}: {calls} calls");
    Ok(())
}

/// Measures the time of all scenarios, or of those that the arguments of `cargo bench` select.
fn measure() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default().configure_from_args();
    for scenario in SCENARIOS {
        let mut run = (scenario.prepare)()?;
        criterion.bench_function(scenario.name, |bencher| {
            bencher.iter_custom(|calls| {
                let start = Instant::now();
                run(calls).expect("the scenario ran when it was prepared");
                start.elapsed()
            });
        });
    }
    criterion.final_summary();
    Ok(())
}
