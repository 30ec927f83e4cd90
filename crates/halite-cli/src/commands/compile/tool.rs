//! Programs of IREE that are installed on this machine: finding and running them.
#![forbid(unsafe_code)]

use core::fmt;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use halite::StatusCode;

use super::release::Release;
use crate::failure::Failure;

/// Most lines of what a tool says that an error repeats: it may print whole programs.
const MAX_LINES: usize = 5;
/// Most characters of such a line.
const MAX_CHARACTERS: usize = 300;

/// An installed program. Displays as its path.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    path: PathBuf,
    /// The flag that names another one.
    flag: &'static str,
}

/// How a tool ended.
#[derive(Debug)]
pub(super) struct Run {
    /// What it wrote to standard error.
    pub(super) messages: String,
    /// How it ended, in words, if it failed.
    failure: Option<String>,
}

impl Tool {
    /// Returns the compiler that the user names, or the one that the system finds.
    pub(super) fn compiler(path: Option<&Path>) -> Self {
        Self {
            path: path.unwrap_or(Path::new("iree-compile")).to_owned(),
            flag: "--compiler",
        }
    }

    /// Returns the importer that the user names, the one beside the compiler, or the one that the system finds.
    pub(super) fn importer(path: Option<&Path>, compiler: &Self) -> Self {
        const NAME: &str = "iree-import-onnx";
        let beside = compiler.path.with_file_name(NAME);
        let path = match path {
            Some(path) => path.to_owned(),
            None if compiler.path.components().count() > 1 && beside.exists() => beside,
            None => NAME.into(),
        };
        Self {
            path,
            flag: "--importer",
        }
    }

    /// Asks the compiler for its release.
    pub(super) fn release(&self) -> Result<Release, Failure> {
        let output = Command::new(&self.path)
            .arg("--version")
            .stdin(Stdio::null())
            .output()
            .map_err(|source| self.start_failure(source))?;
        let text = String::from_utf8_lossy(&output.stdout);
        Release::parse(&text).ok_or_else(|| {
            let what = format!("`{self} --version` names no release of IREE");
            let said = text.lines().next().unwrap_or_default();
            let said = format!("it says: {}", shortened(said));
            Failure::work(StatusCode::FAILED_PRECONDITION, what).with_cause(said)
        })
    }

    /// Runs the tool until it ends. Ending in failure is no error here.
    pub(super) fn run(&self, command_line: &[OsString]) -> Result<Run, Failure> {
        let output = Command::new(&self.path)
            .args(command_line)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .output()
            .map_err(|source| self.start_failure(source))?;
        Ok(Run {
            messages: String::from_utf8_lossy(&output.stderr).into_owned(),
            failure: (!output.status.success()).then(|| output.status.to_string()),
        })
    }

    fn start_failure(&self, source: io::Error) -> Failure {
        let code = match source.kind() {
            io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            io::ErrorKind::PermissionDenied => StatusCode::PERMISSION_DENIED,
            _ => StatusCode::UNKNOWN,
        };
        let hint = format!(
            "install it with `pip install iree-base-compiler[onnx]`, or name it with {}=PATH",
            self.flag
        );
        Failure::work(code, format!("cannot run `{self}`"))
            .caused_by(source)
            .with_hint(Some(hint))
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())
    }
}

impl Run {
    /// Returns the failure of `what` if the tool failed, with the lines that say why.
    pub(super) fn into_result(self, tool: &Tool, what: String) -> Result<(), Failure> {
        let Some(how) = &self.failure else {
            return Ok(());
        };
        let mut failure = Failure::work(StatusCode::UNKNOWN, what)
            .with_cause(format!("`{tool}` failed with {how}"));
        for line in telling_lines(&self.messages) {
            failure = failure.with_cause(format!("it says: {}", shortened(line)));
        }
        Err(failure)
    }
}

/// Returns the lines that say what went wrong, or else the first ones.
fn telling_lines(messages: &str) -> Vec<&str> {
    let lines = || messages.lines().filter(|line| !line.trim().is_empty());
    let errors = lines().filter(|line| line.contains("error: ") || line.contains("Error: "));
    let errors: Vec<_> = errors.take(MAX_LINES).collect();
    match errors.is_empty() {
        true => lines().take(MAX_LINES).collect(),
        false => errors,
    }
}

/// Returns a line without what is too much of it, and without what a terminal would obey.
fn shortened(line: &str) -> String {
    let mut kept: String = line
        .trim_end()
        .chars()
        .take(MAX_CHARACTERS)
        .flat_map(|character| match character.is_control() {
            true => character.escape_default().collect::<Vec<_>>(),
            false => vec![character],
        })
        .collect();
    if line.trim_end().chars().count() > MAX_CHARACTERS {
        kept.push_str("...");
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_picked_out_of_what_a_tool_says() {
        let messages = "note: a\nx.mlir:1:2: error: b\n\nmodule {\n}\nValueError: c\n";
        assert_eq!(
            telling_lines(messages),
            ["x.mlir:1:2: error: b", "ValueError: c"]
        );
        assert_eq!(telling_lines("\na\nb\n"), ["a", "b"]);
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_escaped() {
        assert_eq!(shortened("a\u{1b}[31m\n"), "a\\u{1b}[31m");
        assert_eq!(shortened(&"x".repeat(301)), "x".repeat(300) + "...");
    }

    #[test]
    fn the_importer_is_looked_for_beside_a_compiler_with_a_path() {
        let compiler = Tool::compiler(Some(Path::new("/nonexistent/iree-compile")));
        let importer = |path| Tool::importer(path, &compiler).to_string();
        assert_eq!(importer(None), "iree-import-onnx");
        assert_eq!(importer(Some(Path::new("x/y"))), "x/y");
    }
}
