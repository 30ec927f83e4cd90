//! Dispatches: what is checked, in which order workgroups run, what kernels are given.

use std::sync::Arc;

use hal_abi::StatusCode;
use hal_local::{
    Binding, Denormals, Dispatch, DispatchError, Dispatcher, ExecutableHandle, InlineDispatcher,
};

use crate::kernels;
use crate::support::{Memory, dispatch, dispatch_from_site, load_static, test_kernels};

const INLINE: fn() -> InlineDispatcher = InlineDispatcher::new;

#[track_caller]
fn check_refused(
    function: &str,
    count: [u32; 3],
    constants: &[u32],
    bindings: &[Binding<'_>],
    code: StatusCode,
    message: &str,
) {
    let kernels = test_kernels();
    let listed = dispatch(&INLINE(), &*kernels, function, count, constants, bindings);
    let kernels = ExecutableHandle::new(kernels);
    let dispatcher = Arc::new(INLINE());
    let from_site = dispatch_from_site(dispatcher, &kernels, function, count, constants, bindings);
    for outcome in [listed, from_site] {
        let error = outcome.unwrap_err();
        assert_eq!(error.to_string(), message);
        assert_eq!(error.status_code(), code);
    }
}

#[test]
fn every_workgroup_runs_once() {
    let memory = Memory::zeroed(4 * 3 * 5 * 7);
    dispatch(
        &INLINE(),
        &*test_kernels(),
        "count",
        [3, 5, 7],
        &[],
        &[memory.binding()],
    )
    .unwrap();
    assert!(memory.to_u32().iter().all(|&count| count == 1));
}

#[test]
fn a_failing_workgroup_ends_the_dispatch() {
    // The error of the first row must not be forgotten in the second, nor anything run after it.
    let memory = Memory::zeroed(4);
    let error = dispatch(
        &INLINE(),
        &*test_kernels(),
        "fail_at",
        [2, 2, 2],
        &[0, 0, 0, 42],
        &[memory.binding()],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "function `fail_at` failed in workgroup [0, 0, 0]: the kernel returned 42"
    );
    assert_eq!(error.status_code(), StatusCode::INTERNAL);
    assert_eq!(memory.to_u32(), [1]);
}

#[test]
fn the_error_names_the_workgroup_in_which_it_happened() {
    let memory = Memory::zeroed(4);
    let error = dispatch(
        &INLINE(),
        &*test_kernels(),
        "fail_at",
        [3, 4, 5],
        &[2, 3, 4, (-7_i32).cast_unsigned()],
        &[memory.binding()],
    )
    .unwrap_err();
    let DispatchError::KernelFailed {
        workgroup_id, code, ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!((workgroup_id, code), ([2, 3, 4], -7));
    assert_eq!(memory.to_u32(), [3 * 4 * 5]);
}

#[test]
fn a_failing_workgroup_ends_even_the_largest_dispatch() {
    let memory = Memory::zeroed(4);
    for count in [
        [1 << 31, 1 << 31, 1],
        [u32::MAX, 1, 1],
        [1, u32::MAX, 65535],
    ] {
        dispatch(
            &INLINE(),
            &*test_kernels(),
            "fail_at",
            count,
            &[0, 0, 0, 1],
            &[memory.binding()],
        )
        .unwrap_err();
    }
    assert_eq!(memory.to_u32(), [3]);
}

#[test]
fn a_workgroup_count_of_zero_runs_nothing() {
    let memory = Memory::zeroed(4);
    for count in [
        [0, 1, 1],
        [1, 0, 1],
        [1, 1, 0],
        [0, u32::MAX, u16::MAX.into()],
    ] {
        dispatch(
            &INLINE(),
            &*test_kernels(),
            "count",
            count,
            &[],
            &[memory.binding()],
        )
        .unwrap();
    }
    assert_eq!(memory.to_u32(), [0]);
}

#[test]
fn a_workgroup_count_in_z_beyond_16_bits_is_out_of_range() {
    let memory = Memory::zeroed(4);
    for count in [65536_u32, 65537, (-1_i32).cast_unsigned(), 1 << 31] {
        let message = format!(
            "workgroup count {count} of function `count` in z is out of range: the limit is 65535"
        );
        check_refused(
            "count",
            [1, 1, count],
            &[],
            &[memory.binding()],
            StatusCode::OUT_OF_RANGE,
            &message,
        );
    }
}

#[test]
fn workgroup_counts_whose_product_wraps_are_out_of_range() {
    let memory = Memory::zeroed(4);
    check_refused(
        "count",
        [u32::MAX, u32::MAX, 2],
        &[],
        &[memory.binding()],
        StatusCode::OUT_OF_RANGE,
        "workgroup counts [4294967295, 4294967295, 2] of function `count` are out of range: \
         their product exceeds 64 bits",
    );
}

#[test]
fn a_function_id_out_of_range_is_refused() {
    let executable = test_kernels();
    for id in [8, 1 << 32, u64::MAX] {
        let error = Dispatch::new(&*executable, id, [1, 1, 1], &[], &[]).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
        assert_eq!(
            error.to_string(),
            format!("function id {id} is out of range: the executable has 8 functions")
        );
    }
}

#[test]
fn constants_must_be_as_many_as_the_function_takes() {
    let memory = Memory::zeroed(4);
    let bindings = [memory.binding()];
    let code = StatusCode::INVALID_ARGUMENT;
    check_refused(
        "fail_at",
        [1; 3],
        &[1; 3],
        &bindings,
        code,
        "function `fail_at` takes 4 constants, not 3",
    );
    check_refused(
        "fail_at",
        [1; 3],
        &[1; 5],
        &bindings,
        code,
        "function `fail_at` takes 4 constants, not 5",
    );
    check_refused(
        "count",
        [1; 3],
        &[1],
        &bindings,
        code,
        "function `count` takes 0 constants, not 1",
    );
}

#[test]
fn bindings_must_be_as_many_as_the_function_takes() {
    let memory = Memory::zeroed(4);
    let code = StatusCode::INVALID_ARGUMENT;
    check_refused(
        "count",
        [1; 3],
        &[],
        &[],
        code,
        "function `count` takes 1 bindings, not 0",
    );
    check_refused(
        "nothing",
        [1; 3],
        &[],
        &[memory.binding(); 2],
        code,
        "function `nothing` takes 3 bindings, not 2",
    );
    check_refused(
        "count",
        [1; 3],
        &[],
        &[memory.binding(); 65],
        code,
        "function `count` takes 1 bindings, not 65",
    );
}

#[test]
fn a_binding_that_is_not_aligned_is_refused() {
    let memory = Memory::zeroed(256);
    let aligned = Binding::shared(&memory.bytes()[128..], None);
    let odd = Binding::shared(&memory.bytes()[4..], None);
    let address = odd.as_ptr().addr();
    check_refused(
        "nothing",
        [1; 3],
        &[],
        &[aligned, odd, aligned],
        StatusCode::INVALID_ARGUMENT,
        &format!(
            "binding 1 of function `nothing` is at address {address:#x}, \
             which is not a multiple of 64 as compiled kernels assume"
        ),
    );
    let empty = Binding::shared(&memory.bytes()[4..4], None);
    dispatch(
        &INLINE(),
        &*test_kernels(),
        "nothing",
        [1; 3],
        &[],
        &[aligned, empty, aligned],
    )
    .unwrap();
}

#[test]
fn a_dispatch_made_for_another_executable_is_refused() {
    let (kernels, other) = (
        test_kernels(),
        load_static(kernels::query_other, "other", None).unwrap(),
    );
    let memory = Memory::zeroed(4);
    let bindings = [memory.binding()];
    let dispatch = Dispatch::new(&*other, 0, [1; 3], &[], &bindings).unwrap();
    let error = INLINE().dispatch(&*kernels, &dispatch).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the dispatch of function `count` was made for another executable"
    );
    assert_eq!(memory.to_u32(), [0]);
}

#[test]
fn kernels_are_given_what_the_abi_promises() {
    let memory = Memory::zeroed(23 * 4);
    dispatch(
        &INLINE(),
        &*test_kernels(),
        "record",
        [3, 2, 2],
        &[11, 12],
        &[memory.binding()],
    )
    .unwrap();
    let expected = [
        // Workgroup size, with 1 for unknown; constants; workgroup counts.
        1, 3, 1, 2, 3, 2, 2, //
        // Concurrency; bindings; the constants; the length of the binding.
        1, 1, 11, 12, 92, //
        // The last workgroup and its processor.
        2, 1, 1, 0, //
        // No local memory: NULL, and no size.
        1, 0, //
        // Nothing in the environment.
        1, 1, 1, 1, //
        // Nothing misaligned.
        0,
    ];
    assert_eq!(memory.to_u32(), expected);
}

#[test]
fn local_memory_is_aligned_and_exactly_as_large_as_declared() {
    let memory = Memory::zeroed(12);
    let dispatcher = INLINE();
    for _ in 0..2 {
        dispatch(
            &dispatcher,
            &*test_kernels(),
            "scratch",
            [2, 1, 1],
            &[],
            &[memory.binding()],
        )
        .unwrap();
    }
    assert_eq!(memory.to_u32(), [3 * 4096, 0, 4]);
}

#[test]
fn denormals_are_kept_unless_flushing_is_asked_for() {
    let denormal = 1e-40_f32;
    let run = |dispatcher: InlineDispatcher| {
        let (input, output) = (Memory::of_f32(&[denormal]), Memory::of_f32(&[9.0]));
        let bindings = [input.binding(), output.binding()];
        dispatch(
            &dispatcher,
            &*test_kernels(),
            "multiply",
            [1; 3],
            &[],
            &bindings,
        )
        .unwrap();
        output.to_f32()[0]
    };
    assert_eq!(run(InlineDispatcher::new()), denormal);
    if let Some(flush) = Denormals::flush() {
        assert_eq!(run(InlineDispatcher::with_denormals(flush)), 0.0);
        // The mode does not outlive the kernel.
        assert_eq!(
            std::hint::black_box(denormal) * std::hint::black_box(1.0),
            denormal
        );
    }
}

#[test]
fn failures_are_found_with_denormals_flushed_too() {
    let Some(flush) = Denormals::flush() else {
        return;
    };
    let memory = Memory::zeroed(4);
    let dispatcher = InlineDispatcher::with_denormals(flush);
    let error = dispatch(
        &dispatcher,
        &*test_kernels(),
        "fail_at",
        [2, 2, 2],
        &[1, 0, 1, (-5_i32).cast_unsigned()],
        &[memory.binding()],
    )
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "function `fail_at` failed in workgroup [1, 0, 1]: the kernel returned -5"
    );
    assert_eq!(memory.to_u32(), [6]);
}

#[test]
fn functions_are_found_by_their_first_exact_name() {
    let executable = test_kernels();
    assert_eq!(executable.lookup(b"record"), Ok(2));
    assert_eq!(
        executable.export(2).unwrap().name(),
        Some(b"record".as_slice())
    );
    for name in [&b"Record"[..], b"", b"record\0", b"\xff"] {
        let error = executable.lookup(name).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
        let name = name.escape_ascii();
        assert_eq!(
            error.to_string(),
            format!("function `{name}` not found in the executable, which has 8 functions")
        );
    }
}
