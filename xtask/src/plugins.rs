//! The `build-plugins` task: builds the sample plugins of `tests/plugins/` into `<target>/plugins/`.

use anyhow::{Context, Result, bail};

use crate::process;
use crate::workspace::Workspace;

/// Sample plugins written in Rust: the package and the file it becomes.
const RUST: &[(&str, &str)] = &[("scale-add-rust", "scale_add_rust.so")];

/// Builds all sample plugins.
///
/// # Errors
///
/// When one cannot be built or put in its place.
pub(crate) fn build_plugins(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let folder = workspace.plugins();
    std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
    for (package, file) in RUST {
        process::run(
            workspace
                .cargo("build")
                .args(["--release", "--package", package]),
        )?;
        let built = format!("release/lib{}.so", package.replace('-', "_"));
        let built = workspace.target().join(built);
        std::fs::copy(&built, folder.join(file)).with_context(|| built.display().to_string())?;
    }
    Ok(())
}
