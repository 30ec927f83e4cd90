//! The `miri` task: runs tests under Miri, an interpreter that reports undefined behavior, data races among it.
//!
//! It imagines a processor with a weak memory order, which the machine at hand may not be: loads may give values that are
//! no longer the newest. One seed is one order of threads and one choice of such values, so what is shared by threads runs
//! for many. Miri comes with nightly toolchains only; without one the task says so and does nothing.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};

use crate::iree::TIME_LIMIT;
use crate::process;
use crate::workspace::Workspace;

/// The toolchain that has Miri.
const TOOLCHAIN: &str = "nightly";

/// Seeds that are tried when no number is given.
const SEEDS: u32 = 32;

/// Tests that run under Miri.
struct Subject {
    package: &'static str,
    /// Which tests: arguments of `cargo test`, and of the test program.
    arguments: &'static [&'static str],
    filter: &'static [&'static str],
    /// Whether they run for many seeds, on a processor with a weak memory order.
    has_threads: bool,
}

const SUBJECTS: &[Subject] = &[Subject {
    package: "hal-plugin",
    arguments: &["--test", "all"],
    filter: &["snapshots::"],
    has_threads: true,
}];

/// Runs the tests of the named packages, or all.
///
/// # Errors
///
/// When a test fails or Miri finds something.
pub(crate) fn miri(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (mut seeds, mut packages) = (SEEDS, BTreeSet::new());
    for argument in arguments {
        if let Some(count) = argument.strip_prefix("--seeds=") {
            seeds = count
                .parse()
                .with_context(|| format!("`{argument}` has no number"))?;
        } else if SUBJECTS.iter().any(|subject| subject.package == argument) {
            packages.insert(argument.as_str());
        } else {
            bail!("unexpected argument `{argument}`");
        }
    }
    if let Some(reason) = missing(workspace)? {
        println!("miri: skipped: {reason}");
        return Ok(());
    }
    let is_wanted = |subject: &&Subject| packages.is_empty() || packages.contains(subject.package);
    for subject in SUBJECTS.iter().filter(is_wanted) {
        subject.run(workspace, seeds)?;
    }
    Ok(())
}

/// Says what is missing to use Miri.
fn missing(workspace: &Workspace) -> Result<Option<String>> {
    if process::find_on_path("rustup").is_none() {
        return Ok(Some("no `rustup` on PATH".to_owned()));
    }
    let mut command = workspace.command("rustup");
    command.args(["run", TOOLCHAIN, "cargo", "miri", "--version"]);
    let run = process::capture(&mut command, TIME_LIMIT)?;
    let how = format!("rustup toolchain install {TOOLCHAIN} --component miri,rust-src");
    Ok((run.status != Some(0)).then(|| format!("no Miri: {how}")))
}

impl Subject {
    fn run(&self, workspace: &Workspace, seeds: u32) -> Result<()> {
        // What a test reads, such as a fixture, is outside of the imagined machine.
        let mut flags = "-Zmiri-disable-isolation -Zmiri-symbolic-alignment-check".to_owned();
        let mut command = workspace.command("rustup");
        command.args(["run", TOOLCHAIN, "cargo", "miri", "test"]);
        command
            .args(["--package", self.package])
            .args(self.arguments);
        if self.has_threads {
            flags = format!("{flags} -Zmiri-many-seeds=0..{seeds}");
            command.args(["--target", "aarch64-unknown-linux-gnu"]);
        }
        command.arg("--").args(self.filter);
        command.env("MIRIFLAGS", flags).env("PROPTEST_CASES", "4");
        // The pinned toolchain's own, which cargo would go on with.
        command.env_remove("CARGO").env_remove("RUSTC");
        command.env("CARGO_TARGET_DIR", workspace.target().join("miri"));
        process::run(&mut command)
    }
}
