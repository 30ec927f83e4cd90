//! The tasks that are one cargo command each: `fmt`, `lint`, `doc`, `test`.

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{plugins, process};

/// Formats all sources, or with `--check` only tells whether they are formatted.
///
/// # Errors
///
/// When `cargo fmt` fails.
pub(crate) fn fmt(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    process::run(workspace.cargo("fmt").arg("--all").args(arguments))
}

/// Runs clippy over every target of every crate, with warnings denied.
///
/// # Errors
///
/// When clippy finds something.
pub(crate) fn lint(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    process::run(
        workspace
            .cargo("clippy")
            .args(["--workspace", "--all-targets"])
            .args(arguments)
            .args(["--", "-D", "warnings"]),
    )
}

/// Builds the documentation of every crate, private items too, with warnings denied.
///
/// # Errors
///
/// When rustdoc warns or fails.
pub(crate) fn doc(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    process::run(
        workspace
            .cargo("doc")
            .args(["--workspace", "--no-deps", "--document-private-items"])
            .args(arguments)
            .env("RUSTDOCFLAGS", "-D warnings"),
    )
}

/// Builds the sample plugins and runs all tests. The arguments go to `cargo test`.
///
/// # Errors
///
/// When a plugin cannot be built or a test fails.
pub(crate) fn test(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    plugins::build_plugins(workspace, &[])?;
    process::run(workspace.cargo("test").arg("--workspace").args(arguments))
}
