//! What a failure tells of its place: modules, functions, offsets and lines of the source.

use vm::{StatusCode, Value};

use crate::setup::{Hosted, call, link, load};

/// Returns the frames of a failed call as text, innermost first.
#[track_caller]
fn frames(results: vm::Result<Vec<Value>>) -> Vec<String> {
    let trap = results.unwrap_err();
    trap.frames().iter().map(ToString::to_string).collect()
}

#[test]
fn a_failure_names_its_function_and_the_offset_of_its_instruction() {
    let context = link(&[load("control")]);
    // The body is a block marker, then the failure.
    assert_eq!(
        frames(call(&context, "fails", &[Value::I32(3)])),
        ["control.fails:1"]
    );
}

#[test]
fn callers_stand_at_their_calls() {
    let context = link(&[load("calls")]);
    // The marker and `const.ref.rodata` come first; the function called is not exported, so it goes by its ordinal.
    let trap = call(&context, "fails_inside", &[Value::I32(9)]).unwrap_err();
    let places: Vec<(String, Option<u32>)> = trap
        .frames()
        .iter()
        .map(|frame| (frame.function.clone(), frame.offset))
        .collect();
    let fails = context_ordinal("fails_inside") - 1;
    assert_eq!(
        places,
        [
            (format!("@{fails}"), Some(1)),
            ("fails_inside".to_owned(), Some(8))
        ]
    );
}

/// Returns the ordinal of an exported function of `calls`.
fn context_ordinal(name: &str) -> u32 {
    let module = load("calls");
    let mut exports = module.def().exports.iter();
    exports.find(|export| export.name == name).unwrap().function
}

#[test]
fn frames_of_all_modules_are_there() {
    let context = link(&[load("library"), load("user")]);
    let trap = call(&context, "fails", &[Value::I32(9)]).unwrap_err();
    assert_eq!(
        (trap.code(), trap.message()),
        (StatusCode::FAILED_PRECONDITION, "in the library")
    );
    let names: Vec<String> = trap
        .frames()
        .iter()
        .map(|frame| format!("{}.{}", frame.module, frame.function))
        .collect();
    assert_eq!(names, ["library.fails", "user.fails"]);
}

#[test]
fn frames_on_both_sides_of_a_native_function_are_there() {
    let hosted = Hosted::new("imports");
    let trap = call(&hosted.context, "descends", &[Value::I32(40)]).unwrap_err();
    assert_eq!(trap.code(), StatusCode::RESOURCE_EXHAUSTED);
    assert!(trap.frames().len() > 10);
    assert!(
        trap.frames()
            .iter()
            .all(|frame| frame.function == "descends")
    );
}

#[test]
fn a_place_in_the_source_is_told_when_the_module_knows_it() {
    let context = link(&[load("located")]);
    let places = frames(call(&context, "fails", &[Value::I32(9)]));
    assert_eq!(places, ["located.fails:17 at located.mlir:21:5"]);
    // The compiler wrote the lines of the last function only; the other keeps its ordinal and offset.
    let places = frames(call(&context, "outer", &[Value::I32(9)]));
    assert_eq!(places, ["located.@1:17", "located.outer:1"]);
}

#[test]
fn a_deep_failure_keeps_every_frame() {
    let hosted = Hosted::new("imports");
    let trap = call(&hosted.context, "fails_deep", &[Value::I32(100)]).unwrap_err();
    assert_eq!(trap.frames().len(), 101);
    let call_site = trap.frames()[1].offset;
    assert!(
        trap.frames()[1..]
            .iter()
            .all(|frame| frame.offset == call_site)
    );
}
