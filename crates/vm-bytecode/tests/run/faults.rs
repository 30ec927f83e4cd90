//! Faults that were seen in programs of this kind (`docs/testing.md`, section "Known faults of the field"), where one
//! function's results do not show them. The others are rows of the tables in `tests/ops`.

use std::sync::Arc;

use vm::{ElementType, InvocationOptions, List, MAX_LIST_LENGTH, Ref, StatusCode, Value};

use crate::setup::{Hosted, call, call_with, failure, integers, link, load, reference};

/// How programs are run: fused, and counted.
const WAYS: [Option<u64>; 2] = [None, Some(u64::MAX)];

fn counted(fuel: Option<u64>) -> InvocationOptions<'static> {
    InvocationOptions { fuel, tracer: None }
}

#[test]
fn c7_spans_may_be_empty_and_of_several_tuples() {
    let hosted = Hosted::new("imports");
    let run =
        |function: &str, arguments: &[Value]| integers(call(&hosted.context, function, arguments));
    let (long, count) = (Value::I64(1 << 40), Value::I32(3));
    assert_eq!(run("spans_empty", core::slice::from_ref(&count)), [3000]);
    assert_eq!(run("spans_first", &[count.clone(), Value::I32(20)]), [3043]);
    // Two bindings of 4 bytes, each with two 64-bit numbers.
    let arguments = [long.clone(), count.clone()];
    assert_eq!(run("spans_second", &arguments), [3008 + (4 << 40)]);
    assert_eq!(run("spans_both", &[long, count]), [3010 + (2 << 40)]);
}

#[test]
fn d3_no_offset_of_a_global_wraps() {
    let context = link(&[load("globals")]);
    for function in ["load_i32", "load_f32", "load_i64", "load_f64"] {
        for offset in [21, 24, i32::MAX, i32::MIN, -8, -4, -1] {
            let loaded = call(&context, function, &[Value::I32(offset)]);
            failure(loaded, StatusCode::OUT_OF_RANGE);
        }
    }
    let stores = |offset| {
        let offset = Value::I32(offset);
        [
            ("indirect_i32", [offset.clone(), Value::I32(1)]),
            ("indirect_f32", [offset.clone(), Value::F32(1.0)]),
            ("indirect_i64", [Value::I64(1), offset.clone()]),
            ("indirect_f64", [Value::F64(1.0), offset]),
        ]
    };
    for offset in [21, 24, i32::MAX, i32::MIN, -8, -4, -1] {
        for (function, arguments) in stores(offset) {
            failure(
                call(&context, function, &arguments),
                StatusCode::OUT_OF_RANGE,
            );
        }
        let reference = call(&context, "indirect_refs", &[Value::I32(offset)]);
        failure(reference, StatusCode::OUT_OF_RANGE);
    }
    for (function, arguments) in stores(16) {
        assert!(call(&context, function, &arguments).is_ok());
    }
}

#[test]
fn d4_an_f64_global_needs_eight_bytes() {
    let context = link(&[load("globals")]);
    let store = |offset| {
        let arguments = [Value::F64(1.0), Value::I32(offset)];
        call(&context, "indirect_f64", &arguments)
    };
    assert!(store(16).is_ok());
    for offset in 17..24 {
        failure(store(offset), StatusCode::OUT_OF_RANGE);
    }
}

#[test]
fn d6_a_value_may_be_returned_more_often_than_there_are_registers() {
    let context = link(&[load("calls")]);
    assert_eq!(
        integers(call(&context, "repeats", &[Value::I32(-3)])),
        [-3; 12]
    );
}

#[test]
fn d8_an_import_may_call_back_in_and_outgrow_the_stack() {
    let hosted = Hosted::new("imports");
    // 5000 frames are many times what a new stack has room for.
    let grown = call(&hosted.context, "grows_the_stack", &[Value::I32(5000)]);
    assert_eq!(integers(grown), [5000, 123_456_789_012]);
    assert_eq!(
        integers(call(&hosted.context, "descends", &[Value::I32(20)])),
        [20_000]
    );
}

#[test]
fn d9_a_failure_releases_the_refs_of_all_frames() {
    for fuel in WAYS {
        for (function, code, made) in [
            ("fails_deep", StatusCode::FAILED_PRECONDITION, 4),
            ("import_fails_deep", StatusCode::OUT_OF_RANGE, 4),
        ] {
            let hosted = Hosted::new("imports");
            let failed = call_with(&hosted.context, function, &[Value::I32(3)], counted(fuel));
            failure(failed, code);
            assert_eq!(hosted.host.tokens_made(), made, "{function}");
            assert_eq!(hosted.host.tokens_alive(), 0, "{function}");
        }
    }
}

#[test]
fn d9_running_out_of_fuel_releases_the_refs_wherever_it_happens() {
    for fuel in 0..60 {
        let hosted = Hosted::new("imports");
        let arguments = [Value::I32(3)];
        let stopped = call_with(
            &hosted.context,
            "fails_deep",
            &arguments,
            counted(Some(fuel)),
        );
        assert!(stopped.is_err());
        assert_eq!(hosted.host.tokens_alive(), 0, "after {fuel} instructions");
    }
}

#[test]
fn refs_that_a_function_leaves_in_its_registers_are_released_on_return() {
    let hosted = Hosted::new("imports");
    call(&hosted.context, "moves", &[]).unwrap();
    assert_eq!(
        (hosted.host.tokens_made(), hosted.host.tokens_alive()),
        (1, 0)
    );
}

#[test]
fn a_global_holds_its_ref_until_it_is_replaced_or_the_context_ends() {
    let hosted = Hosted::new("imports");
    for _ in 0..3 {
        call(&hosted.context, "keeps", &[]).unwrap();
        assert_eq!(hosted.host.tokens_alive(), 1);
    }
    let Hosted { host, context } = hosted;
    drop(context);
    assert_eq!((host.tokens_made(), host.tokens_alive()), (3, 0));
}

#[test]
fn d10_loading_a_constant_again_and_again_counts_it_once() {
    let context = link(&[load("buffers")]);
    for fuel in WAYS {
        let arguments = [Value::I32(1000)];
        let constant = call_with(&context, "constant_after_a_loop", &arguments, counted(fuel));
        let constant = reference(constant);
        // The module's own and ours.
        assert_eq!(Arc::strong_count(constant.as_buffer().unwrap()), 2);
    }
}

#[test]
fn c10_a_constant_outlives_its_module() {
    let context = link(&[load("library")]);
    let constant = reference(call(&context, "constant", &[]));
    drop(context);
    assert_eq!(constant.as_buffer().unwrap().to_vec(), [1, 2, 3, 4, 5]);
}

#[test]
fn d11_a_ref_that_is_assigned_to_itself_stays() {
    let context = link(&[load("refs")]);
    for fuel in WAYS {
        let assigned = call_with(&context, "assign_to_itself", &[], counted(fuel));
        assert_eq!(integers(assigned), [9, 9]);
    }
}

#[test]
fn d13_a_switch_takes_the_default_outside_its_list() {
    let context = link(&[load("switches")]);
    for (index, expected) in [(0, 0), (1, 17), (2, 34), (3, 34), (-1, 34), (i32::MAX, 34)] {
        assert_eq!(
            integers(call(&context, "moves", &[Value::I32(index)])),
            [expected]
        );
    }
}

#[test]
fn d13_a_switch_checks_the_type_of_what_it_picks() {
    let context = link(&[load("switches")]);
    let list = || Value::Ref(List::new(ElementType::I32, 0).unwrap().into());
    let checks =
        |index, first, second| call(&context, "checks", &[Value::I32(index), first, second]);
    failure(
        checks(0, list(), Value::Ref(Ref::Null)),
        StatusCode::INVALID_ARGUMENT,
    );
    assert_eq!(integers(checks(1, list(), Value::Ref(Ref::Null))), [0]);
    failure(
        checks(1, Value::Ref(Ref::Null), list()),
        StatusCode::INVALID_ARGUMENT,
    );
}

#[test]
fn d14_copies_that_swap_do_not_lose_values() {
    let context = link(&[load("control")]);
    for fuel in WAYS {
        let swap = |function: &str, arguments: &[Value]| {
            integers(call_with(&context, function, arguments, counted(fuel)))
        };
        let (a, b) = (0x0123_4567_89AB_CDEF, -2);
        assert_eq!(swap("swap_i64", &[Value::I64(a), Value::I64(b)]), [b, a]);
        assert_eq!(swap("swap_i32", &[Value::I32(1), Value::I32(2)]), [2, 1]);
        assert_eq!(swap("rotate_ref", &[Value::I32(1)]), [17, 34, 0]);
    }
}

#[test]
fn d17_a_float_that_no_integer_holds_converts_all_the_same() {
    let context = link(&[load("floats")]);
    for (value, expected) in [(1e20, 0), (f32::NAN, 0), (f32::NEG_INFINITY, 0), (-1.0, -1)] {
        assert_eq!(
            integers(call(&context, "cast_f32_ui32", &[Value::F32(value)])),
            [expected]
        );
    }
}

#[test]
fn d18_integers_wrap_and_division_by_zero_is_an_error() {
    let context = link(&[load("integers")]);
    let run = |function: &str, a, b| call(&context, function, &[Value::I32(a), Value::I32(b)]);
    assert_eq!(integers(run("mul_i32", i32::MAX, 2)), [-2]);
    assert_eq!(integers(run("add_i32", i32::MAX, 1)), [i64::from(i32::MIN)]);
    assert_eq!(
        integers(run("div_i32_s", i32::MIN, -1)),
        [i64::from(i32::MIN)]
    );
    assert_eq!(integers(run("rem_i32_s", i32::MIN, -1)), [0]);
    assert_eq!(integers(run("sub_i32", i32::MIN, 1)), [i32::MAX.into()]);
    let smallest = call(&context, "abs_i32", &[Value::I32(i32::MIN)]);
    assert_eq!(integers(smallest), [i32::MIN.into()]);
    for function in ["div_i32_s", "div_i32_u", "rem_i32_s", "rem_i32_u"] {
        failure(run(function, 1, 0), StatusCode::INVALID_ARGUMENT);
    }
    let run = |function: &str, a, b| call(&context, function, &[Value::I64(a), Value::I64(b)]);
    assert_eq!(integers(run("mul_i64", i64::MAX, 2)), [-2]);
    assert_eq!(integers(run("add_i64", i64::MAX, 1)), [i64::MIN]);
    assert_eq!(integers(run("sub_i64", i64::MIN, 1)), [i64::MAX]);
    assert_eq!(integers(run("div_i64_s", i64::MIN, -1)), [i64::MIN]);
    assert_eq!(integers(run("rem_i64_s", i64::MIN, -1)), [0]);
    let smallest = call(&context, "abs_i64", &[Value::I64(i64::MIN)]);
    assert_eq!(integers(smallest), [i64::MIN]);
    for function in ["div_i64_s", "div_i64_u", "rem_i64_s", "rem_i64_u"] {
        failure(run(function, 1, 0), StatusCode::INVALID_ARGUMENT);
    }
}

#[test]
fn d19_shift_amounts_are_taken_modulo_the_width() {
    let context = link(&[load("integers")]);
    for (amount, expected) in [
        (31, 1 << 31),
        (32, 1),
        (33, 2),
        (63, 1 << 31),
        (255, 1 << 31),
    ] {
        let shifted = call(&context, "shl_i32", &[Value::I32(1), Value::I32(amount)]);
        let low_word = integers(shifted)[0].cast_unsigned() & 0xFFFF_FFFF;
        assert_eq!(low_word, expected, "{amount}");
    }
    for (amount, expected) in [(63, i64::MIN), (64, 1), (65, 2), (255, i64::MIN)] {
        let shifted = call(&context, "shl_i64", &[Value::I64(1), Value::I32(amount)]);
        assert_eq!(integers(shifted), [expected], "{amount}");
    }
    let right = |function: &str, value, amount| {
        integers(call(&context, function, &[value, Value::I32(amount)]))[0]
    };
    for function in ["shr_i32_s", "shr_i32_u"] {
        assert_eq!(right(function, Value::I32(6), 33), 3, "{function}");
    }
    for function in ["shr_i64_s", "shr_i64_u"] {
        assert_eq!(right(function, Value::I64(6), 65), 3, "{function}");
    }
}

#[test]
fn d27_no_range_of_a_buffer_wraps() {
    let context = link(&[load("buffers")]);
    let range = |function: &str, offset, length| {
        call(
            &context,
            function,
            &[Value::I64(offset), Value::I64(length)],
        )
    };
    for (offset, length) in [(-1, 1), (1, -1), (-1, 2), (17, 0), (i64::MIN, i64::MIN)] {
        for function in ["hash", "clone_length"] {
            failure(range(function, offset, length), StatusCode::OUT_OF_RANGE);
        }
    }
    assert!(range("hash", 16, 0).is_ok());
    let run = |function: &str, numbers: &[i64]| {
        let arguments: Vec<Value> = numbers.iter().copied().map(Value::I64).collect();
        call(&context, function, &arguments)
    };
    // Two offsets and a length, of buffers of 16 bytes.
    for numbers in [
        [17, 0, 0],
        [0, 17, 0],
        [-1, 0, 2],
        [0, -1, 2],
        [0, 0, -1],
        [1, 0, -1],
        [8, 8, -8],
        [i64::MIN, 0, i64::MIN],
    ] {
        for function in ["copy", "copy_within", "compare"] {
            failure(run(function, &numbers), StatusCode::OUT_OF_RANGE);
        }
    }
    for function in ["copy", "copy_within", "compare"] {
        assert!(run(function, &[16, 16, 0]).is_ok(), "{function}");
    }
    // Indices of elements, whose product with the size of one may wrap too.
    for index in [16, -1, i64::MIN, i64::MAX, 1 << 61, 1 << 62] {
        for function in [
            "load_i8_u",
            "load_i16_s",
            "load_i32",
            "load_i64",
            "load_f64",
        ] {
            failure(run(function, &[index]), StatusCode::OUT_OF_RANGE);
        }
        failure(run("store_i64", &[index, 5]), StatusCode::OUT_OF_RANGE);
        failure(run("fill_i64", &[index, 8, 5]), StatusCode::OUT_OF_RANGE);
    }
    failure(run("fill_i64", &[8, -8, 5]), StatusCode::OUT_OF_RANGE);
}

#[test]
fn one_instruction_cannot_take_all_memory() {
    let context = link(&[load("lists")]);
    let too_long = i32::try_from(MAX_LIST_LENGTH + 1).unwrap();
    for length in [too_long, -1] {
        let resized = call(
            &context,
            "resize_twice",
            &[Value::I32(1), Value::I32(length)],
        );
        failure(resized, StatusCode::RESOURCE_EXHAUSTED);
    }
}
