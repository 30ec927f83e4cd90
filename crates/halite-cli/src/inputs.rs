//! From flags to a session, a function and its arguments: what all commands that call something share.
#![forbid(unsafe_code)]

use std::io::Read;
use std::sync::Arc;

use halite::text::{InputError, Inputs, Parameter};
use halite::{
    Atom, Function, PluginSpec, Profiler, Program, Session, StatusCode, TraceSink, Value,
};

use crate::args::SessionArgs;
use crate::failure::Failure;
use crate::{Streams, files, hints, trust};

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
pub(crate) fn arguments(
    function: &Function<'_>,
    items: &[String],
    streams: &mut Streams<'_>,
) -> Result<Vec<Value>, Failure> {
    let parameters = function.parameters();
    let values = Inputs::new()
        .parse(items, &parameters)
        .map_err(|error| input_failure("--input", items, &parameters, &error))?;
    if values.len() < parameters.len() {
        return Err(missing(function, values.len(), parameters.len()));
    }
    warn_of_cut_numbers(items, &parameters, streams);
    Ok(values)
}

/// Warns of items such as `1xi32=5`, of which only the number at the start counts, as in IREE's tools.
fn warn_of_cut_numbers(items: &[String], parameters: &[Parameter<'_>], streams: &mut Streams<'_>) {
    for (index, (item, parameter)) in items.iter().zip(parameters).enumerate() {
        let Some((_, number)) = item.split_once('=') else {
            continue;
        };
        if parameter.atom != Atom::Ref && items.len() == parameters.len() {
            // What cannot be said is no reason to fail.
            let _ = writeln!(
                streams.stderr,
                "warning: the function takes a number as input {index}, of `{item}` only the start is read; \
                 write `{number}`"
            );
        }
    }
}

/// Returns the failure of an item of a flag, for these parameters.
pub(crate) fn input_failure(
    flag: &str,
    items: &[String],
    parameters: &[Parameter<'_>],
    error: &InputError,
) -> Failure {
    let what = format!("cannot read {flag} {}, `{}`", error.index, error.item);
    let item = items.get(error.index).map_or("", |item| item.trim());
    // An item with a star may be many values.
    let is_one_each = !items
        .iter()
        .take(error.index)
        .any(|item| item.trim().starts_with('*'));
    let parameter = parameters.get(error.index).filter(|_| is_one_each);
    Failure::of(error.status_code(), error)
        .saying(what)
        .with_hint(hints::of_input(error, item, parameter))
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
