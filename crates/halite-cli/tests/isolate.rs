//! `halite run --isolate`: kernels that end their process, in a child.
#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "helpers of tests may panic and print as tests do"
)]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the command with the fixture that calls a plugin, and the crashing plugin; `None`, with the reason printed, when
/// the machine cannot.
fn run(how: &str, arguments: &[&str]) -> Option<Output> {
    let plugins = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .join("plugins");
    let plugin = plugins.join("crashing.so");
    if !plugin.is_file() || !cfg!(target_arch = "x86_64") {
        println!(
            "skipped: the fixture is for x86-64, and crashing.so for `cargo xtask build-plugins`"
        );
        return None;
    }
    let module = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures/3.13.0/llvm-cpu/plugin.vmfb");
    let mut command = Command::new(env!("CARGO_BIN_EXE_halite"));
    command
        .arg("run")
        .arg(format!("--module={}", module.display()));
    command.arg(format!(
        "--executable_plugin={}?how={how}",
        plugin.display()
    ));
    command.args(["--input=4xf32=1 2 3 4", "--input=4xf32=10 20 30 40"]);
    Some(command.args(arguments).output().unwrap())
}

#[track_caller]
fn check(how: &str, arguments: &[&str], status: i32, error: &str) {
    let Some(output) = run(how, arguments) else {
        return;
    };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert!(stderr.contains(error), "{stderr}");
}

#[test]
fn a_kernel_that_divides_by_zero_is_an_error_that_names_the_signal() {
    check(
        "divide",
        &["--isolate"],
        1,
        "error: INTERNAL: the process was ended by SIGFPE (an arithmetic fault",
    );
}

#[test]
fn a_kernel_that_reads_a_wild_pointer_is_an_error_that_names_the_signal() {
    check("wild", &["--isolate"], 1, "ended by SIGSEGV");
}

#[test]
fn a_kernel_that_gives_up_is_an_error_that_names_the_signal() {
    check("abort", &["--isolate"], 1, "ended by SIGABRT");
}

#[test]
fn a_kernel_that_never_returns_is_stopped_at_its_limit() {
    check(
        "loop",
        &["--isolate", "--isolate_cpu_time=1"],
        1,
        "error: DEADLINE_EXCEEDED: the process was ended by SIGXCPU",
    );
}

#[test]
fn a_child_that_cannot_have_its_memory_fails() {
    let Some(output) = run("", &["--isolate", "--isolate_memory=8"]) else {
        return;
    };
    // Too little even to load: which step fails first is the system's choice.
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
}

#[test]
fn what_a_child_prints_and_its_status_are_passed_on() {
    let (Some(isolated), Some(plain)) = (run("", &["--isolate"]), run("", &[])) else {
        return;
    };
    assert!(isolated.status.success());
    assert_eq!(isolated.stdout, plain.stdout);
    assert!(isolated.stdout.starts_with(b"EXEC @plugin\nresult[0]: "));
    // An error of the child is its own, and printed once.
    let flags = ["--isolate", "--isolate_memory=4096", "--input=1"];
    let (isolated, plain) = (run("", &flags), run("", &["--input=1"]));
    let (isolated, plain) = (isolated.unwrap(), plain.unwrap());
    assert_eq!(isolated.status.code(), Some(1));
    assert_eq!(isolated.stderr, plain.stderr);
}

#[test]
fn limits_without_a_child_are_wrong_usage() {
    check("", &["--isolate_memory=100"], 2, "--isolate");
}
