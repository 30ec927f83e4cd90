//! `halite completions`: prints what makes a shell complete the command's names and flags.
#![forbid(unsafe_code)]

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::Streams;
use crate::args::Cli;
use crate::failure::Failure;

/// Arguments of `halite completions`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  halite completions bash > ~/.local/share/bash-completion/completions/halite")]
pub(crate) struct CompletionsArgs {
    /// Shell to print for
    #[arg(value_enum)]
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(arguments: &CompletionsArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "halite", &mut script);
    streams.stdout.write_all(&script).map_err(Failure::Stdout)
}
