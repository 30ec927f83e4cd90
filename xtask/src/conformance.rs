//! The `conformance` task: runs `halite run` and an installed `iree-run-module` over the same rows, side by side.
//!
//! The recorded output of each row is the referee, as in the tests. The installed reference is a second witness where it
//! can load the module at all: it accepts only modules near its own release, Halite accepts them all. The tables of
//! single instructions are in `tables`.

mod tables;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use crate::manifest::{Row, Run};
use crate::workspace::Workspace;
use crate::{iree, plugins, process};

/// What to run.
struct Options {
    scope: Scope,
    corpus: Option<PathBuf>,
    /// Folders of further installations.
    iree: Vec<PathBuf>,
    show: usize,
}

/// Which rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Rows without plugins, and the tables of instructions.
    Vm,
    /// Rows that load a plugin.
    Plugins,
    /// All of both.
    All,
}

/// The counts of one release and configuration.
#[derive(Default)]
struct Tally {
    rows: usize,
    passed: usize,
    agreed: usize,
    unable: usize,
}

/// Runs the fixtures, and the rows of a corpus when one is named, through both programs, and the tables of instructions
/// through the reference.
///
/// # Errors
///
/// When a row fails, or an argument, a manifest or a build is wrong.
pub(crate) fn conformance(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let options = Options::parse(arguments)?;
    let Some(reference) = iree::find("iree-run-module") else {
        println!(
            "conformance: skipped: {}",
            iree::missing(&["iree-run-module"])
        );
        return Ok(());
    };
    plugins::build_plugins(workspace, &[])?;
    process::run(
        workspace
            .cargo("build")
            .args(["--release", "--package", "halite-cli"]),
    )?;

    let mut references = vec![reference];
    for folder in &options.iree {
        let program = folder.join("iree-run-module");
        if !process::is_executable(&program) {
            bail!("--iree: no program {}", program.display());
        }
        references.push(program);
    }
    let mut manifests = vec![workspace.fixtures().join("manifest.jsonl")];
    manifests.extend(options.corpus.as_deref().map(manifest_of));
    let mut failures = Vec::new();
    for manifest in &manifests {
        println!("\n{}", manifest.display());
        compare(
            workspace,
            &references,
            manifest,
            options.scope,
            &mut failures,
        )?;
    }
    if options.scope != Scope::Plugins {
        tables::compare(workspace, &references[0], &mut failures)?;
    }
    for failure in failures.iter().take(options.show) {
        println!("\nFAIL {failure}");
    }
    if failures.is_empty() {
        Ok(())
    } else {
        bail!("{} rows fail", failures.len())
    }
}

impl Options {
    /// Parses the task's arguments.
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            scope: Scope::All,
            corpus: None,
            iree: Vec::new(),
            show: 5,
        };
        for argument in arguments {
            match (argument.as_str(), argument.split_once('=')) {
                ("vm", _) => options.scope = Scope::Vm,
                ("plugins", _) => options.scope = Scope::Plugins,
                ("all", _) => options.scope = Scope::All,
                (_, Some(("--corpus", path))) => options.corpus = Some(PathBuf::from(path)),
                (_, Some(("--iree", path))) => options.iree.push(PathBuf::from(path)),
                (_, Some(("--show", count))) => {
                    options.show = count.parse().with_context(|| format!("--show={count}"))?;
                }
                _ => bail!("unexpected argument `{argument}`"),
            }
        }
        Ok(options)
    }
}

impl Scope {
    /// Tells whether a row is in this scope.
    fn holds(self, row: &Row) -> bool {
        match self {
            Self::Vm => !row.needs_plugin(),
            Self::Plugins => row.needs_plugin(),
            Self::All => true,
        }
    }
}

/// Returns the manifest that a path names: the file itself, or the one in the folder.
fn manifest_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("manifest.jsonl")
    } else {
        path.to_path_buf()
    }
}

/// Runs the rows of one manifest, prints the counts for each reference and collects the failures.
fn compare(
    workspace: &Workspace,
    references: &[PathBuf],
    manifest: &Path,
    scope: Scope,
    failures: &mut Vec<String>,
) -> Result<()> {
    let halite = workspace.target().join("release/halite");
    let folder = manifest.parent().unwrap_or(Path::new("."));
    let text = std::fs::read_to_string(manifest).with_context(|| manifest.display().to_string())?;
    let mut tallies: Vec<BTreeMap<String, Tally>> =
        references.iter().map(|_| BTreeMap::new()).collect();
    for (index, line) in text.lines().enumerate() {
        let row = Row::parse(line)
            .map_err(|error| anyhow!("{}:{}: {error}", manifest.display(), index + 1))?;
        let arguments = plugin_arguments(&row, &workspace.plugins());
        if row.model != "inline" || row.rc.is_none() || !scope.holds(&row) {
            continue;
        }
        let run = |program: &Path, subcommand: &[&str]| -> Result<Run> {
            let mut command = workspace.command(program);
            command.current_dir(folder).args(subcommand);
            command
                .arg(format!("--module={}", row.module))
                .args(&arguments);
            process::capture(&mut command, iree::TIME_LIMIT)
        };
        let shown = format!("{} {}", row.module, arguments.join(" "));
        let ours = run(&halite, &["run"])?;
        let judgment = row.judge(&ours);
        if let Err(why) = &judgment {
            failures.push(format!("{shown}\n  {why}"));
        }
        for (reference, tallies) in references.iter().zip(&mut tallies) {
            let theirs = run(reference, &[])?;
            let tally = tallies
                .entry(format!("{:7} {}", row.release, row.config))
                .or_default();
            tally.rows += 1;
            tally.passed += usize::from(judgment.is_ok());
            match (theirs.status, row.rc) {
                (Some(0), Some(0)) if theirs.stdout == ours.stdout => tally.agreed += 1,
                (Some(0), Some(0)) => failures.push(format!(
                    "{shown}\n  {} printed {:?}, halite {:?}",
                    reference.display(),
                    theirs.stdout,
                    ours.stdout
                )),
                (_, Some(0)) => tally.unable += 1,
                _ => tally.agreed += 1,
            }
        }
    }
    for (reference, tallies) in references.iter().zip(&tallies) {
        println!("  reference: {}", reference.display());
        print_tallies(tallies);
    }
    Ok(())
}

/// Returns the row's arguments with our plugin where a corpus names the one it was recorded with.
fn plugin_arguments(row: &Row, plugins: &Path) -> Vec<String> {
    let plugin = format!(
        "--executable_plugin={}",
        plugins.join("scale_add_rust.so").display()
    );
    row.arguments(plugins)
        .into_iter()
        .map(|argument| {
            if argument.contains("lab_plugin") {
                plugin.clone()
            } else {
                argument
            }
        })
        .collect()
}

/// Prints one line per release and configuration, and the sum.
fn print_tallies(tallies: &BTreeMap<String, Tally>) {
    let mut sum = Tally::default();
    for (name, tally) in tallies {
        println!("{name:38} {}", tally.shown());
        sum.rows += tally.rows;
        sum.passed += tally.passed;
        sum.agreed += tally.agreed;
        sum.unable += tally.unable;
    }
    println!("{:38} {}", "total", sum.shown());
}

impl Tally {
    /// Shows the counts.
    fn shown(&self) -> String {
        let unable = match self.unable {
            0 => String::new(),
            count => format!(", {count} it cannot load"),
        };
        format!(
            "{:4} of {:4} pass; reference agrees on {:4}{unable}",
            self.passed, self.rows, self.agreed
        )
    }
}
