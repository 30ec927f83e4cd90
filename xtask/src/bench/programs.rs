//! The programs that both runtimes run: `tests/bench/programs.json`, and where their modules are.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::{Options, folder, read_json};
use crate::workspace::Workspace;

/// One program.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) name: String,
    /// The most that our time may be of the reference's, on one thread.
    pub(super) bar: f64,
    /// The flags of a run, which name files relative to `folder`.
    pub(super) args: Vec<String>,
    pub(super) folder: PathBuf,
    /// The module, compiled for the inline-dynamic model.
    pub(super) module: PathBuf,
    /// Whether two threads are compared with the reference's `local-task` device.
    pub(super) local_task: bool,
    /// Whether two threads are compared with one of our own.
    pub(super) two_threads: bool,
    /// The module for the reference's devices, if there is one.
    pub(super) device_module: Option<PathBuf>,
}

/// Returns the selected programs that are there, and says which are not.
pub(super) fn selected(workspace: &Workspace, options: &Options) -> Result<Vec<Program>> {
    let list = folder(workspace).join("programs.json");
    let value = read_json(&list)?;
    let rows = value.as_array().context("programs.json is no list")?;
    let mut programs = Vec::new();
    for row in rows {
        let name = row["name"].as_str().context("a program without a name")?;
        if !options.selects(name) {
            continue;
        }
        let home = match (row["model"] == true, &options.models) {
            (false, _) => folder(workspace),
            (true, Some(models)) => models.clone(),
            (true, None) => {
                println!("bench: {name} skipped: no --models=FOLDER that holds it");
                continue;
            }
        };
        match Program::of(row, name, home) {
            Ok(program) => programs.push(program),
            Err(error) => println!("bench: {name} skipped: {error:#}"),
        }
    }
    Ok(programs)
}

impl Program {
    /// Reads a row and finds its modules.
    fn of(row: &Value, name: &str, home: PathBuf) -> Result<Self> {
        let args = row["args"].as_array().context("no list `args`")?;
        let args = args.iter().map(|word| word.as_str().map(str::to_owned));
        let folder = std::path::absolute(&home).with_context(|| home.display().to_string())?;
        let module = existing(
            &folder,
            &[format!("{name}.inline.vmfb"), format!("{name}.vmfb")],
        )
        .with_context(|| format!("no {name}.inline.vmfb in {}", folder.display()))?;
        Ok(Self {
            name: name.to_owned(),
            bar: row["bar"].as_f64().context("no number `bar`")?,
            args: args
                .collect::<Option<_>>()
                .context("`args` holds no texts")?,
            device_module: existing(&folder, &[format!("{name}.async.vmfb")]),
            local_task: row["local_task"] == true,
            two_threads: row["two_threads"] == true,
            folder,
            module,
        })
    }
}

/// Returns the first of the files that is there.
fn existing(folder: &Path, names: &[String]) -> Option<PathBuf> {
    let mut paths = names.iter().map(|name| folder.join(name));
    paths.find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(filter: &str) -> Options {
        Options::parse(&[format!("--filter={filter}")]).unwrap()
    }

    #[test]
    fn every_program_that_is_no_model_is_there() {
        let workspace = Workspace::locate();
        let programs = selected(&workspace, &options("")).unwrap();
        assert_eq!(programs.len(), 12);
        for program in programs {
            assert_eq!(program.device_module.is_some(), program.local_task);
            assert!(program.bar > 0.0 && program.bar <= 1.0);
            assert!(program.args[0].starts_with("--function="));
        }
    }

    #[test]
    fn a_filter_selects_by_name() {
        let workspace = Workspace::locate();
        let programs = selected(&workspace, &options("mul4")).unwrap();
        assert_eq!(programs.len(), 1);
        assert_eq!(programs[0].name, "mul4");
    }
}
