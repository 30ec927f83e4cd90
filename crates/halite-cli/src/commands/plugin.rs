//! `halite plugin`: loads a plugin, shows its header, and asks it for functions.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::CString;

use clap::Args;
use halite::inspect::{self, Content};
use halite::{PluginManager, StatusCode};

use crate::failure::Failure;
use crate::page::Page;
use crate::{Streams, files, plugins};

/// Arguments of `halite plugin`.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  halite plugin ./kernels.so
  halite plugin ./kernels.so my_matmul '?my_prefetch'
  halite plugin ./kernels.so --module=mul.vmfb

The code of the plugin is run: name only plugins that you trust. `halite inspect` shows the header without running it.
Exit status 0: it has all functions that are required; 1: not.")]
pub(crate) struct PluginArgs {
    /// Plugin to load: `path.so`, `path.sos` or `embedded:path`, each with optional `?key=value&key=value`
    #[arg(value_name = "SPEC")]
    plugin: String,

    /// Function to ask for; `?name` is one that may be missing
    #[arg(value_name = "NAME")]
    names: Vec<String>,

    /// Program whose kernels' imports to ask for
    #[arg(long, value_name = "FILE")]
    module: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(arguments: &PluginArgs, streams: &mut Streams<'_>) -> Result<(), Failure> {
    let plugin = plugins::load(&arguments.plugin)?;
    let mut page = Page::default();
    page.line(
        0,
        format_args!("{}: plugin `{}`", arguments.plugin, plugin.name()),
    );
    if !plugin.description().is_empty() {
        page.field(1, "description", plugin.description());
    }
    page.field(1, "code", plugin.origin());
    page.field(1, "ABI", format_args!("0.{}", plugin.version()));
    let features = inspect::plugin_feature_names(plugin.features());
    let features = if features.is_empty() {
        "none".to_owned()
    } else {
        features.join("|")
    };
    page.field(1, "features", features);

    let mut names: Vec<String> = arguments.names.clone();
    for path in &arguments.module {
        names.extend(imports_of(path, streams)?);
    }
    let manager = PluginManager::new();
    plugins::register(&manager, plugin)?;
    let mut all_found = true;
    for name in &names {
        let found = ask(&manager, name)?;
        all_found &= found.is_ok();
        let answer = match found {
            Ok(answer) => answer.to_owned(),
            Err(problem) => problem,
        };
        page.field(1, "function", format_args!("{name}: {answer}"));
    }
    write!(streams.stdout, "{}", page.text()).map_err(Failure::Stdout)?;
    if all_found {
        Ok(())
    } else {
        Err(Failure::Reported)
    }
}

/// Asks for one function; the inner result is the answer, in words.
fn ask(manager: &PluginManager, name: &str) -> Result<Result<&'static str, String>, Failure> {
    let symbol = CString::new(name).map_err(|error| {
        let what = format!("`{}` is no name of a function", name.escape_default());
        Failure::work(StatusCode::INVALID_ARGUMENT, what).caused_by(error)
    })?;
    Ok(match manager.resolve(&[&symbol]) {
        Ok(imports) if imports.get(0).is_some() => Ok("found"),
        Ok(_) => Ok("missing, which is allowed"),
        Err(error) if error.status_code().name() == Some("NOT_FOUND") => Err("missing".to_owned()),
        Err(error) => Err(inspect::error_line(&error)),
    })
}

/// Returns what the kernels of a program import, each once.
fn imports_of(path: &str, streams: &mut Streams<'_>) -> Result<BTreeSet<String>, Failure> {
    let bytes = files::read(path, streams.stdin)?;
    let file = files::name(path);
    let description = inspect::describe(&bytes).map_err(|error| {
        Failure::work(error.status_code(), format!("cannot describe `{file}`")).caused_by(error)
    })?;
    let images: Vec<_> = match &description.content {
        Content::Module(module) => module
            .executables
            .iter()
            .flat_map(inspect::Executable::images)
            .collect(),
        Content::Elf(elf) => vec![&**elf],
        _ => {
            let what = format!("`{file}` is neither a program nor an executable");
            return Err(Failure::work(StatusCode::INVALID_ARGUMENT, what));
        }
    };
    if let Some(problem) = images.iter().find_map(|elf| elf.problems.first()) {
        let what = format!("the imports of the kernels in `{file}` are not known");
        return Err(Failure::work(StatusCode::UNAVAILABLE, what).with_cause(problem.clone()));
    }
    let libraries = images.iter().filter_map(|elf| elf.library.as_ref());
    let imports = libraries
        .flat_map(|library| &library.imports)
        .map(|import| {
            let mark = if import.optional { "?" } else { "" };
            format!("{mark}{}", import.name)
        });
    Ok(imports.collect())
}
