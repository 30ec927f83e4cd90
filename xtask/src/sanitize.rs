//! The `sanitize` task: runs the tests of packages with unsafe code under the address sanitizer, the thread sanitizer
//! and valgrind.
//!
//! The sanitizers need `RUSTC_BOOTSTRAP`, since the flag is not stable; their runtimes come with the toolchain. What is
//! missing is skipped with its reason.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::iree::TIME_LIMIT;
use crate::workspace::Workspace;
use crate::{plugins, process};

/// The packages whose tests run when none is named: those that hold the doors to native code, and their tests.
const PACKAGES: &[&str] = &["hal-elf", "hal-plugin", "hal-plugin-sdk", "hal-local"];

/// The test that the process takes no more memory: the tools keep what was freed, and find leaks themselves.
const FLAT_MEMORY: &str = "loading_and_dropping_ten_thousand_times_leaves_memory_flat";

/// A way to find faults in memory or between threads.
struct Tool {
    name: &'static str,
    kind: Kind,
    /// Variables that the tests see, and their values.
    variables: &'static [(&'static str, &'static str)],
    /// Tests that cannot hold under the tool.
    skipped: &'static [&'static str],
}

enum Kind {
    /// Built into the code: the flag of the compiler, the name of the runtime, and what it is built into.
    Instrument {
        flag: &'static str,
        runtime: &'static str,
        reach: Reach,
    },
    /// A program that runs the tests: its command line.
    Runner(&'static str),
}

/// What a sanitizer is built into.
enum Reach {
    /// The crates. The standard library stays the toolchain's own.
    Crates,
    /// The standard library too. The thread sanitizer does not see synchronization that it is not built into, and
    /// reports races where there are none.
    StandardLibrary,
}

const TOOLS: &[Tool] = &[
    Tool {
        name: "address",
        kind: Kind::Instrument {
            flag: "-Zsanitizer=address",
            runtime: "asan",
            reach: Reach::Crates,
        },
        // Some tests ask for blocks that no machine has, to see them refused.
        variables: &[("ASAN_OPTIONS", "allocator_may_return_null=1")],
        skipped: &[FLAT_MEMORY],
    },
    Tool {
        name: "thread",
        kind: Kind::Instrument {
            flag: "-Zsanitizer=thread",
            runtime: "tsan",
            reach: Reach::StandardLibrary,
        },
        // One test after the other, since threads within a test are what counts: when two tests load libraries, the
        // sanitizer takes the one that the system's loader maps for memory that the other test has written before.
        variables: &[
            ("TSAN_OPTIONS", "allocator_may_return_null=1"),
            ("RUST_TEST_THREADS", "1"),
        ],
        skipped: &[FLAT_MEMORY],
    },
    Tool {
        name: "valgrind",
        kind: Kind::Runner(
            "valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite",
        ),
        // Valgrind takes minutes for what a checker of generated cases does in a second.
        variables: &[("PROPTEST_CASES", "16")],
        // It computes with denormal numbers whatever the processor is told.
        skipped: &[
            FLAT_MEMORY,
            "denormals_are_kept_unless_flushing_is_asked_for",
        ],
    },
];

/// Runs the tests of the named packages under the named tools, or of [`PACKAGES`] under all of them.
///
/// # Errors
///
/// When a test fails or a tool finds something.
pub(crate) fn sanitize(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    let (tools, packages): (Vec<&str>, Vec<&str>) = arguments
        .iter()
        .map(String::as_str)
        .partition(|argument| TOOLS.iter().any(|tool| tool.name == *argument));
    if let Some(flag) = packages.iter().find(|package| package.starts_with('-')) {
        bail!("unexpected argument `{flag}`");
    }
    let packages = match packages.as_slice() {
        [] => PACKAGES,
        packages => packages,
    };
    let is_wanted = |tool: &&Tool| tools.is_empty() || tools.contains(&tool.name);
    for tool in TOOLS.iter().filter(is_wanted) {
        if let Some(reason) = tool.missing(workspace)? {
            println!("sanitize {}: skipped: {reason}", tool.name);
            continue;
        }
        tool.run(workspace, packages)?;
    }
    Ok(())
}

impl Tool {
    /// Says what is missing to use the tool.
    fn missing(&self, workspace: &Workspace) -> Result<Option<String>> {
        let (runtime, reach) = match &self.kind {
            Kind::Runner(line) => {
                let program = line.split(' ').next().unwrap_or(line);
                let is_missing = process::find_on_path(program).is_none();
                return Ok(is_missing.then(|| format!("no `{program}` on PATH")));
            }
            Kind::Instrument { runtime, reach, .. } => (runtime, reach),
        };
        let libraries = rustc_folder(workspace, "target-libdir")?;
        let suffix = format!("_rt.{runtime}.a");
        if !holds_file_ending_in(&libraries, &suffix) {
            let libraries = libraries.display();
            return Ok(Some(format!("no runtime *{suffix} in {libraries}")));
        }
        let sources = rustc_folder(workspace, "sysroot")?.join("lib/rustlib/src/rust/library");
        if matches!(reach, Reach::StandardLibrary) && !sources.is_dir() {
            let why = "no sources of the standard library: rustup component add rust-src";
            return Ok(Some(why.to_owned()));
        }
        Ok(None)
    }

    /// Runs the tests. The explicit target keeps the flags away from build tools.
    fn run(&self, workspace: &Workspace, packages: &[&str]) -> Result<()> {
        let target = plugins::host_target(workspace)?;
        let mut command = workspace.cargo("test");
        command.args(["--lib", "--tests", "--target", &target]);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        command.envs(self.variables.iter().copied());
        match &self.kind {
            Kind::Instrument { flag, reach, .. } => {
                command.env("RUSTC_BOOTSTRAP", "1").env("RUSTFLAGS", flag);
                if matches!(reach, Reach::StandardLibrary) {
                    command.arg("-Zbuild-std");
                }
            }
            Kind::Runner(line) => {
                let triple = target.to_uppercase().replace(['-', '.'], "_");
                command.env(format!("CARGO_TARGET_{triple}_RUNNER"), line);
            }
        }
        command.arg("--");
        command.args(self.skipped.iter().flat_map(|test| ["--skip", test]));
        process::run(&mut command)
    }
}

/// Returns a folder of the toolchain by the name that `rustc --print` knows.
fn rustc_folder(workspace: &Workspace, name: &str) -> Result<PathBuf> {
    let mut command = workspace.command("rustc");
    let run = process::capture(command.args(["--print", name]), TIME_LIMIT)?;
    let line = run.stdout.lines().next();
    line.map(PathBuf::from)
        .with_context(|| format!("rustc --print {name} failed: {}", run.stderr))
}

/// Tells whether a folder holds a file whose name ends in `suffix`.
fn holds_file_ending_in(folder: &Path, suffix: &str) -> bool {
    let Ok(entries) = folder.read_dir() else {
        return false;
    };
    entries
        .flatten()
        .any(|entry| entry.file_name().to_string_lossy().ends_with(suffix))
}
