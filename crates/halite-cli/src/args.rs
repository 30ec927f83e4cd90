//! The command line: subcommands and the flags that several of them have.
#![forbid(unsafe_code)]

use clap::{ArgMatches, Args, FromArgMatches, Parser, Subcommand, ValueEnum};

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
    /// Run a function of a program and print, store or check its results
    Run(Deferred<commands::run::RunArgs>),
    /// Time a function of a program: warm it up, call it many times, and say what a call takes
    Bench(Deferred<commands::bench::BenchArgs>),
    /// Say what files are and hold: programs, executables, plugins, FatELF files, NumPy arrays
    Inspect(Deferred<commands::inspect::InspectArgs>),
    /// Say whether programs will load and run on this machine, and if not, every reason why
    Check(Deferred<commands::check::CheckArgs>),
    /// Load a plugin, show its header, and ask it for functions
    Plugin(Deferred<commands::plugin::PluginArgs>),
    /// Run one function of an executable and print what is in its bindings afterwards
    Exec(Deferred<commands::exec::ExecArgs>),
    /// Compile a program with an installed IREE compiler and check that the result will run here
    Compile(Deferred<commands::compile::CompileArgs>),
    /// Print what makes a shell complete names and flags of this command
    Completions(Deferred<commands::completions::CompletionsArgs>),
}

/// Arguments of a subcommand that are described only when it is the one that was given: most of a short run's time in
/// its own code would go into flags of other subcommands.
#[derive(Debug)]
pub(crate) struct Deferred<T>(pub(crate) T);

impl<T: Args> Args for Deferred<T> {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.defer(|command| {
            // What the subcommand is about stands at its name.
            let about = command.get_about().cloned();
            T::augment_args(command).about(about.unwrap_or_default())
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl<T: FromArgMatches> FromArgMatches for Deferred<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches_mut(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
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
