//! `halite run --isolate`: the command once more, in a child process, so that what ends the child is an error here.
#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::process::{Command, ExitStatus, Stdio};
use std::{env, io};

use clap::Args;
use halite::StatusCode;
use halite::isolate::{Crash, Limits};

use crate::Streams;
use crate::failure::Failure;

/// Flags that run a program in a process of its own.
#[derive(Args, Debug)]
pub(crate) struct IsolateArgs {
    /// Run in a child process: a kernel that crashes is an error that names the signal. For kernels that you did not
    /// build; the child is no sandbox, and may do all that you may do
    #[arg(long)]
    isolate: bool,

    /// With --isolate: most memory (address space) of the child, in MiB
    #[arg(long = "isolate_memory", value_name = "MIB", requires = "isolate")]
    isolate_memory: Option<u64>,

    /// With --isolate: most processor time of the child, in seconds
    #[arg(
        long = "isolate_cpu_time",
        value_name = "SECONDS",
        requires = "isolate"
    )]
    isolate_cpu_time: Option<u64>,

    /// Says to the child that it is the child.
    #[arg(long = "isolated_child", hide = true)]
    isolated_child: bool,
}

impl IsolateArgs {
    /// Tells whether a child is to do the work.
    pub(crate) fn asks_for_child(&self) -> bool {
        self.isolate && !self.isolated_child
    }

    /// Sets the limits of a child, before it loads anything.
    pub(crate) fn limit_child(&self) -> Result<(), Failure> {
        if !self.isolated_child {
            return Ok(());
        }
        self.limits().apply_to_this_process().map_err(|error| {
            Failure::work(StatusCode::UNAVAILABLE, "cannot limit the process").caused_by(error)
        })
    }

    fn limits(&self) -> Limits {
        Limits {
            memory_bytes: self.isolate_memory.map(|mib| mib.saturating_mul(1 << 20)),
            cpu_seconds: self.isolate_cpu_time,
        }
    }
}

/// Runs the command line in a child, which prints its errors itself. The first two of `arguments` are the program and
/// the subcommand.
pub(crate) fn run(arguments: &[OsString], streams: &mut Streams<'_>) -> Result<(), Failure> {
    let failed = |what: &str, error: io::Error| {
        Failure::work(StatusCode::UNAVAILABLE, what).caused_by(error)
    };
    let program = env::current_exe().map_err(|error| failed("cannot find this program", error))?;
    let mut child = Command::new(program)
        .args(arguments.get(1..2).unwrap_or_default())
        .arg("--isolated_child")
        .args(arguments.get(2..).unwrap_or_default())
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .map_err(|error| failed("cannot start a child process", error))?;
    // Taken, so that it is closed before the wait: a child does not wait for a reader that is gone.
    let copied = match child.stdout.take() {
        Some(mut stdout) => io::copy(&mut stdout, streams.stdout).map(drop),
        None => Ok(()),
    };
    let status = child
        .wait()
        .map_err(|error| failed("cannot wait for the child process", error))?;
    copied
        .and_then(|()| streams.stdout.flush())
        .map_err(Failure::Stdout)?;
    outcome(status)
}

/// Returns what the end of a child means for its parent.
fn outcome(status: ExitStatus) -> Result<(), Failure> {
    if let Some(crash) = Crash::of(status) {
        let hint = "the program or a plugin of it is broken, was built for another machine, or reached a limit";
        return Err(Failure::of(crash.status_code(), &crash).with_hint(Some(hint.to_owned())));
    }
    match status.code() {
        Some(0) => Ok(()),
        code => Err(Failure::Passed(
            code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1),
        )),
    }
}
