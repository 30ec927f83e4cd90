//! `executable.lookup.function`.

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
    let program = Program::new(1, false);
    let executable = program.load_kernels();
    for (id, name) in (0..).zip(["any", "strict", "failing"]) {
        assert_eq!(lookup(&program, &executable, constant(name)).unwrap(), id);
    }
}

#[test]
fn a_name_that_does_not_exist_is_an_error_every_time() {
    let program = Program::new(1, false);
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
fn a_name_that_can_change_is_read_each_time() {
    let program = Program::new(1, false);
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
fn null_and_refs_of_other_types_are_refused() {
    let program = Program::new(1, false);
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
