//! `executable.lookup.function` and what executables remember of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use vm::{Access, Buffer, Ref, Result, StatusCode, Value};

use crate::program::{NULL, Program, check_failure, constant, constant_buffer};

fn lookup(program: &Program, executable: &Ref, name: Value) -> Result<i64> {
    let arguments = vec![Value::Ref(executable.clone()), name];
    let results = program.call("executable.lookup.function", &[], arguments)?;
    match results[..] {
        [Value::I64(id)] => Ok(id),
        _ => panic!("{results:?}"),
    }
}

#[test]
fn the_id_of_a_function_is_its_ordinal() {
    let program = Program::new(1);
    let executable = program.load_kernels();
    for (id, name) in (0..).zip(["any", "strict", "failing"]) {
        assert_eq!(lookup(&program, &executable, constant(name)).unwrap(), id);
    }
}

#[test]
fn a_name_that_does_not_exist_is_an_error_every_time() {
    let program = Program::new(1);
    let executable = program.load_kernels();
    let name = constant("nope");
    for _ in 0..2 {
        check_failure(
            lookup(&program, &executable, name.clone()),
            StatusCode::NOT_FOUND,
            "function `nope` not found in the executable, which has 3 functions",
        );
    }
    let executable = program
        .load(constant("kernels"), constant("nameless"), NULL)
        .unwrap();
    let trap = lookup(&program, &executable, constant("any")).unwrap_err();
    assert_eq!(trap.code(), StatusCode::UNAVAILABLE);
}

#[test]
fn a_constant_is_compared_once() {
    let program = Program::new(1);
    let executable = program.load_kernels();
    let kernels = program.loader.last();
    let names = [constant("strict"), constant("any"), constant("strict")];
    for _ in 0..3 {
        let ids = names
            .each_ref()
            .map(|name| lookup(&program, &executable, name.clone()).unwrap());
        assert_eq!(ids, [1, 0, 1]);
    }
    assert_eq!(kernels.lookups.load(Ordering::Relaxed), names.len());
}

#[test]
fn executables_do_not_share_what_they_remember() {
    let program = Program::new(1);
    let (named, nameless) = (
        program.load_kernels(),
        program
            .load(constant("kernels"), constant("nameless"), NULL)
            .unwrap(),
    );
    let name = constant("any");
    assert!(lookup(&program, &named, name.clone()).is_ok());
    assert!(lookup(&program, &nameless, name).is_err());
}

#[test]
fn a_name_that_can_change_is_read_each_time() {
    let program = Program::new(1);
    let executable = program.load_kernels();
    let name = Buffer::copied_from(b"strict", Access::GUEST).unwrap();
    assert_eq!(
        lookup(&program, &executable, Value::Ref(name.clone().into())).unwrap(),
        1
    );
    name.write(0, b"any---").unwrap();
    let name = name.subspan(0, 3).unwrap();
    assert_eq!(
        lookup(&program, &executable, Value::Ref(name.into())).unwrap(),
        0
    );
}

#[test]
fn a_remembered_name_is_not_freed_and_their_number_is_bounded() {
    let program = Program::new(1);
    let executable = program.load_kernels();
    let weak: Vec<_> = (0..5000)
        .map(|index| {
            let (name, expected) = if index % 2 == 0 {
                ("any", 0)
            } else {
                ("strict", 1)
            };
            let name = constant_buffer(name.as_bytes());
            let id = lookup(&program, &executable, Value::Ref(Ref::from(name.clone()))).unwrap();
            assert_eq!(id, expected);
            Arc::downgrade(&name)
        })
        .collect();
    let alive = || weak.iter().filter(|name| name.upgrade().is_some()).count();
    assert!(weak[0].upgrade().is_some());
    assert!(alive() < 100, "{}", alive());
    drop(executable);
    program.loader.loaded.lock().unwrap().clear();
    assert_eq!(alive(), 0);
}

#[test]
fn null_and_refs_of_other_types_are_refused() {
    let program = Program::new(1);
    let invalid = StatusCode::INVALID_ARGUMENT;
    check_failure(
        lookup(&program, &Ref::Null, constant("any")),
        invalid,
        "ref is null; expected hal.executable",
    );
    check_failure(
        lookup(&program, &constant_buffer(b"any").into(), constant("any")),
        invalid,
        "ref type mismatch; expected hal.executable but have vm.buffer",
    );
    check_failure(
        lookup(&program, &program.load_kernels(), NULL),
        invalid,
        "ref is null; expected vm.buffer",
    );
}
