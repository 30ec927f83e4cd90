//! The `ci` task: the sum of what a change must pass. It is the same at home and in continuous integration.

use std::time::Instant;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use crate::{api, cargo, commands, package, supply, tidy};

/// Runs every check, cheapest first; the tests come last, so that the output ends with their summaries.
///
/// # Errors
///
/// When one of them fails: the first failure ends the task.
pub(crate) fn ci(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let check = ["--check".to_owned()];
    // What depends on the registry's newest versions is no matter of a change.
    let deny = ["deny".to_owned()];
    let steps: &[(&str, &dyn Fn() -> Result<()>)] = &[
        ("fmt", &|| cargo::fmt(workspace, &check)),
        ("tidy", &|| tidy::tidy(workspace, &[])),
        ("supply", &|| supply::supply(workspace, &deny)),
        ("lint", &|| cargo::lint(workspace, &[])),
        ("doc", &|| cargo::doc(workspace, &[])),
        ("package", &|| package::package(workspace, &[])),
        ("api", &|| api::api(workspace, &check)),
        ("commands", &|| commands::commands(workspace, &[])),
        ("test", &|| cargo::test(workspace, &[])),
    ];
    let start = Instant::now();
    for (name, step) in steps {
        eprintln!("ci: {name} (after {} s)", start.elapsed().as_secs());
        step()?;
    }
    Ok(())
}
