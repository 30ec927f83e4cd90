//! Spans of the libraries on standard error, in a process of their own, as they are the process's.

use std::path::Path;
use std::process::{Command, Output};

/// Runs a portable program with `HALITE_LOG`.
fn run(filter: &str) -> Output {
    run_module("3.13.0/vmvx/dynsum.vmfb", filter)
}

/// Runs a program on two threads with `HALITE_LOG`.
fn run_module(module: &str, filter: &str) -> Output {
    let module = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(module);
    Command::new(env!("CARGO_BIN_EXE_halite"))
        .args(["run", "--threads=2", "--input=300x5xf32=1"])
        .arg(format!("--module={}", module.display()))
        .env("HALITE_LOG", filter)
        .output()
        .expect("the command was built for this test")
}

#[test]
fn loading_linking_calls_dispatches_and_work_are_spans() {
    let output = run("debug");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    for span in [
        "load_module{byte_length=5063}: ",
        "link{module=\"hal_loader\"}: ",
        "load_executable{format=\"vmvx-bytecode-fb\"}: ",
        "invoke{function=\"dynsum\"}: ",
        "dispatch{kernel=`dynsum",
        "work{kernel=`dynsum",
    ] {
        assert!(stderr.contains(span), "{span} is missing in {stderr}");
    }
    assert!(
        stderr.contains("invoke{function=\"dynsum\"}:dispatch{"),
        "{stderr}"
    );
    let silent = run("off");
    assert_eq!(silent.stdout, output.stdout);
    assert_eq!(String::from_utf8_lossy(&silent.stderr), "");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn resolving_imports_is_a_span() {
    let output = run_module("3.13.0/llvm-cpu/plugin.vmfb", "debug");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains(":resolve{names=1}: "), "{stderr}");
}

#[test]
fn hot_loops_are_compiled_unless_native_code_is_ruled_out() {
    let module = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/bench/vmloop10k.inline.vmfb"
    );
    let run = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_halite"));
        command.args(["run", "--function=main", "--input=10000", "--input=42"]);
        command.arg(format!("--module={module}")).args(flags);
        let output = command.env("HALITE_LOG", "debug").output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{stderr}");
        (output.stdout, stderr.contains("compile_loop{"))
    };
    let has_code = cfg!(all(unix, target_arch = "x86_64"));
    let (printed, is_compiled) = run(&[]);
    assert_eq!(is_compiled, has_code);
    assert_eq!(run(&["--no-native"]), (printed, false));
}

#[test]
fn a_filter_names_crates() {
    let output = run("hal_local=debug");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.contains("dispatch{") && !stderr.contains("invoke{"),
        "{stderr}"
    );
}

#[test]
fn what_is_no_filter_is_wrong_usage() {
    let output = run("hal_local=loud");
    assert_eq!(output.status.code(), Some(2));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(
        stderr.starts_with("error: INVALID_ARGUMENT: HALITE_LOG is no filter"),
        "{stderr}"
    );
}
