//! Finding the tools of an installed IREE: in the folder `IREE_BIN` names, else on `PATH`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process;
use crate::workspace::Workspace;

/// How long one run of a tool may take.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Returns the tool's path, `None` when it is not installed.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    match std::env::var_os("IREE_BIN") {
        Some(folder) => {
            Some(Path::new(&folder).join(name)).filter(|path| process::is_executable(path))
        }
        None => process::find_on_path(name),
    }
}

/// Says what is missing and how to provide it.
pub(crate) fn missing(names: &[&str]) -> String {
    format!(
        "{} not found: set IREE_BIN to the folder that holds it, or put it on PATH \
         (pip install iree-base-compiler iree-base-runtime)",
        names.join(", ")
    )
}

/// Returns the release of a compiler, for example `3.13.0`.
///
/// # Errors
///
/// When it cannot be run or its version text has another form.
pub(crate) fn compiler_release(workspace: &Workspace, compiler: &Path) -> Result<String> {
    let run = process::capture(workspace.command(compiler).arg("--version"), TIME_LIMIT)?;
    release_in(&run.stdout).with_context(|| {
        format!(
            "no version in what {} --version printed: {:?}",
            compiler.display(),
            run.stdout
        )
    })
}

/// Picks `3.13.0` out of a line such as `IREE compiler version 3.13.0rc20261016 @ 89ece87b`.
fn release_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("IREE compiler version ")?;
    let version = rest.split_whitespace().next()?;
    let end = version
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(version.len());
    Some(version[..end].to_owned()).filter(|release| release.split('.').count() == 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_is_the_part_before_the_candidate() {
        let text =
            "IREE (https://iree.dev):\n  IREE compiler version 3.13.0rc20261016 @ 89ece87b\n";
        assert_eq!(release_in(text).as_deref(), Some("3.13.0"));
        assert_eq!(
            release_in("IREE compiler version 3.7.1\n").as_deref(),
            Some("3.7.1")
        );
        assert_eq!(release_in("LLVM version 24.0.0git"), None);
    }
}
