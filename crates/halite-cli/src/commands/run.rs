//! `halite run`: calls a function of a program and prints, stores or checks its results.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use halite::compare::{Tolerance, compare};
use halite::text::{Inputs, Parameter};
use halite::{Function, Value};

use crate::args::{CallArgs, SessionArgs};
use crate::commands::isolate::IsolateArgs;
use crate::diagnostics::DiagnosticArgs;
use crate::failure::Failure;
use crate::page::Human;
use crate::traces::Traces;
use crate::{Streams, inputs, output};

/// Arguments of `halite run`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  halite run --module=mul.vmfb --function=mul --input=4xf32=1,2,3,4 --input=4xf32=10,20,30,40

Flags may also be spelled with dashes, and read from a file with --flagfile=PATH, one on each line.
With HALITE_LOG=debug in the environment, loading, linking, calls and dispatches are written to standard error as they end.
Native code of the named modules and plugins is run: name only those that you trust.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    session: SessionArgs,

    #[command(flatten)]
    call: CallArgs,

    /// Where a result goes, given once for each: `-` prints it, `@file.npy` and `+file.npy` store or append an array,
    /// `@file` and `+file` raw bytes, an empty value ignores it
    #[arg(long, value_name = "OUTPUT", conflicts_with = "expected_output")]
    output: Vec<String>,

    /// Expected result, given once for each in the form of --input; `(ignored)` accepts any
    #[arg(
        long = "expected_output",
        value_name = "VALUE",
        allow_hyphen_values = true
    )]
    expected_output: Vec<String>,

    /// Most elements of a tensor to print; negative for all
    #[arg(
        long = "output_max_element_count",
        default_value_t = 1024,
        value_name = "N",
        allow_hyphen_values = true
    )]
    output_max_element_count: i64,

    #[command(flatten)]
    tolerance: ToleranceArgs,

    #[command(flatten)]
    diagnostics: DiagnosticArgs,

    #[command(flatten)]
    pub(crate) isolate: IsolateArgs,
}

/// How far results may be from what is expected.
#[derive(Args, Debug)]
struct ToleranceArgs {
    /// Absolute tolerance of f16 elements
    #[arg(
        long = "expected_f16_threshold",
        default_value_t = 1e-3,
        value_name = "X"
    )]
    expected_f16_threshold: f64,

    /// Absolute tolerance of bf16 elements
    #[arg(
        long = "expected_bf16_threshold",
        default_value_t = 1e-2,
        value_name = "X"
    )]
    expected_bf16_threshold: f64,

    /// Absolute tolerance of f32 elements
    #[arg(
        long = "expected_f32_threshold",
        default_value_t = 1e-4,
        value_name = "X"
    )]
    expected_f32_threshold: f64,

    /// Absolute tolerance of f64 elements
    #[arg(
        long = "expected_f64_threshold",
        default_value_t = 1e-4,
        value_name = "X"
    )]
    expected_f64_threshold: f64,

    /// Relative tolerance of floats
    #[arg(long = "expected_rtol", default_value_t = 1e-5, value_name = "X")]
    expected_rtol: f64,

    /// Whether floats may differ within their tolerance or must have the same bytes
    #[arg(long = "equality_mode", value_enum, default_value_t = EqualityMode::Approximate)]
    equality_mode: EqualityMode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EqualityMode {
    Approximate,
    Exact,
}

/// Runs the command.
pub(crate) fn run(arguments: &RunArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    arguments.isolate.limit_child()?;
    let traces = Traces::default();
    let diagnostics = arguments.diagnostics.start();
    let begin = Instant::now();
    let sink = Arc::new(traces.clone());
    let session = inputs::session(
        &arguments.session,
        Some(sink),
        diagnostics.profiler(),
        streams,
    )?;
    diagnostics.say_loaded(&session, begin.elapsed(), streams);
    let function = inputs::function(&session, &arguments.call.function)?;
    let values = inputs::arguments(&function, &arguments.call.input, streams)?;

    writeln!(streams.stdout, "EXEC @{}", function.name()).map_err(Failure::Stdout)?;
    streams.stdout.flush().map_err(Failure::Stdout)?;
    let begin = Instant::now();
    let results = diagnostics.watch(function.name(), || function.invoke(&values));
    let elapsed = begin.elapsed();
    // Traces and notes that cannot be written are no reason to fail.
    let _ = traces.write(streams);
    diagnostics.say(
        streams,
        format_args!("called `{}` for {}", function.name(), Human(elapsed)),
    );
    diagnostics.finish(streams)?;
    let results = results?;

    if !arguments.expected_output.is_empty() {
        return check(arguments, &function, &results, streams);
    }
    let max_elements = arguments.max_elements();
    if !arguments.output.is_empty() {
        return output::write(streams.stdout, &arguments.output, &results, max_elements);
    }
    for (index, result) in results.iter().enumerate() {
        write!(streams.stdout, "result[{index}]: ").map_err(Failure::Stdout)?;
        output::print(streams.stdout, result, max_elements)?;
    }
    if results.is_empty() {
        let _ = writeln!(
            streams.stderr,
            "note: the function `{}` has 0 results",
            function.name()
        );
    }
    Ok(())
}

impl RunArgs {
    fn max_elements(&self) -> usize {
        usize::try_from(self.output_max_element_count).unwrap_or(usize::MAX)
    }
}

/// Compares the results with what is expected and says on standard output how they differ.
fn check(
    arguments: &RunArgs,
    function: &Function<'_>,
    results: &[Value],
    streams: &mut Streams<'_>,
) -> Result<(), Failure> {
    let outputs = function
        .signature()
        .map_or(&[][..], |signature| &signature.outputs);
    let atoms = function.convention().results().iter().enumerate();
    let parameters: Vec<Parameter<'_>> = atoms
        .map(|(index, atom)| Parameter {
            atom: *atom,
            declared_type: outputs
                .get(index)
                .map(|declared| declared.type_name.as_str()),
        })
        .collect();
    let items = &arguments.expected_output;
    let expected = Inputs::new()
        .parse_expected(items, &parameters)
        .map_err(|error| inputs::input_failure("--expected_output", items, &parameters, &error))?;
    let mut report = |text: &str| writeln!(streams.stdout, "{text}").map_err(Failure::Stdout);
    if expected.len() != results.len() {
        report(&format!(
            "[FAILED] expected {} list elements but {} provided",
            expected.len(),
            results.len()
        ))?;
        return Err(Failure::Reported);
    }

    let tolerance = arguments.tolerance.tolerance();
    let mut agree = true;
    for (index, (expected, actual)) in expected.iter().zip(results).enumerate() {
        let difference =
            compare(expected, actual, &tolerance).map_err(|error| output::print_failure(&error))?;
        if let Some(difference) = difference {
            agree = false;
            report(&format!("[FAILED] result[{index}]: {difference}"))?;
        }
    }
    if !agree {
        return Err(Failure::Reported);
    }
    report("[SUCCESS] all function outputs matched their expected values.")
}

impl ToleranceArgs {
    fn tolerance(&self) -> Tolerance {
        Tolerance {
            exact: self.equality_mode == EqualityMode::Exact,
            f16: self.expected_f16_threshold,
            bf16: self.expected_bf16_threshold,
            f32: self.expected_f32_threshold,
            f64: self.expected_f64_threshold,
            relative: self.expected_rtol,
        }
    }
}
