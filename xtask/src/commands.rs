//! The `commands` task: runs the commands of the documents and compares what they print.
//!
//! The documents are README.md, those of the crates, the guides, and the heads of the examples. What is run is said by
//! the mark of a fenced block:
//!
//! - `console` is a transcript: a line `$ command`, and up to the next one what it prints: its standard output, or for a
//!   command that fails its standard output and error.
//! - `sh` is a script that must succeed. Lines `cargo xtask TASK` are not run but must name a task.
//! - `file=PATH` after the language: the block is saved under that path, for the commands that follow.
//! - `needs=iree`, `needs=onnx` or `needs=cc`: the block is skipped, with a printed reason, where that is not installed.
//!
//! Commands run in a shell, those of READMEs and examples in the workspace root, those of a guide in a folder of their
//! own in which `halite` is the checkout. The command `halite` and IREE's tools are on the path.

mod blocks;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::manifest::Run;
use crate::workspace::Workspace;
use crate::{TASKS, iree, plugins, process};
use blocks::{Action, Block, Renewed, Step};

/// How long one command may take. Some build.
const TIME_LIMIT: Duration = Duration::from_secs(600);

/// Runs the commands of all documents, or of those whose path holds one of the arguments. With `--write` transcripts
/// are renewed instead of compared.
///
/// # Errors
///
/// When a command fails or prints something else than its document shows.
pub(crate) fn commands(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let write = arguments.iter().any(|argument| argument == "--write");
    let parts: Vec<&String> = arguments.iter().filter(|part| *part != "--write").collect();
    let all = documents(workspace.root())?;
    let documents: Vec<&String> = all
        .iter()
        .filter(|path| parts.is_empty() || parts.iter().any(|part| path.contains(*part)))
        .collect();
    if documents.is_empty() {
        bail!("no document is named like {parts:?}");
    }
    // What the documents use without building it.
    process::run(
        workspace
            .cargo("build")
            .args(["--release", "--package", "halite-cli"]),
    )?;
    plugins::build_plugins(workspace, &[])?;
    let installed = Installed::find(workspace)?;
    for document in documents {
        eprintln!("commands: {document}");
        let renewed = run_document(workspace, &installed, document)?;
        if write {
            let path = workspace.root().join(document);
            let text = std::fs::read_to_string(&path)?;
            std::fs::write(&path, blocks::with_outputs(&text, &renewed))?;
        } else if let Some(step) = renewed.first() {
            bail!(
                "{document}:{}: expected:\n{}found:\n{}",
                step.line,
                step.expected,
                step.found
            );
        }
    }
    Ok(())
}

/// Returns the paths of all documents with commands, relative to the root.
fn documents(root: &Path) -> Result<Vec<String>> {
    let mut documents = vec!["README.md".to_owned()];
    for krate in names(&root.join("crates"))? {
        documents.push(format!("crates/{krate}/README.md"));
        let examples = format!("crates/{krate}/examples");
        if root.join(&examples).is_dir() {
            let sources = names(&root.join(&examples))?.into_iter();
            let sources = sources.filter(|name| name.ends_with(".rs"));
            documents.extend(sources.map(|name| format!("{examples}/{name}")));
        }
    }
    let programs = names(&root.join("examples"))?.into_iter();
    documents.extend(programs.map(|name| format!("examples/{name}/src/main.rs")));
    let guides = names(&root.join("docs/guide"))?.into_iter();
    documents.extend(guides.map(|name| format!("docs/guide/{name}")));
    Ok(documents)
}

/// Returns the sorted names of a folder's entries.
fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Saves and runs the blocks of one document and returns the commands that printed something else.
fn run_document(
    workspace: &Workspace,
    installed: &Installed,
    document: &str,
) -> Result<Vec<Renewed>> {
    let path = workspace.root().join(document);
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let text = match document.ends_with(".rs") {
        true => blocks::head_of_source(&text),
        false => text,
    };
    let blocks = blocks::blocks(&text).with_context(|| document.to_owned())?;
    let guide = document.starts_with("docs/guide/");
    let folder = guide.then(|| Folder::new(workspace.root())).transpose()?;
    let shell = Shell {
        folder: folder.as_ref().map_or(workspace.root(), |folder| &folder.0),
        target: workspace.target(),
        is_workspace: !guide,
        path: &installed.path,
    };
    let mut renewed = Vec::new();
    for block in &blocks {
        let at = format!("{document}:{}", block.line);
        if let Some(reason) = installed.lacks(block.needs.as_deref())? {
            println!("commands: {at} skipped: {reason}");
            continue;
        }
        renewed.extend(run_block(&shell, block).with_context(|| at)?);
    }
    Ok(renewed)
}

/// Saves or runs one block and returns the commands that printed something else than it shows.
fn run_block(shell: &Shell<'_>, block: &Block) -> Result<Vec<Renewed>> {
    match &block.action {
        Action::Save { path, text } => {
            let path = shell.folder.join(path);
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder)?;
            }
            std::fs::write(&path, text).with_context(|| path.display().to_string())?;
            Ok(Vec::new())
        }
        Action::Script(script) => {
            run_script(shell, script)?;
            Ok(Vec::new())
        }
        Action::Transcript(steps) => {
            let steps = steps.iter().map(|step| run_step(shell, step));
            Ok(steps
                .collect::<Result<Vec<_>>>()?
                .into_iter()
                .flatten()
                .collect())
        }
    }
}

/// Runs a script, or only looks up its tasks when it is a list of them: running this task's own sum would not end.
fn run_script(shell: &Shell<'_>, script: &str) -> Result<()> {
    if let Some(tasks) = script.lines().map(task_of).collect::<Option<Vec<_>>>() {
        let is_known = |name: &str| name.is_empty() || TASKS.iter().any(|task| task.name == name);
        return match tasks.into_iter().find(|name| !is_known(name)) {
            Some(name) => bail!("no task named `{name}`"),
            None => Ok(()),
        };
    }
    let run = shell.run(script)?;
    if run.status != Some(0) {
        bail!(
            "status {:?}; stdout:\n{}stderr:\n{}",
            run.status,
            run.stdout,
            run.stderr
        );
    }
    Ok(())
}

/// Returns the task that a line `cargo xtask TASK` names, nothing for `cargo xtask` alone.
fn task_of(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("cargo xtask")?;
    Some(
        rest.split_whitespace()
            .next()
            .unwrap_or("")
            .trim_start_matches('#'),
    )
}

/// Runs one command of a transcript; returns it when it prints something else than the transcript shows.
fn run_step(shell: &Shell<'_>, step: &Step) -> Result<Option<Renewed>> {
    let run = shell.run(&step.command)?;
    let found = match run.status {
        Some(0) => run.stdout,
        Some(_) => format!("{}{}", run.stdout, run.stderr),
        None => bail!("`{}` was killed", step.command),
    };
    Ok((found != step.output).then(|| Renewed {
        line: step.line + step.command.lines().count(),
        expected: step.output.clone(),
        found,
    }))
}

/// Where and how commands are run.
struct Shell<'a> {
    folder: &'a Path,
    /// The build folder of the workspace.
    target: &'a Path,
    /// Whether commands run in the workspace, not in a guide's own folder.
    is_workspace: bool,
    path: &'a OsString,
}

impl Shell<'_> {
    /// Runs a script and captures what it prints.
    fn run(&self, script: &str) -> Result<Run> {
        eprintln!("$ {}", script.trim_end());
        let mut command = Command::new("sh");
        command.current_dir(self.folder).env("PATH", self.path);
        // What cargo and rustup say of the package that is running is not for packages of the reader's own.
        for name in ["CARGO_MANIFEST_DIR", "CARGO_TARGET_DIR", "RUSTFLAGS"] {
            command.env_remove(name);
        }
        if !self.is_workspace {
            // What packages of guides have in common is built once.
            command.env("CARGO_BUILD_BUILD_DIR", self.target.join("guides"));
            return process::capture(command.args(["-eu", "-c", script]), TIME_LIMIT);
        }
        command.env("CARGO_TARGET_DIR", self.target);
        // Documents say where cargo puts things unless it is told otherwise.
        let target = format!("{}/", self.target.display());
        let script = script.replace(" target/", &format!(" {target}"));
        let mut run = process::capture(command.args(["-eu", "-c", &script]), TIME_LIMIT)?;
        run.stdout = run.stdout.replace(&target, "target/");
        run.stderr = run.stderr.replace(&target, "target/");
        Ok(run)
    }
}

/// The folder that a guide's commands run in, removed at the end. It lies outside the checkout: packages that a guide
/// makes are no members of the workspace.
struct Folder(PathBuf);

impl Folder {
    /// Makes the folder, with the checkout in it as `halite`.
    fn new(root: &Path) -> Result<Self> {
        let name = format!("halite-guide-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        std::fs::create_dir(&folder.0).with_context(|| folder.0.display().to_string())?;
        #[cfg(unix)]
        std::os::unix::fs::symlink(root, folder.0.join("halite"))?;
        #[cfg(not(unix))]
        bail!("{}: guides are run on Unix systems only", root.display());
        #[cfg(unix)]
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left behind lies in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What the machine has beyond a Rust toolchain.
struct Installed {
    /// The search path of commands: ours, IREE's, then the user's.
    path: OsString,
    iree: bool,
    onnx: bool,
    cc: bool,
}

impl Installed {
    fn find(workspace: &Workspace) -> Result<Self> {
        let mut folders = vec![workspace.target().join("release")];
        let compiler = iree::find("iree-compile");
        folders.extend(
            compiler
                .iter()
                .filter_map(|path| path.parent())
                .map(Path::to_owned),
        );
        folders.extend(std::env::split_paths(
            &std::env::var_os("PATH").unwrap_or_default(),
        ));
        let path = std::env::join_paths(folders)?;
        let succeeds = |program: &str, arguments: &[&str]| {
            let mut command = Command::new(program);
            let run = process::capture(command.args(arguments).env("PATH", &path), TIME_LIMIT);
            run.is_ok_and(|run| run.status == Some(0))
        };
        Ok(Self {
            iree: compiler.is_some(),
            onnx: compiler.is_some() && succeeds("sh", &["-c", "python3 -c 'import onnx'"]),
            cc: process::find_on_path("cc").is_some(),
            path,
        })
    }

    /// Says what is missing of what a block needs; `None` when it is all there.
    ///
    /// # Errors
    ///
    /// When the block needs something of another name.
    fn lacks(&self, needs: Option<&str>) -> Result<Option<String>> {
        let (has, missing) = match needs {
            None => return Ok(None),
            Some("iree") => (self.iree, iree::missing(&["iree-compile"])),
            Some("onnx") => (
                self.onnx,
                "iree-compile and python3 with the package onnx not found \
                 (pip install 'iree-base-compiler[onnx]')"
                    .to_owned(),
            ),
            Some("cc") => (self.cc, "no `cc` on PATH".to_owned()),
            Some(other) => bail!("needs={other}: known are iree, onnx, cc"),
        };
        Ok((!has).then_some(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_are_known_by_their_names() {
        assert_eq!(task_of("cargo xtask ci      # all"), Some("ci"));
        assert_eq!(task_of("cargo xtask         # lists"), Some(""));
        assert_eq!(task_of("cargo build"), None);
    }

    #[test]
    fn every_crate_and_example_is_a_document() {
        let documents = documents(Workspace::locate().root()).unwrap();
        for path in [
            "README.md",
            "crates/vm/README.md",
            "crates/halite/examples/embed.rs",
            "docs/guide/plugins.md",
        ] {
            assert!(documents.iter().any(|document| document == path), "{path}");
        }
    }
}
