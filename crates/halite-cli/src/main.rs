//! The `halite` command. Everything is in the library, so that tests can run it in their own process.
#![forbid(unsafe_code)]

use std::env;
use std::io;
use std::process::ExitCode;

use halite_cli::{Streams, main_with};

fn main() -> ExitCode {
    let mut streams = Streams {
        stdin: &mut io::stdin().lock(),
        stdout: &mut io::stdout().lock(),
        stderr: &mut io::stderr().lock(),
    };
    ExitCode::from(main_with(env::args_os(), &mut streams))
}
