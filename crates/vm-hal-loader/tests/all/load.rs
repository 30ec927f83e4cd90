//! `executable.query_support` and `executable.load`.

use std::error::Error;
use std::sync::Arc;

use hal_local::{LoadError, LoaderRegistry};
use vm::{Access, Buffer, Ref, StatusCode, Value};
use vm_hal_loader::{EXECUTABLE_TYPE, HalExecutable};

use crate::kernels::KernelsLoader;
use crate::program::{
    IMPORTS_1, NULL, Program, both, check_failure, constant, constant_buffer, link,
};

#[test]
fn a_format_is_supported_when_a_loader_takes_it() {
    for program in both() {
        for (format, expected) in [
            ("kernels", 1),
            ("kernel", 0),
            ("", 0),
            ("embedded-elf-pdp_11", 0),
        ] {
            let results = program.call("executable.query_support", &[], vec![constant(format)]);
            assert!(matches!(results.unwrap()[..], [Value::I32(found)] if found == expected));
        }
    }
}

#[test]
fn a_loaded_executable_is_the_loaders() {
    let program = Program::new(1, false);
    let executable = program.load_kernels();
    let executable: &HalExecutable = executable.as_object(&EXECUTABLE_TYPE).unwrap();
    let kernels = program.loader.last();
    assert!(std::ptr::addr_eq(
        Arc::as_ptr(executable.executable()),
        Arc::as_ptr(&kernels)
    ));
    assert_eq!(&*kernels.data, b"data");
    assert!(kernels.constants.is_empty());
}

#[test]
fn constant_data_are_shared_and_kept_alive() {
    let program = Program::new(1, false);
    let file = constant_buffer(b"0123456789");
    let data = file.subspan(4, 3).unwrap();
    let executable = program
        .load(constant("kernels"), Value::Ref(data.into()), NULL)
        .unwrap();
    let kernels = program.loader.last();
    assert_eq!(&*kernels.data, b"456");
    assert_eq!(kernels.data.as_ptr().addr(), file.address() + 4);
    drop((file, executable, program));
    assert_eq!(&*kernels.data, b"456");
}

#[test]
fn data_that_could_change_are_copied() {
    let program = Program::new(1, false);
    let data = Buffer::copied_from(b"before", Access::GUEST).unwrap();
    program
        .load(constant("kernels"), Value::Ref(data.clone().into()), NULL)
        .unwrap();
    data.write(0, b"after!").unwrap();
    assert_eq!(&*program.loader.last().data, b"before");
}

#[test]
fn constants_are_words() {
    let program = Program::new(0, false);
    let words = constant_buffer(&[1, 0, 0, 0, 2, 1, 0, 0xFF]);
    program
        .load(
            constant("kernels"),
            constant("data"),
            Value::Ref(words.into()),
        )
        .unwrap();
    assert_eq!(program.loader.last().constants, [1, 0xFF00_0102]);
    program
        .load(constant("kernels"), constant("data"), constant(""))
        .unwrap();
    assert!(program.loader.last().constants.is_empty());
    check_failure(
        program.load(constant("kernels"), constant("data"), constant("12345")),
        StatusCode::INVALID_ARGUMENT,
        "constant buffer data must contain 4-byte elements but data length is 5",
    );
}

#[test]
fn a4_a_format_that_no_loader_takes_is_not_found() {
    for program in both() {
        check_failure(
            program.load(constant("bogus-format"), constant("data"), NULL),
            StatusCode::NOT_FOUND,
            "no executable loader registered for the given executable format 'bogus-format'; \
             loaders asked: kernels (other formats)",
        );
        check_failure(
            program.load(constant("kernels"), constant("declined"), NULL),
            StatusCode::NOT_FOUND,
            "no executable loader registered for the given executable format 'kernels'; \
             loaders asked: kernels (not tonight)",
        );
    }
    let context = link(LoaderRegistry::new(), 1, IMPORTS_1).unwrap();
    let load = context.lookup("program", "executable.load").unwrap();
    check_failure(
        context.invoke(&load, [constant("x"), constant("data"), NULL]),
        StatusCode::NOT_FOUND,
        "no executable loader registered for the given executable format 'x'; loaders asked: none",
    );
}

#[test]
fn an_executable_that_is_broken_is_not_offered_to_the_next_loader() {
    let (first, second) = (
        Arc::<KernelsLoader>::default(),
        Arc::<KernelsLoader>::default(),
    );
    let loaders = LoaderRegistry::new().with(first).with(second);
    let context = link(loaders, 1, IMPORTS_1).unwrap();
    let load = context.lookup("program", "executable.load").unwrap();
    // NOT_FOUND, as for missing imports.
    let trap = context
        .invoke(&load, [constant("kernels"), constant("\x05 broken"), NULL])
        .unwrap_err();
    assert_eq!(trap.code(), StatusCode::NOT_FOUND);
    assert_eq!(
        trap.message(),
        "cannot load the executable of format 'kernels'"
    );
    let cause = trap.source().unwrap();
    assert!(matches!(
        cause.downcast_ref(),
        Some(LoadError::Loader { .. })
    ));
    assert_eq!(
        cause.source().unwrap().to_string(),
        "the kernels are broken"
    );
}

#[test]
fn a_failure_is_never_taken_for_success_or_a_yield() {
    let program = Program::new(1, false);
    for data in ["\x00 broken", "\x11 broken"] {
        let trap = program
            .load(constant("kernels"), constant(data), NULL)
            .unwrap_err();
        assert_eq!(trap.code(), StatusCode::INTERNAL);
    }
}

#[test]
fn null_and_refs_of_other_types_are_refused() {
    let program = Program::new(1, false);
    let null = "ref is null; expected vm.buffer";
    let invalid = StatusCode::INVALID_ARGUMENT;
    check_failure(
        program.call("executable.query_support", &[], vec![NULL]),
        invalid,
        null,
    );
    check_failure(program.load(NULL, constant("data"), NULL), invalid, null);
    check_failure(program.load(constant("kernels"), NULL, NULL), invalid, null);
    let executable: Ref = program.load_kernels();
    check_failure(
        program.load(
            constant("kernels"),
            constant("data"),
            Value::Ref(executable),
        ),
        invalid,
        "ref type mismatch; expected vm.buffer but have hal.executable",
    );
}
