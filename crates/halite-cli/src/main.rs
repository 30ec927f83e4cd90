//! The `halite` command. Everything is in the library, so that tests can run it in their own process.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stderr,
    reason = "there is nothing else to tell the user with yet"
)]

use std::env;
use std::io;
use std::process::ExitCode;

use halite_cli::{Streams, log_spans, main_with};

/// The variable that names the spans to write to standard error.
const LOG: &str = "HALITE_LOG";

fn main() -> ExitCode {
    if let Some(filter) = env::var_os(LOG)
        && let Err(problem) = log_spans(&filter.to_string_lossy())
    {
        eprintln!("error: INVALID_ARGUMENT: {LOG} is no filter of spans: {problem}");
        return ExitCode::from(2);
    }
    let mut streams = Streams {
        stdin: &mut io::stdin().lock(),
        stdout: &mut io::stdout().lock(),
        // Not locked: workers write their spans to it.
        stderr: &mut io::stderr(),
    };
    ExitCode::from(main_with(env::args_os(), &mut streams))
}
