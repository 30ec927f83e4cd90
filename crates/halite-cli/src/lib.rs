//! The `halite` command as a library: [`main_with`] is the command, without the process around it.
//!
//! Data goes to standard output, everything else to standard error. Exit status 0: done; 1: the work failed; 2: wrong
//! usage. Flags are those of IREE's tools where they have them.
#![deny(unsafe_code)]

mod args;
mod commands;
mod diagnostics;
mod failure;
mod files;
mod flags;
mod hints;
mod inputs;
mod json;
mod output;
mod page;
mod plugins;
mod spans;
mod traces;
mod trust;

use core::fmt;
use std::ffi::OsString;
use std::io::{BufWriter, Read, Write};

use clap::Parser;

pub use spans::log_spans;

use crate::args::{Cli, Command, Deferred};
use crate::failure::Failure;

/// Where the command reads and writes.
pub struct Streams<'a> {
    /// Standard input: what `--module=-` reads.
    pub stdin: &'a mut dyn Read,
    /// Standard output: data.
    pub stdout: &'a mut dyn Write,
    /// Standard error: everything else.
    pub stderr: &'a mut dyn Write,
    /// Whether standard error shows colors.
    pub color: bool,
}

impl fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streams").finish_non_exhaustive()
    }
}

/// Runs the command and returns its exit status. The first argument is the name of the program.
///
/// # Examples
/// ```
/// let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
/// let mut streams = halite_cli::Streams {
///     stdin: &mut std::io::empty(),
///     stdout: &mut stdout,
///     stderr: &mut stderr,
///     color: false,
/// };
/// let status = halite_cli::main_with(["halite", "run", "--module=nope.vmfb"].map(Into::into), &mut streams);
/// assert_eq!(status, 1);
/// assert!(stderr.starts_with(b"error: NOT_FOUND: cannot read `nope.vmfb`"));
/// ```
pub fn main_with(arguments: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    let failure = match run(arguments, streams) {
        Ok(()) => return 0,
        Err(failure) => failure,
    };
    // There is nobody to tell when standard error is gone.
    let _ = failure.report(streams);
    failure.exit_status()
}

fn run(
    arguments: impl IntoIterator<Item = OsString>,
    streams: &mut Streams<'_>,
) -> Result<(), Failure> {
    let arguments = flags::expand(arguments)?;
    let cli = Cli::try_parse_from(&arguments).map_err(failure::of_arguments)?;
    let mut stdout = BufWriter::new(&mut *streams.stdout);
    let mut buffered = Streams {
        stdin: &mut *streams.stdin,
        stdout: &mut stdout,
        stderr: &mut *streams.stderr,
        color: streams.color,
    };
    let result = match cli.command {
        Command::Run(Deferred(run)) if run.isolate.asks_for_child() => {
            commands::isolate::run(&arguments, &mut buffered)
        }
        Command::Run(Deferred(arguments)) => commands::run::run(&arguments, &mut buffered),
        Command::Bench(Deferred(arguments)) => commands::bench::run(&arguments, &mut buffered),
        Command::Inspect(Deferred(arguments)) => commands::inspect::run(&arguments, &mut buffered),
        Command::Check(Deferred(arguments)) => commands::check::run(&arguments, &mut buffered),
        Command::Plugin(Deferred(arguments)) => commands::plugin::run(&arguments, &mut buffered),
        Command::Exec(Deferred(arguments)) => commands::exec::run(&arguments, &mut buffered),
        Command::Compile(Deferred(arguments)) => commands::compile::run(&arguments, &mut buffered),
        Command::Completions(Deferred(arguments)) => {
            commands::completions::run(&arguments, &mut buffered)
        }
    };
    // What was written before a failure is data too.
    let flushed = stdout.flush().map_err(Failure::Stdout);
    result.and(flushed)
}
