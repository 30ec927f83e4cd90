//! `halite check`: says whether programs will load and run here, and if not, every reason why.
#![forbid(unsafe_code)]

use clap::Args;
use halite::PluginManager;
use halite::inspect::{self, Check};
use serde::Serialize;

use crate::failure::{Failure, go_on};
use crate::page::Page;
use crate::{Streams, files, plugins};

/// Arguments of `halite check`.
#[derive(Args, Debug)]
#[command(after_help = "Example:
  halite check --executable_plugin=./kernels.so mul.vmfb

Nothing of the programs is run; the named plugins are loaded, which runs their code. Exit status 0: all will run; 1: not.")]
pub(crate) struct CheckArgs {
    /// Program to check (.vmfb), `-` for standard input
    #[arg(required = true, value_name = "FILE")]
    file: Vec<String>,

    /// Executable plugin that kernels may import from; later ones are asked first. Its code will be run: name only
    /// plugins that you trust
    #[arg(long = "executable_plugin", value_name = "SPEC")]
    executable_plugin: Vec<String>,

    /// Print an object for each file, on a line of its own
    #[arg(long)]
    json: bool,
}

/// What `--json` prints for a file.
#[derive(Serialize)]
struct Answer<'a> {
    file: &'a str,
    /// Within a schema fields are only added.
    schema: u32,
    /// Whether it will run.
    runs: bool,
    #[serde(flatten)]
    check: &'a Check,
}

/// Runs the command.
pub(crate) fn run(arguments: &CheckArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let manager = PluginManager::new();
    let mut all_run = true;
    for spec in &arguments.executable_plugin {
        let loaded = plugins::load(spec).and_then(|plugin| plugins::register(&manager, plugin));
        all_run &= go_on(loaded, streams)?.is_some();
    }
    for path in &arguments.file {
        let runs = check(path, &manager, arguments.json, streams);
        all_run &= go_on(runs, streams)?.unwrap_or(false);
    }
    if all_run {
        Ok(())
    } else {
        Err(Failure::Reported)
    }
}

/// Checks a file, prints the answer and returns whether it will run.
pub(super) fn check(
    path: &str,
    manager: &PluginManager,
    as_json: bool,
    streams: &mut Streams<'_>,
) -> Result<bool, Failure> {
    let bytes = files::read(path, streams.stdin)?;
    let file = files::name(path);
    let check = inspect::check(&bytes, Some(manager));
    let runs = check.problems.is_empty();
    let text = if as_json {
        crate::json::line(&Answer {
            file,
            schema: 1,
            runs,
            check: &check,
        })
    } else {
        answer(file, &check)
    };
    write!(streams.stdout, "{text}").map_err(Failure::Stdout)?;
    Ok(runs)
}

fn answer(file: &str, check: &Check) -> String {
    let mut page = Page::default();
    match check.problems.len() {
        0 => page.line(0, format_args!("{file}: will run here")),
        1 => page.line(0, format_args!("{file}: will not run here, for 1 reason")),
        count => page.line(
            0,
            format_args!("{file}: will not run here, for {count} reasons"),
        ),
    }
    for problem in &check.problems {
        page.line(1, format_args!("{}: {}", problem.area, problem.what));
        if let Some(hint) = &problem.hint {
            page.line(2, format_args!("hint: {hint}"));
        }
    }
    for note in &check.notes {
        page.line(1, format_args!("note: {note}"));
    }
    page.text().to_owned()
}
