//! Where the workspace is and where its build goes.
//!
//! Every path of every task starts here; no task reads the current folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout and its build folder.
pub(crate) struct Workspace {
    root: PathBuf,
    target: PathBuf,
}

impl Workspace {
    /// Locates the workspace that cargo runs this program for. (Not the one it was built in: two checkouts may share a
    /// build folder.) `CARGO_TARGET_DIR` moves the build folder; a relative one counts from the root.
    pub(crate) fn locate() -> Self {
        let package = std::env::var_os("CARGO_MANIFEST_DIR");
        let package = package.unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
        let root = Path::new(&package)
            .parent()
            .expect("the xtask package is a folder of the workspace")
            .to_path_buf();
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(folder) => root.join(folder),
            None => root.join("target"),
        };
        Self { root, target }
    }

    /// Returns the workspace root.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the build folder.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Returns the folder that holds the built sample plugins.
    pub(crate) fn plugins(&self) -> PathBuf {
        self.target.join("plugins")
    }

    /// Returns the folder of the committed fixtures.
    pub(crate) fn fixtures(&self) -> PathBuf {
        self.root.join("tests/fixtures")
    }

    /// Returns a command that runs in the root.
    pub(crate) fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command.current_dir(&self.root);
        command
    }

    /// Returns the running cargo (the one of the pinned toolchain) with a subcommand, to run in the root.
    pub(crate) fn cargo(&self, subcommand: &str) -> Command {
        let mut command =
            self.command(std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from));
        command
            .arg(subcommand)
            .env("CARGO_TARGET_DIR", &self.target);
        command
    }
}
