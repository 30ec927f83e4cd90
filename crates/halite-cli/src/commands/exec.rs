//! `halite exec`: runs one function of one executable and prints what is in its bindings afterwards.
#![forbid(unsafe_code)]

use std::str::FromStr;
use std::time::Instant;

use clap::Args;
use halite::inspect::{self, Content};
use halite::text::{Inputs, Parameter, write_tensor};
use halite::{Atom, Executable, ExecutableError, ExecutableOptions, StatusCode, Tensor, Value};

use crate::diagnostics::DiagnosticArgs;
use crate::failure::Failure;
use crate::page::Human;
use crate::{Streams, files, hints, inputs, plugins, trust};

/// Most bindings of a dispatch.
const MAX_BINDINGS: usize = 64;

/// Arguments of `halite exec`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  halite exec --executable=mul.so --entry_point=mul_dispatch_0 --workgroup_count=1,1,1 \\
    --binding=4xf32=1,2,3,4 --binding=4xf32=10,20,30,40 --binding=4xf32

`halite inspect` shows the functions of an executable and how many bindings and constants they take. What else a function
wants is not checked: sizes, types and counts must be those it was compiled for. Its code will be run, so name only
executables that you trust.")]
pub(crate) struct ExecArgs {
    /// Executable to load, or program whose executables are looked into; `-` for standard input
    #[arg(long, alias = "executable_file", required = true, value_name = "FILE")]
    executable: String,

    /// Format of the executable, such as `embedded-elf-x86_64`, if it cannot be told from the file
    #[arg(long = "executable_format", value_name = "FORMAT")]
    executable_format: Option<String>,

    /// Function to run, by name or ordinal; may be left out when there is only one
    #[arg(long = "entry_point", value_name = "NAME|ORDINAL")]
    entry_point: Option<String>,

    /// Numbers of workgroups in x, y and z
    #[arg(
        long = "workgroup_count",
        default_value = "1,1,1",
        value_name = "X,Y,Z"
    )]
    workgroup_count: WorkgroupCount,

    /// Memory that the function works on, given once for each in the forms of `run --input`: `4xf32=1,2,3,4`, `4xf32`
    /// (zeros), `@file.npy`
    #[arg(long, value_name = "SHAPExTYPE[=DATA]", allow_hyphen_values = true)]
    binding: Vec<String>,

    /// 32-bit constant for the function, given once for each
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    constant: Vec<Constant>,

    /// 32-bit constant for the whole executable, given once for each
    #[arg(
        long = "executable_constant",
        value_name = "INTEGER",
        allow_hyphen_values = true
    )]
    executable_constant: Vec<Constant>,

    /// Executable plugin that it may import from; later ones are asked first. Its code will be run: name only plugins
    /// that you trust
    #[arg(long = "executable_plugin", value_name = "SPEC")]
    executable_plugin: Vec<String>,

    /// Threads that run workgroups; 1 is the calling thread alone, 0 is one for each core
    #[arg(long, default_value_t = 1, value_name = "N")]
    threads: usize,

    /// Most elements of a binding to print
    #[arg(
        long = "output_max_element_count",
        default_value_t = 1024,
        value_name = "N"
    )]
    output_max_element_count: usize,

    #[command(flatten)]
    diagnostics: DiagnosticArgs,
}

/// Numbers of workgroups in x, y and z; those left out are 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WorkgroupCount([u32; 3]);

impl FromStr for WorkgroupCount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut count = [1; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > count.len() {
            return Err("at most three numbers".to_owned());
        }
        for (slot, part) in count.iter_mut().zip(parts) {
            *slot = part
                .trim()
                .parse()
                .map_err(|error| format!("`{part}`: {error}"))?;
        }
        Ok(Self(count))
    }
}

/// A 32-bit constant: a decimal number of either sign, or a hexadecimal one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Constant(u32);

impl FromStr for Constant {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(digits) = text.strip_prefix("0x") {
            return match u32::from_str_radix(digits, 16) {
                Ok(value) => Ok(Self(value)),
                Err(error) => Err(error.to_string()),
            };
        }
        let value: i64 = text.parse().map_err(|error| format!("{error}"))?;
        let signed = i32::try_from(value).map(i32::cast_unsigned);
        match u32::try_from(value).or(signed) {
            Ok(value) => Ok(Self(value)),
            Err(_) => Err("it does not fit 32 bits".to_owned()),
        }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &ExecArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let bindings = bindings(&arguments.binding)?;
    let diagnostics = arguments.diagnostics.start();
    let mut options = ExecutableOptions::default()
        .native_code(trust::of_the_user())
        .plugins(plugins::manager(&arguments.executable_plugin)?)
        .threads(arguments.threads)
        .constants(
            arguments
                .executable_constant
                .iter()
                .map(|constant| constant.0)
                .collect(),
        );
    if let Some(format) = &arguments.executable_format {
        options = options.format(format);
    }
    if let Some(profiler) = diagnostics.profiler() {
        options = options.profiler(profiler.clone());
    }
    let (executable, function) = load(arguments, &options, streams)?;
    let name = function_name(&executable, function);
    diagnostics.say(
        streams,
        format_args!(
            "loaded {} as {}",
            files::name(&arguments.executable),
            executable.format()
        ),
    );

    let constants: Vec<u32> = arguments
        .constant
        .iter()
        .map(|constant| constant.0)
        .collect();
    writeln!(streams.stdout, "EXEC @{name}").map_err(Failure::Stdout)?;
    streams.stdout.flush().map_err(Failure::Stdout)?;
    let begin = Instant::now();
    let dispatched = diagnostics.watch(&name, || {
        executable.dispatch(function, arguments.workgroup_count.0, &constants, &bindings)
    });
    diagnostics.say(
        streams,
        format_args!("ran `{name}` in {}", Human(begin.elapsed())),
    );
    diagnostics.finish(streams)?;
    dispatched.map_err(|error| Failure::of(error.status_code(), &error))?;

    for (index, binding) in bindings.iter().enumerate() {
        let mut text = String::new();
        write_tensor(&mut text, binding, arguments.output_max_element_count)
            .map_err(|error| Failure::of(error.status_code(), &error))?;
        writeln!(streams.stdout, "binding[{index}]: {text}").map_err(Failure::Stdout)?;
    }
    Ok(())
}

/// Reads the items of `--binding`.
fn bindings(items: &[String]) -> Result<Vec<Tensor>, Failure> {
    let tensor = Parameter {
        atom: Atom::Ref,
        declared_type: None,
    };
    let parameters = [tensor; MAX_BINDINGS];
    let values = Inputs::new()
        .parse(items, &parameters)
        .map_err(|error| inputs::input_failure("--binding", items, &parameters, &error))?;
    let tensors = values
        .into_iter()
        .enumerate()
        .map(|(index, value)| match value {
            Value::Tensor(tensor) => Ok(tensor),
            other => {
                let what = format!(
                    "--binding {index} must be a tensor, not a {}",
                    other.type_name()
                );
                Err(Failure::work(StatusCode::INVALID_ARGUMENT, what))
            }
        });
    tensors.collect()
}

/// Loads the executable, or the first one of a program that has the function.
fn load(
    arguments: &ExecArgs,
    options: &ExecutableOptions,
    streams: &mut Streams<'_>,
) -> Result<(Executable, u32), Failure> {
    let bytes = files::read(&arguments.executable, streams.stdin)?;
    let file = files::name(&arguments.executable);
    let candidates = candidates(&bytes, arguments.executable_format.as_deref());
    let Some(candidates) = candidates else {
        let executable = load_image(file, bytes, options)?;
        let function = function(&executable, arguments.entry_point.as_deref())?;
        return Ok((executable, function));
    };
    let mut first_failure = None;
    for (format, data) in candidates {
        let options = match format {
            Some(format) => options.clone().format(format),
            None => options.clone(),
        };
        let found = load_image(file, data, &options).and_then(|executable| {
            let function = function(&executable, arguments.entry_point.as_deref())?;
            Ok((executable, function))
        });
        match found {
            Ok(found) => return Ok(found),
            Err(failure) => {
                first_failure.get_or_insert(failure);
            }
        }
    }
    Err(first_failure.unwrap_or_else(|| {
        let what = format!("the program `{file}` has no executable of this format");
        Failure::work(StatusCode::NOT_FOUND, what)
    }))
}

/// Returns the executables of a program with their formats, or `None` for any other file.
fn candidates(bytes: &[u8], format: Option<&str>) -> Option<Vec<(Option<String>, Vec<u8>)>> {
    let Content::Module(module) = inspect::describe(bytes).ok()?.content else {
        return None;
    };
    // A program without executables may be one itself: portable kernels.
    if module.executables.is_empty() {
        return None;
    }
    let wanted = module.executables.iter().filter(|executable| {
        format.is_none_or(|format| {
            executable
                .format
                .as_deref()
                .is_none_or(|named| named == format)
        })
    });
    let found = wanted.filter_map(|executable| {
        let start = module.rodata.get(executable.rodata)?.offset;
        let data = bytes.get(start..)?.get(..executable.byte_length)?;
        Some((executable.format.clone(), data.to_vec()))
    });
    Some(found.collect())
}

/// Loads the executable in `bytes`, which are those of a file or a part of one.
fn load_image(
    file: &str,
    bytes: Vec<u8>,
    options: &ExecutableOptions,
) -> Result<Executable, Failure> {
    Executable::load(bytes.clone(), options).map_err(|error| {
        Failure::of(error.status_code(), &error)
            .saying(format!("`{file}`: {error}"))
            .with_hint(hint(file, &error, &bytes))
    })
}

/// Returns what to do about an executable in `bytes` that cannot be loaded.
fn hint(file: &str, error: &ExecutableError, bytes: &[u8]) -> Option<String> {
    if hints::has_missing_imports(error) {
        return Some(hints::NAME_PLUGINS.to_owned());
    }
    let content = inspect::describe(bytes).map(|description| description.content);
    match (content, error) {
        (Ok(Content::Other { what }), _) => Some(format!("the file is {what}")),
        (Ok(Content::Npy(_)), _) => Some("the file is a NumPy array".to_owned()),
        (Ok(Content::Elf(elf)), _) if elf.plugin.is_some() && elf.library.is_none() => Some(
            format!("the file is a plugin, which is named with --executable_plugin={file}"),
        ),
        (_, ExecutableError::UnknownFormat) => {
            Some("name it with --executable_format=FORMAT".to_owned())
        }
        _ => None,
    }
}

/// Returns the ordinal of the function that the user names.
fn function(executable: &Executable, name: Option<&str>) -> Result<u32, Failure> {
    let Some(name) = name else {
        let functions: Vec<_> = executable.functions().map(ToString::to_string).collect();
        if functions.len() == 1 {
            return Ok(0);
        }
        let what = format!(
            "the executable has {} functions, one must be named",
            functions.len()
        );
        let hint = format!("name one with --entry_point: {}", functions.join(", "));
        return Err(Failure::work(StatusCode::INVALID_ARGUMENT, what).with_hint(Some(hint)));
    };
    if let Ok(ordinal) = name.parse() {
        return Ok(ordinal);
    }
    executable.lookup(name).map_err(|error| {
        let functions: Vec<_> = executable.functions().map(ToString::to_string).collect();
        let hint = format!("it has {}", functions.join(", "));
        Failure::of(error.status_code(), &error).with_hint(Some(hint))
    })
}

/// Returns the name of a function, or its ordinal if the executable holds no names.
fn function_name(executable: &Executable, function: u32) -> String {
    let name = executable
        .functions()
        .find(|info| info.ordinal() == function);
    match name.and_then(|info| info.name()) {
        Some(name) => String::from_utf8_lossy(name).into_owned(),
        None => format!("{function}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workgroup_counts_left_out_are_1() {
        assert_eq!("4, 2,3".parse(), Ok(WorkgroupCount([4, 2, 3])));
        assert_eq!("4".parse(), Ok(WorkgroupCount([4, 1, 1])));
        assert!("1,2,3,4".parse::<WorkgroupCount>().is_err());
        assert!("-1".parse::<WorkgroupCount>().is_err());
        assert!("".parse::<WorkgroupCount>().is_err());
    }

    #[test]
    fn constants_are_32_bits_of_either_sign() {
        for (text, value) in [
            ("-1", u32::MAX),
            ("4294967295", u32::MAX),
            ("0x10", 16),
            ("7", 7),
        ] {
            assert_eq!(text.parse(), Ok(Constant(value)), "{text}");
        }
        for text in ["4294967296", "-2147483649", "0x", "1.5", ""] {
            assert!(text.parse::<Constant>().is_err(), "{text}");
        }
    }
}
