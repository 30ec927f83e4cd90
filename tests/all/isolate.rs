//! A program that embeds Halite runs a kernel that it does not trust in a child process, and lives on when it crashes.
//!
//! The child is this test program once more, told by a variable what to do.
#![cfg(unix)]

use std::process::{Command, ExitStatus};

use hal_plugin::PluginSpec;
use halite::isolate::{Crash, Limits};
use halite::{Program, Session, StatusCode, Tensor, Trust, Value};
use halite_tests::fixtures;

use crate::plugins;

/// Tells the child how its kernel crashes.
const HOW: &str = "HALITE_TESTS_CRASH";

/// Returns a session with a program whose kernel calls `lab_scale_add` of that plugin.
fn session(plugin: &str) -> Session {
    let program = Program::open(fixtures().join("3.13.0/llvm-cpu/plugin.vmfb")).unwrap();
    let plugin = plugins::folder().join(plugin);
    // SAFETY: the module was made by a released compiler, and the plugin is our own; it crashes in the child only.
    let trust = unsafe { Trust::native_code() };
    Session::builder()
        .native_code(trust)
        .plugin(PluginSpec::parse(plugin.to_str().unwrap()).unwrap())
        .program(program)
        .build()
        .unwrap()
}

/// Calls the program with `a[i] = 1` and `b[i] = 2`, and returns `a[i] * 10 + b[i] + b[i]`.
fn call(session: &Session) -> Vec<f32> {
    let input = |value: f32| Value::Tensor(Tensor::from_slice(&[4], &[value; 4]).unwrap());
    let results = session.invoke("plugin", &[input(1.0), input(2.0)]).unwrap();
    let [Value::Tensor(sum)] = results.as_slice() else {
        panic!("{results:?}");
    };
    sum.to_vec().unwrap()
}

/// What a program does in a child; nothing when this is no child.
#[test]
fn child() {
    let Ok(how) = std::env::var(HOW) else {
        return;
    };
    let limits = Limits {
        memory_bytes: None,
        cpu_seconds: Some(20),
    };
    limits.apply_to_this_process().unwrap();
    call(&session(&format!("crashing.so?how={how}")));
}

/// Runs the child and returns how it ended.
fn isolated(how: &str) -> ExitStatus {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "isolate::child"]).env(HOW, how);
    command.output().unwrap().status
}

#[test]
fn a_crash_of_an_isolated_kernel_is_named_and_the_caller_goes_on() {
    if !cfg!(target_arch = "x86_64") {
        println!("skipped: the fixture is for x86-64");
        return;
    }
    if !plugins::is_built("crashing.so") || !plugins::is_built("scale_add_c.so") {
        return;
    }
    let session = session("scale_add_c.so");
    for (how, signal) in [("divide", "SIGFPE"), ("wild", "SIGSEGV")] {
        assert_eq!(call(&session), [14.0; 4]);
        let crash = Crash::of(isolated(how)).expect("the child ends by a signal");
        assert_eq!(crash.name(), signal);
        assert_eq!(crash.status_code(), StatusCode::INTERNAL);
    }
    // A child without a fault, so that it is the kernel that ends the others.
    assert!(isolated("nothing").success());
    assert_eq!(call(&session), [14.0; 4]);
}
