//! Modules in contexts: state, initializers, finalizers, signals, and modules that several contexts and threads share.

use std::sync::Arc;

use vm::{Context, Module, Signal, StatusCode, Value};

use crate::host::Host;
use crate::setup::{Hosted, call, failure, fixture, integers, link, load, lookup};
use vm_bytecode::BytecodeModule;

#[test]
fn initializer_finalizer_and_signals_reach_the_module() {
    let Hosted { host, context } = Hosted::new("lifecycle");
    assert_eq!(host.take_notes(), [100]);
    for (signal, number) in [
        (Signal::Resume, 1000),
        (Signal::Suspend, 1001),
        (Signal::LowMemory, 1002),
    ] {
        context.notify(signal).unwrap();
        assert_eq!(host.take_notes(), [number]);
    }
    assert_eq!(integers(call(&context, "bump", &[])), [101]);
    drop(context);
    assert_eq!(host.take_notes(), [101]);
}

#[test]
fn signals_that_take_something_away_go_in_reverse() {
    let host = Host::default();
    let modules: [Arc<dyn Module>; 3] = [host.module(), load("lifecycle"), load("lifecycle")];
    let context = link(&modules);
    host.take_notes();
    // The second of the two is bumped, so that its finalizer tells it apart.
    assert_eq!(integers(call(&context, "bump", &[])), [101]);
    drop(context);
    assert_eq!(host.take_notes(), [101, 100]);
}

#[test]
fn a_module_without_a_handler_takes_every_signal() {
    let context = link(&[load("library")]);
    assert!(context.notify(Signal::Suspend).is_ok());
}

#[test]
fn an_initializer_that_fails_keeps_the_context_from_being_made() {
    let host = Host::default();
    let built = Context::builder()
        .module(host.module())
        .module(load("lifecycle"))
        .module(load("failing"))
        .build();
    let trap = built.unwrap_err();
    assert_eq!(
        (trap.code(), trap.message()),
        (StatusCode::UNAVAILABLE, "not on this machine")
    );
    assert_eq!(trap.frames()[0].to_string(), "failing.__init:8");
}

#[test]
fn each_context_has_a_state_of_its_own() {
    let modules: [Arc<dyn Module>; 1] = [load("library")];
    let (first, second) = (link(&modules), link(&modules));
    assert_eq!(integers(call(&first, "count", &[])), [1]);
    assert_eq!(integers(call(&first, "count", &[])), [2]);
    assert_eq!(integers(call(&second, "count", &[])), [1]);
}

#[test]
fn a_failure_leaves_the_state_as_it_was_then() {
    let context = link(&[load("library")]);
    assert_eq!(integers(call(&context, "count", &[])), [1]);
    failure(
        call(&context, "fails", &[Value::I32(2)]),
        StatusCode::UNKNOWN,
    );
    assert_eq!(integers(call(&context, "count", &[])), [2]);
}

#[test]
fn threads_share_a_module_and_not_its_state() {
    let (library, user) = (load("library"), load("user"));
    let run = || {
        let context = link(&[library.clone(), user.clone()]);
        let counts = lookup(&context, "counts");
        (0..50)
            .map(|_| integers(context.invoke(&counts, []))[2])
            .collect::<Vec<_>>()
    };
    let expected: Vec<i64> = (1..=50).map(|time| time * 3).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        for thread in threads {
            assert_eq!(thread.join().unwrap(), expected);
        }
    });
}

#[test]
fn a_context_may_move_to_another_thread_between_calls() {
    let context = link(&[load("library")]);
    assert_eq!(integers(call(&context, "count", &[])), [1]);
    let moved = std::thread::spawn(move || integers(call(&context, "count", &[])));
    assert_eq!(moved.join().unwrap(), [2]);
}

#[test]
fn a_required_import_that_is_missing_is_named() {
    let trap = Context::builder().module(load("user")).build().unwrap_err();
    assert_eq!(trap.code(), StatusCode::NOT_FOUND);
    assert!(trap.message().contains("library.scale"), "{trap}");
}

#[test]
fn a_type_that_nobody_knows_is_named() {
    // Without `host` the type `test.token` is unknown; an import fails first, so the module is asked by itself.
    let linkage = vm::Linkage {
        imports: vec![None; 11],
        types: &vm::RefTypes::builtin(),
    };
    let trap = load("imports").instantiate(linkage).unwrap_err();
    assert_eq!(trap.code(), StatusCode::NOT_FOUND);
    assert!(trap.message().contains("!test.token"), "{trap}");
}

#[test]
fn the_newest_of_two_modules_of_one_name_is_called() {
    let context = link(&[load("library"), load("library"), load("user")]);
    assert_eq!(integers(call(&context, "counts", &[])), [1, 2, 3]);
    let library = context.lookup("library", "count").unwrap();
    assert_eq!(integers(context.invoke(&library, [])), [4]);
}

#[test]
fn d30_what_does_not_verify_is_no_module() {
    let mut file = fixture("control");
    let module = load("control");
    let body = module.def().bytecode.clone();
    // No byte of the first body may be an opcode that does not exist.
    file[body.start + 1] = 0xFF;
    let error = BytecodeModule::load(Arc::new(file)).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
}

#[test]
fn contexts_and_modules_go_where_they_should() {
    fn sendable<T: Send>() {}
    fn shareable<T: Send + Sync>() {}
    sendable::<Context>();
    shareable::<BytecodeModule>();
}
