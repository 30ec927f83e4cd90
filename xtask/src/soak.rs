//! The `soak` task: threads that load, run, replace plugins and drop sessions for minutes, with memory flat.

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{plugins, process};

/// Soaks, `[--minutes N]`, 2 by default.
///
/// # Errors
///
/// When a result is wrong, memory grows or the program crashes.
pub(crate) fn soak(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let minutes: u64 = match arguments {
        [] => 2,
        [flag, value] if flag == "--minutes" => value
            .parse()
            .with_context(|| format!("`{value}` is no number of minutes"))?,
        _ => bail!("expected --minutes N"),
    };
    plugins::build_plugins(workspace, &[])?;
    let mut command = workspace.cargo("run");
    command.args([
        "--release",
        "--package",
        "halite-tests",
        "--example",
        "soak",
    ]);
    command.arg("--").arg((minutes * 60).to_string());
    process::run(command.arg(workspace.plugins().join("scale_add_c.sos")))
}
