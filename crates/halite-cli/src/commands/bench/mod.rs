//! `halite bench`: times a function of a program.
#![forbid(unsafe_code)]

mod clock;
mod measure;

use std::str::FromStr;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;

use self::measure::{Measurement, Plan};
use crate::args::{CallArgs, SessionArgs};
use crate::diagnostics::DiagnosticArgs;
use crate::failure::Failure;
use crate::page::{Human, Page};
use crate::{Streams, inputs};

/// Arguments of `halite bench`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  halite bench --module=mul.vmfb --function=mul --input=4xf32=1,2,3,4 --input=4xf32=10,20,30,40

Times are those of a whole call: arguments are passed, kernels run, results come back. Native code of the named modules
and plugins is run: name only those that you trust.")]
pub(crate) struct BenchArgs {
    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    call: CallArgs,

    /// How long to measure, in seconds; calls that take longer are measured once
    #[arg(
        long = "benchmark_min_time",
        default_value = "0.5",
        value_name = "SECONDS"
    )]
    benchmark_min_time: Seconds,

    /// How often the program repeats its work in each call; times are divided by it
    #[arg(long = "batch_size", default_value = "1", value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..))]
    batch_size: u32,

    /// How results are printed
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    #[command(flatten)]
    diagnostics: DiagnosticArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Table,
    /// One object.
    Json,
}

/// A time in seconds, with or without an `s` behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('s').unwrap_or(text);
        let seconds: f64 = number.parse().map_err(|error| format!("{error}"))?;
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) => Ok(Self(duration)),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// What was measured, times in nanoseconds per call.
#[derive(Serialize)]
struct Report {
    /// The function.
    name: String,
    /// How often it was called, times the batch size.
    iterations: u64,
    median_ns: f64,
    mean_ns: f64,
    min_ns: f64,
    max_ns: f64,
    /// A tenth of the calls are faster.
    p10_ns: f64,
    /// A tenth of the calls are slower.
    p90_ns: f64,
    /// Processor time of the whole process; null where the system does not tell.
    cpu_ns: Option<f64>,
    calls_per_second: f64,
    threads: usize,
    batch_size: u32,
}

/// Runs the command.
pub(crate) fn run(arguments: &BenchArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let diagnostics = arguments.diagnostics.start();
    let begin = Instant::now();
    let session = inputs::session(&arguments.session, None, diagnostics.profiler(), streams)?;
    diagnostics.say_loaded(&session, begin.elapsed(), streams);
    let function = inputs::function(&session, &arguments.call.function)?;
    let values = inputs::arguments(&function, &arguments.call.input, streams)?;

    let name = function.name();
    let mut results = Vec::new();
    let mut call = || diagnostics.watch(name, || function.invoke_into(&values, &mut results));
    let plan = Plan::warm_up(arguments.benchmark_min_time.0, &mut call)?;
    diagnostics.reset();
    diagnostics.say(
        streams,
        format_args!("warmed up; calls per sample: {}", plan.calls_per_sample()),
    );
    let measurement = plan.measure(call)?;
    diagnostics.finish(streams)?;

    let report = report(name, &measurement, arguments);
    let text = match arguments.format {
        Format::Json => crate::json::line(&report),
        Format::Table => table(&report),
    };
    write!(streams.stdout, "{text}").map_err(Failure::Stdout)
}

fn report(name: &str, measurement: &Measurement, arguments: &BenchArgs) -> Report {
    // The clock does not tell more than a tenth of a nanosecond.
    let per_call =
        |nanoseconds: f64| (nanoseconds / f64::from(arguments.batch_size) * 10.0).round() / 10.0;
    let calls = measurement
        .calls()
        .saturating_mul(arguments.batch_size.into());
    Report {
        name: name.to_owned(),
        iterations: calls,
        median_ns: per_call(measurement.tenths(5)),
        mean_ns: per_call(measurement.mean()),
        min_ns: per_call(measurement.tenths(0)),
        max_ns: per_call(measurement.tenths(10)),
        p10_ns: per_call(measurement.tenths(1)),
        p90_ns: per_call(measurement.tenths(9)),
        cpu_ns: measurement.cpu().map(per_call),
        calls_per_second: (1e9 * f64::from(arguments.batch_size) / measurement.mean()).round(),
        threads: arguments.session.threads,
        batch_size: arguments.batch_size,
    }
}

fn table(report: &Report) -> String {
    let time = |nanoseconds: f64| Human(Duration::from_secs_f64(nanoseconds / 1e9)).to_string();
    let header = [
        "function",
        "median",
        "min",
        "10 % to 90 %",
        "cpu",
        "calls/s",
        "calls",
    ];
    let cells = [
        report.name.clone(),
        time(report.median_ns),
        time(report.min_ns),
        format!("{} to {}", time(report.p10_ns), time(report.p90_ns)),
        report.cpu_ns.map_or("-".to_owned(), time),
        format!("{:.0}", report.calls_per_second),
        report.iterations.to_string(),
    ];
    let mut page = Page::default();
    page.table(0, &[header.map(str::to_owned).to_vec(), cells.to_vec()]);
    page.text().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_may_have_its_unit_behind_it() {
        let seconds = |text: &str| text.parse::<Seconds>().map(|seconds| seconds.0);
        assert_eq!(seconds("0.05s"), Ok(Duration::from_millis(50)));
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        for text in ["-1", "nan", "1m", "", "1e300"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
