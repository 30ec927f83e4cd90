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

/// Tests that run under Miri: those that need no machine code, no other program and not much time.
struct Subject {
    package: &'static str,
    /// Which tests: the target of the package, and the names.
    target: &'static [&'static str],
    names: &'static [&'static str],
    kind: Kind,
}

/// What the tests of a subject show.
enum Kind {
    /// What threads see of each other: for many seeds, on an imagined processor with a weak memory order.
    Threads,
    /// That unsafe code keeps its promises, once. Loads give the newest value: Miri cannot imagine another where one
    /// place is accessed in different widths, as bytes of buffers are.
    Memory,
}

const SUBJECTS: &[Subject] = &[
    Subject {
        package: "hal-plugin",
        target: &["--test", "all"],
        names: &["snapshots::"],
        kind: Kind::Threads,
    },
    Subject {
        package: "hal-local",
        target: &["--test", "all"],
        names: &["pools::a_dispatch_sees_what_was_written_before_it_and_shows_what_it_wrote"],
        kind: Kind::Threads,
    },
    Subject {
        package: "hal-local",
        target: &["--test", "all"],
        names: &["sites::"],
        kind: Kind::Memory,
    },
    Subject {
        package: "hal-plugin-sdk",
        target: &["--test", "plugin"],
        names: &[],
        kind: Kind::Memory,
    },
    Subject {
        package: "vm",
        target: &["--lib"],
        names: &["buffer::", "argument_block::"],
        kind: Kind::Memory,
    },
];

/// Tests that Miri cannot run: one asks for more memory than it has, to see it refused, one sets a register of the
/// processor, and one has cases for hours.
const SKIPPED: &[&str] = &[
    "a_length_that_cannot_be_had_exhausts_the_resource",
    "kernels_that_need_more_than_a_call_are_never_repeated",
    "dispatches_of_a_place_are_those_without_one",
];

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
        command.args(["--package", self.package]).args(self.target);
        match self.kind {
            Kind::Threads => {
                flags = format!("{flags} -Zmiri-many-seeds=0..{seeds}");
                command.args(["--target", "aarch64-unknown-linux-gnu"]);
            }
            Kind::Memory => flags += " -Zmiri-disable-weak-memory-emulation",
        }
        command.arg("--").args(self.names);
        command.args(SKIPPED.iter().flat_map(|test| ["--skip", test]));
        command.env("MIRIFLAGS", flags).env("PROPTEST_CASES", "4");
        // Those of the pinned toolchain, which cargo would go on with.
        command.env_remove("CARGO").env_remove("RUSTC");
        command.env("CARGO_TARGET_DIR", workspace.target().join("miri"));
        process::run(&mut command)
    }
}
