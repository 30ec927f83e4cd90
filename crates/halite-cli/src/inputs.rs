//! From flags to a session, a function and its arguments: what all commands that call something share.
#![forbid(unsafe_code)]

use std::io::Read;
use std::sync::Arc;

use halite::text::{InputError, Inputs};
use halite::{Function, PluginSpec, Profiler, Program, Session, StatusCode, TraceSink, Value};

use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::{Streams, files, trust};

/// Loads the programs and plugins that the flags name.
pub(crate) fn session(
    arguments: &SessionArgs,
    trace_sink: Option<Arc<dyn TraceSink>>,
    profiler: Option<&Profiler>,
    streams: &mut Streams<'_>,
) -> Result<Session, Failure> {
    let mut builder = Session::builder().threads(arguments.threads);
    if let Some(sink) = trace_sink {
        builder = builder.trace_sink(sink);
    }
    if let Some(profiler) = profiler {
        builder = builder.profiler(profiler.clone());
    }
    if !arguments.no_native {
        builder = builder.native_code(trust::of_the_user());
    }
    for path in &arguments.module {
        builder = builder.program(program(path, streams.stdin)?);
    }
    for spec in &arguments.executable_plugin {
        let spec = PluginSpec::parse(spec)
            .map_err(|error| Failure::of(StatusCode::INVALID_ARGUMENT, &error))?;
        builder = builder.plugin(spec);
    }
    Ok(builder.build()?)
}

/// Loads the program in a file, or in standard input when the path is `-`.
fn program(path: &str, stdin: &mut dyn Read) -> Result<Program, Failure> {
    if path != "-" {
        return Ok(Program::open(path)?);
    }
    let bytes = files::read(path, stdin)?;
    Ok(Program::from_named_bytes(files::name(path), bytes)?)
}

/// Returns the function of this name, or the only one when the name is empty.
pub(crate) fn function<'s>(session: &'s Session, name: &str) -> Result<Function<'s>, Failure> {
    if name.is_empty() {
        return Ok(session.only_function()?);
    }
    Ok(session.function(name)?)
}

/// Reads the items of `--input` as the arguments of a function.
pub(crate) fn arguments(function: &Function<'_>, items: &[String]) -> Result<Vec<Value>, Failure> {
    let parameters = function.parameters();
    let values = Inputs::new()
        .parse(items, &parameters)
        .map_err(|error| input_failure("--input", &error))?;
    if values.len() < parameters.len() {
        return Err(missing(function, values.len(), parameters.len()));
    }
    Ok(values)
}

/// Returns the failure of an item of a flag.
pub(crate) fn input_failure(flag: &str, error: &InputError) -> Failure {
    let what = format!("cannot read {flag} {}, `{}`", error.index, error.item);
    let causes = Failure::of(error.status_code(), error);
    match causes {
        Failure::Work(mut work) => {
            work.set_what(what);
            Failure::Work(work).with_hint(error.hint())
        }
        other => other,
    }
}

/// Returns the failure of a call with too few arguments: it lists those that are missing.
fn missing(function: &Function<'_>, given: usize, expected: usize) -> Failure {
    let noun = if expected == 1 { "input" } else { "inputs" };
    let what = format!(
        "the function `{}` takes {expected} {noun}, given are {given}",
        function.name()
    );
    let mut failure = Failure::work(StatusCode::INVALID_ARGUMENT, what);
    let Some(signature) = function.signature() else {
        return failure.with_cause(format!(
            "its calling convention is {}",
            function.convention()
        ));
    };
    let left = signature.inputs.get(given..).unwrap_or_default();
    for (index, declared) in left.iter().enumerate() {
        failure = failure.with_cause(format!(
            "missing input {}: {}",
            given + index,
            declared.type_name
        ));
    }
    let examples: Vec<String> = left
        .iter()
        .map(|declared| format!("--input={}", declared.example()))
        .collect();
    failure.with_hint(Some(format!("add {}", examples.join(" "))))
}
