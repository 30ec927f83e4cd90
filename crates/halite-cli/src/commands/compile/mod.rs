//! `halite compile`: drives an installed IREE compiler with the flags of the inline execution model, and checks what
//! comes out.
#![forbid(unsafe_code)]

mod release;
mod tool;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use halite::StatusCode;
use halite::inspect::{self, Content};

use self::release::Release;
use self::tool::Tool;
use super::check;
use crate::failure::Failure;
use crate::page::Page;
use crate::{Streams, files, plugins};

/// Arguments of `halite compile`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  halite compile mul.mlir
  halite compile model.onnx -o model.vmfb
  halite compile mul.mlir --compiler=iree/bin/iree-compile --iree-llvmcpu-target-cpu=x86-64-v3

The compiler is `iree-compile` of the releases 2.9 to 3.13, for ONNX models 3.12 or newer; `pip install
iree-base-compiler[onnx]` brings it. Its flags that begin with `--iree-` may be given as they are, others after `--`; they
take the place of those that the command gives. Without them, kernels are compiled for the processor of this machine and
may not run on others. Exit status 0: the result will run here; 1: it was not compiled, or will not.")]
pub(crate) struct CompileArgs {
    /// Program to compile: `.mlir`, `.mlirbc`, or `.onnx`, which is imported first
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Where the program goes; without this flag beside its source, as `.vmfb`
    #[arg(short, long, value_name = "FILE.vmfb")]
    output: Option<PathBuf>,

    /// What its kernels are: native code, or portable bytecode, which is slower and needs no trust
    #[arg(long, value_enum, default_value_t = Backend::LlvmCpu)]
    backend: Backend,

    /// The compiler; without this flag `iree-compile` where the system finds programs
    #[arg(long, value_name = "PATH")]
    compiler: Option<PathBuf>,

    /// The importer of ONNX models; without this flag `iree-import-onnx` beside the compiler, or where the system finds
    /// programs
    #[arg(long, value_name = "PATH")]
    importer: Option<PathBuf>,

    /// Executable plugin that kernels may import from when the result is checked. Its code will be run: name only
    /// plugins that you trust
    #[arg(long = "executable_plugin", value_name = "SPEC")]
    executable_plugin: Vec<String>,

    /// Say on standard error which programs are run, and all that they say
    #[arg(short, long)]
    verbose: bool,

    /// Flags for the compiler
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<OsString>,
}

/// What kernels are compiled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Backend {
    /// Native code.
    LlvmCpu,
    /// Portable bytecode.
    Vmvx,
}

/// What a file is compiled from, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Mlir,
    Onnx,
}

/// Runs the command.
pub(crate) fn run(arguments: &CompileArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let source = source(&arguments.file)?;
    let output = match &arguments.output {
        Some(output) => output.clone(),
        None => arguments.file.with_extension("vmfb"),
    };
    let manager = plugins::manager(&arguments.executable_plugin)?;
    let compiler = Tool::compiler(arguments.compiler.as_deref());
    let release = compiler.release()?;
    arguments.say(
        streams,
        format_args!("`{compiler}` is of release {release}"),
    );
    release.require_known(&compiler)?;

    let imported = match source {
        Source::Mlir => None,
        Source::Onnx => Some(import(arguments, &compiler, release, &output, streams)?),
    };
    let mlir = imported.as_ref().map_or(&*arguments.file, AsRef::as_ref);
    let defaults = release.flags(arguments.backend, source == Source::Onnx);
    let mut command_line: Vec<OsString> = vec![mlir.into(), "-o".into(), (&output).into()];
    command_line.extend(without_overridden(&defaults, &arguments.flags).map(Into::into));
    command_line.extend(arguments.flags.iter().cloned());
    let what = format!("cannot compile `{}`", arguments.file.display());
    let compiled = arguments.run_tool(&compiler, &command_line, what, streams);
    compiled.map_err(|failure| failure.or_hint(release.hint(imported.is_some())))?;

    let path = output.display().to_string();
    match check::check(&path, &manager, false, streams)? {
        true => Ok(()),
        false => Err(Failure::Reported),
    }
}

impl CompileArgs {
    fn say(&self, streams: &mut Streams<'_>, what: impl std::fmt::Display) {
        if self.verbose {
            let mut page = Page::default();
            page.line(0, format_args!("info: {what}"));
            // What cannot be said is no reason to fail.
            let _ = streams.stderr.write_all(page.text().as_bytes());
        }
    }

    /// Runs a tool and passes on what it says, if the user wants to know; `what` fails when it fails.
    fn run_tool(
        &self,
        tool: &Tool,
        command_line: &[OsString],
        what: String,
        streams: &mut Streams<'_>,
    ) -> Result<(), Failure> {
        let words = command_line.iter().map(|word| word.to_string_lossy());
        let words: Vec<_> = words.collect();
        self.say(streams, format_args!("running {tool} {}", words.join(" ")));
        let run = tool.run(command_line)?;
        if self.verbose {
            let _ = streams.stderr.write_all(run.messages.as_bytes());
        }
        run.into_result(tool, what)
    }
}

/// Imports an ONNX model into a file that goes when the result is dropped.
fn import(
    arguments: &CompileArgs,
    compiler: &Tool,
    release: Release,
    output: &Path,
    streams: &mut Streams<'_>,
) -> Result<Temporary, Failure> {
    let importer = Tool::importer(arguments.importer.as_deref(), compiler);
    // Beside the output, where there is room for it.
    let imported = Temporary::create(output.with_extension("imported.mlir"))?;
    let mut command_line: Vec<OsString> = vec![(&arguments.file).into()];
    command_line.extend(release.import_flags().iter().map(Into::into));
    command_line.extend(["-o".into(), imported.as_ref().into()]);
    let what = format!("cannot import `{}`", arguments.file.display());
    arguments.run_tool(&importer, &command_line, what, streams)?;
    Ok(imported)
}

/// A file that is removed when this is dropped.
#[derive(Debug)]
struct Temporary(PathBuf);

impl Temporary {
    /// Makes the file, unless there is one already, which may be the user's.
    fn create(path: PathBuf) -> Result<Self, Failure> {
        let made = std::fs::File::create_new(&path);
        made.map_err(|source| {
            let (code, hint) = match source.kind() {
                ErrorKind::AlreadyExists => (
                    StatusCode::ALREADY_EXISTS,
                    Some("remove it, or name another output with -o".to_owned()),
                ),
                ErrorKind::NotFound => (StatusCode::NOT_FOUND, None),
                ErrorKind::PermissionDenied => (StatusCode::PERMISSION_DENIED, None),
                _ => (StatusCode::UNKNOWN, None),
            };
            let what = format!("cannot make `{}` for what is imported", path.display());
            Failure::work(code, what).caused_by(source).with_hint(hint)
        })?;
        Ok(Self(path))
    }
}

impl AsRef<Path> for Temporary {
    fn as_ref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // A file that stays is no reason to fail.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Returns what the file is compiled from.
fn source(path: &Path) -> Result<Source, Failure> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        Some("mlir" | "mlirbc") => return readable(path, Source::Mlir),
        Some("onnx") => return readable(path, Source::Onnx),
        _ => {}
    }
    let what = format!(
        "`{}` cannot be compiled: its name ends neither in `.mlir`, `.mlirbc` nor in `.onnx`",
        path.display()
    );
    let mut failure = Failure::work(StatusCode::INVALID_ARGUMENT, what);
    let described = std::fs::read(path).map(|bytes| inspect::describe(&bytes));
    if let Ok(Ok(description)) = described {
        failure = match description.content {
            Content::Module(_) => failure
                .with_cause("the file is a compiled program".to_owned())
                .with_hint(Some(format!("run it with --module={}", path.display()))),
            Content::Other { what } => failure.with_cause(format!("the file is {what}")),
            _ => failure,
        };
    }
    Err(failure)
}

/// Checks that a source is there, before a tool says so in words of its own.
fn readable(path: &Path, source: Source) -> Result<Source, Failure> {
    match std::fs::File::open(path) {
        Ok(_) => Ok(source),
        Err(error) => Err(files::read_failure(&path.display().to_string(), error)),
    }
}

/// Returns the flags of `defaults` that no flag of the user's sets.
///
/// The compiler refuses a flag that is given twice. Flags of the target processor belong together: whoever sets one
/// sets them all.
fn without_overridden<'a>(
    defaults: &'a [&'static str],
    given: &'a [OsString],
) -> impl Iterator<Item = &'static str> + 'a {
    const TARGET: &str = "--iree-llvmcpu-target-";
    let name = |flag: &str| {
        flag.split_once('=')
            .map_or(flag, |(name, _)| name)
            .to_owned()
    };
    let given: Vec<String> = given
        .iter()
        .map(|flag| name(&flag.to_string_lossy()))
        .collect();
    let sets_target = given.iter().any(|flag| flag.starts_with(TARGET));
    let is_overridden =
        move |flag: &str| given.contains(&name(flag)) || sets_target && flag.starts_with(TARGET);
    defaults
        .iter()
        .copied()
        .filter(move |flag| !is_overridden(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_the_user_take_the_place_of_the_commands() {
        let left = |given: &[&str]| {
            let given: Vec<OsString> = given.iter().map(OsString::from).collect();
            without_overridden(&["--a=1", "--iree-llvmcpu-target-cpu=host"], &given)
                .collect::<Vec<_>>()
        };
        assert_eq!(left(&["--b"]), ["--a=1", "--iree-llvmcpu-target-cpu=host"]);
        assert_eq!(left(&["--a=2"]), ["--iree-llvmcpu-target-cpu=host"]);
        assert_eq!(
            left(&["--iree-llvmcpu-target-triple=aarch64-unknown-linux-gnu"]),
            ["--a=1"]
        );
    }
}
