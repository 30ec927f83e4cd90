//! The command line: subcommands and the flags that several of them have.
#![forbid(unsafe_code)]

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::commands;

/// Runs programs compiled by IREE on the CPU.
#[derive(Debug, Parser)]
#[command(name = "halite", version, args_override_self = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(commands::run::RunArgs),
    Bench(commands::bench::BenchArgs),
    Inspect(commands::inspect::InspectArgs),
    Check(commands::check::CheckArgs),
    Plugin(commands::plugin::PluginArgs),
    Exec(commands::exec::ExecArgs),
    Compile(commands::compile::CompileArgs),
    Completions(commands::completions::CompletionsArgs),
}

/// Flags of all commands that load a program to run it.
#[derive(Args, Debug)]
pub(crate) struct SessionArgs {
    /// Program to load (.vmfb), `-` for standard input; given several times, each may depend on those before it. Its
    /// native kernels will be run: name only programs that you trust
    #[arg(long, required = true, value_name = "FILE")]
    pub(crate) module: Vec<String>,

    /// Executable plugin to load, `path.so`, `path.sos` or `embedded:path`, each with optional `?key=value&key=value`;
    /// later ones are asked first. Its code will be run: name only plugins that you trust
    #[arg(long = "executable_plugin", value_name = "SPEC")]
    pub(crate) executable_plugin: Vec<String>,

    /// Run no native code: only portable kernels (`vmvx`), interpreted, no plugins. For programs that you do not trust
    #[arg(long = "no_native", conflicts_with = "executable_plugin")]
    pub(crate) no_native: bool,

    /// Threads that run kernels; 1 is the calling thread alone, 0 is one for each core
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) threads: usize,

    /// Accepted for compatibility; programs of the inline execution model use no devices
    #[arg(long, value_name = "DEVICE")]
    pub(crate) device: Vec<String>,

    /// Accepted for compatibility; files are read into memory either way
    #[arg(long = "module_mode", value_enum, default_value_t = ModuleMode::Preload)]
    pub(crate) module_mode: ModuleMode,
}

/// How the files of programs are read.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ModuleMode {
    /// Before anything is run.
    Preload,
    /// As their parts are needed.
    Mmap,
}

/// Flags of all commands that call a function.
#[derive(Args, Debug)]
pub(crate) struct CallArgs {
    /// Function to call, in the last module; may be left out when it has only one
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "NAME"
    )]
    pub(crate) function: String,

    /// Argument of the function, given once for each: `2x2xf32=1 2 3 4`, `f32=1`, `5`, `@file.npy`, `+file.npy`,
    /// `*file.npy`, `2x2xf32=@file`, `&2x2xf32` (storage for a result), `(null)`
    #[arg(long, value_name = "VALUE", allow_hyphen_values = true)]
    pub(crate) input: Vec<String>,
}
