//! The workspace tasks: `cargo xtask <task> [arguments]`.
//!
//! This file holds the table of tasks and picks one. Each task lives in its own file, runs from the workspace root
//! whatever the current folder, and prints every command before it runs it. A new task is one row in [`TASKS`].
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line program for developers"
)]

mod api;
mod bench;
mod cargo;
#[path = "../../crates/vm-bytecode/tests/run/cases.rs"]
mod cases;
mod ci;
mod commands;
mod conformance;
mod fixtures;
mod fuzz;
mod iree;
#[path = "../../tests/all/manifest.rs"]
mod manifest;
mod miri;
mod mutants;
mod package;
mod plugins;
mod process;
mod sanitize;
mod soak;
mod supply;
mod tidy;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;

use crate::workspace::Workspace;

/// One task: its name, what it does, and one line of help.
struct Task {
    name: &'static str,
    run: fn(&Workspace, &[String]) -> Result<()>,
    help: &'static str,
}

/// All tasks, in the order in which the help lists them.
const TASKS: &[Task] = &[
    Task {
        name: "ci",
        run: ci::ci,
        help: "everything a change must pass: fmt, tidy, supply, lint, doc, package, api, commands, test",
    },
    Task {
        name: "fmt",
        run: cargo::fmt,
        help: "format the sources; --check only compares",
    },
    Task {
        name: "lint",
        run: cargo::lint,
        help: "clippy over all targets, warnings denied",
    },
    Task {
        name: "doc",
        run: cargo::doc,
        help: "build the documentation, private items too, warnings denied",
    },
    Task {
        name: "tidy",
        run: tidy::tidy,
        help: "check crate arrows, file headers, rooms of unsafe code, links, sizes",
    },
    Task {
        name: "api",
        run: api::api,
        help: "list the public API of the libraries in docs/api; --check only compares",
    },
    Task {
        name: "package",
        run: package::package,
        help: "pack every crate as for publishing, and check what its manifest says",
    },
    Task {
        name: "commands",
        run: commands::commands,
        help: "run the commands of the READMEs, guides and examples and compare what they print: [--write] [part of a path ...]",
    },
    Task {
        name: "test",
        run: cargo::test,
        help: "build the sample plugins, then cargo test --workspace [arguments]",
    },
    Task {
        name: "build-plugins",
        run: plugins::build_plugins,
        help: "build the sample plugins into <target>/plugins",
    },
    Task {
        name: "fixtures",
        run: fixtures::fixtures,
        help: "renew the fixtures of the installed IREE release",
    },
    Task {
        name: "bench",
        run: bench::bench,
        help: "measure single operations, or with --vs-iree whole programs: [--rounds=N] [--seconds=S] [--filter=TEXT] [--models=FOLDER] [--json=FILE] [--write]",
    },
    Task {
        name: "sanitize",
        run: sanitize::sanitize,
        help: "run tests under sanitizers and valgrind: [address] [thread] [valgrind] [package ...]",
    },
    Task {
        name: "miri",
        run: miri::miri,
        help: "run tests under Miri, those of threads for many seeds: [--seeds=N] [package ...]",
    },
    Task {
        name: "fuzz",
        run: fuzz::fuzz,
        help: "fuzz what takes any bytes: [--minutes N] [target ...]",
    },
    Task {
        name: "mutants",
        run: mutants::mutants,
        help: "try mutants of modules, executables and plugins: [--count N] [--first N]",
    },
    Task {
        name: "soak",
        run: soak::soak,
        help: "load, run, replace plugins and drop sessions on many threads: [--minutes N]",
    },
    Task {
        name: "supply",
        run: supply::supply,
        help: "check licenses, sources and known faults of dependencies, and their oldest versions: [deny] [minimal-versions]",
    },
    Task {
        name: "conformance",
        run: conformance::conformance,
        help: "run halite and iree-run-module side by side: [vm|plugins|all] [--corpus=PATH] [--iree=FOLDER] [--show=N]",
    },
];

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(name) = arguments.next() else {
        print!("{}", help());
        return ExitCode::from(2);
    };
    if matches!(name.as_str(), "help" | "--help" | "-h") {
        print!("{}", help());
        return ExitCode::SUCCESS;
    }
    let Some(task) = TASKS.iter().find(|task| task.name == name) else {
        eprintln!("error: no task named `{name}`\n\n{}", help());
        return ExitCode::from(2);
    };
    let arguments: Vec<String> = arguments.collect();
    match (task.run)(&Workspace::locate(), &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {name}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the usage text: one line per task.
fn help() -> String {
    let width = TASKS.iter().map(|task| task.name.len()).max().unwrap_or(0);
    let mut text = String::from("usage: cargo xtask <task> [arguments]\n\n");
    for task in TASKS {
        text.push_str(&format!("  {:width$}  {}\n", task.name, task.help));
    }
    text
}
