//! The `halite` command. Everything is in the library, so that tests can run it in their own process.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stderr,
    reason = "there is nothing else to tell the user with yet"
)]

use std::env;
use std::io::{self, IsTerminal};
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
        color: shows_colors(&io::stderr()),
    };
    ExitCode::from(main_with(env::args_os(), &mut streams))
}

/// Returns whether a stream is a terminal that shows colors, and its user wants them (<https://no-color.org>).
fn shows_colors(stream: &impl IsTerminal) -> bool {
    let is_unwanted = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = env::var_os("TERM").is_none_or(|value| value == "dumb");
    stream.is_terminal() && !is_unwanted && !is_dumb
}
