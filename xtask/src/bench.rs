//! The `bench` task: what Halite costs.
//!
//! Without `--vs-iree` it measures single operations: instructions under valgrind, time with criterion. With it, it runs
//! whole programs here and in an installed IREE, in turn. Both print tables; `--write` puts them, and a plot, into
//! `docs/performance.md`.

mod machine;
mod micro;
mod plot;
mod programs;
mod report;
mod statistics;
mod tools;
mod versus;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::Workspace;

/// What to measure and where to put it.
struct Options {
    against_reference: bool,
    /// How often each program is measured on each side.
    rounds: usize,
    /// How long one measurement takes, in seconds.
    seconds: f64,
    /// Measures only what has this text in its name.
    filter: String,
    /// Where the record goes.
    json: Option<PathBuf>,
    /// The folder of the models.
    models: Option<PathBuf>,
    /// Whether to renew the document.
    write: bool,
}

/// Measures and prints tables.
///
/// # Errors
///
/// When an argument is wrong, or something that is there cannot be built, run or understood.
pub(crate) fn bench(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    println!("{}\n", machine::describe());
    if options.against_reference {
        versus::compare(workspace, &options)
    } else {
        micro::measure(workspace, &options)
    }
}

impl Options {
    /// Parses the task's arguments.
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            against_reference: false,
            rounds: 9,
            seconds: 0.3,
            filter: String::new(),
            json: None,
            models: None,
            write: false,
        };
        for argument in arguments {
            let wrong = || format!("wrong value in `{argument}`");
            match argument.split_once('=') {
                None if argument == "--vs-iree" => options.against_reference = true,
                None if argument == "--write" => options.write = true,
                Some(("--rounds", value)) => options.rounds = value.parse().with_context(wrong)?,
                Some(("--seconds", value)) => {
                    options.seconds = value.parse().with_context(wrong)?
                }
                Some(("--filter", value)) => options.filter = value.to_owned(),
                Some(("--json", value)) => options.json = Some(value.into()),
                Some(("--models", value)) => options.models = Some(value.into()),
                _ => bail!("unexpected argument `{argument}`"),
            }
        }
        if options.rounds == 0 {
            bail!("--rounds must be at least 1");
        }
        Ok(options)
    }

    /// Tells whether something with this name is to be measured.
    fn selects(&self, name: &str) -> bool {
        name.contains(&self.filter)
    }

    /// Writes the record, if one is wanted.
    fn record(&self, record: &Value) -> Result<()> {
        let Some(path) = &self.json else {
            return Ok(());
        };
        let text = format!("{record:#}\n");
        std::fs::write(path, text).with_context(|| path.display().to_string())?;
        println!("\nwrote {}", path.display());
        Ok(())
    }
}

/// Returns the document that `--write` renews.
fn document(workspace: &Workspace) -> PathBuf {
    workspace.root().join("docs/performance.md")
}

/// Returns the folder of the benchmark programs.
fn folder(workspace: &Workspace) -> PathBuf {
    workspace.root().join("tests/bench")
}

/// Reads a file as JSON.
fn read_json(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<Options> {
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn options_have_values() {
        let options = parse(&["--vs-iree", "--rounds=3", "--filter=mul"]).unwrap();
        assert!(options.against_reference && !options.write);
        assert_eq!(options.rounds, 3);
        assert!(options.selects("matmul64") && !options.selects("ew16m"));
    }

    #[test]
    fn unknown_and_wrong_options_are_refused() {
        for argument in ["--rounds", "--rounds=x", "--rounds=0", "--vs-iree=1", "x"] {
            assert!(parse(&[argument]).is_err(), "{argument}");
        }
    }
}
