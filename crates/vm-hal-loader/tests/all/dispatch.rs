//! `executable.dispatch` in both versions.

use std::error::Error;
use std::sync::Arc;

use vm::{
    Access, ArgumentBlock, Buffer, Context, InvocationOptions, Ref, Results, StatusCode, Trap,
};

use crate::kernels::SeenBinding;
use crate::program::{Program, Request, both, check_failure};

const INVALID: StatusCode = StatusCode::INVALID_ARGUMENT;

fn buffer(length: u64) -> Arc<Buffer> {
    Buffer::allocate(length, 0).unwrap()
}

/// Returns a constant at an address that kernels can use, as files place them.
fn aligned_constant(length: usize) -> Arc<Buffer> {
    let file = Arc::new(vec![7; length + 64]);
    let start = file.as_ptr().align_offset(64);
    Buffer::constant(file, start..start + length, Access::CONSTANT).unwrap()
}

#[test]
fn what_a_program_passes_is_what_the_executable_gets() {
    for program in both() {
        let executable = program.load_kernels();
        let (input, output) = (aligned_constant(256), buffer(256));
        let request = Request {
            function: 1,
            workgroup_count: [2, 3, 4],
            constants: vec![-1, 5],
            bindings: vec![
                (input.clone().into(), 0, 256),
                (output.clone().into(), 64, 128),
                (output.clone().into(), 192, 0),
            ],
        };
        program.dispatch(&executable, &request).unwrap();

        let [seen] = &program.loader.last().seen()[..] else {
            panic!("one dispatch was made");
        };
        assert_eq!((seen.ordinal, seen.workgroup_count), (1, [2, 3, 4]));
        assert_eq!(
            (seen.tiles.clone(), &seen.constants[..]),
            (0..24, &[u32::MAX, 5][..])
        );
        let owner = |buffer: &Arc<Buffer>| Arc::as_ptr(buffer).addr();
        assert_eq!(
            seen.bindings[..2],
            [
                SeenBinding {
                    address: input.address(),
                    length: 256,
                    is_writable: false,
                    owner: owner(&input),
                },
                SeenBinding {
                    address: output.address() + 64,
                    length: 128,
                    is_writable: true,
                    owner: owner(&output),
                },
            ]
        );
        assert_eq!(
            (seen.bindings[2].length, seen.bindings[2].owner),
            (0, owner(&output))
        );
        let written = output.to_vec();
        assert!(
            written[..64]
                .iter()
                .chain(&written[192..])
                .all(|byte| *byte == 0)
        );
        assert!(written[64..192].iter().all(|byte| *byte == 1));
    }
}

#[test]
fn a_buffer_may_be_bound_more_than_once() {
    for program in both() {
        let executable = program.load_kernels();
        let shared = buffer(16);
        let binding = (Ref::from(shared.clone()), 0, 16);
        let request = Request {
            bindings: vec![binding.clone(), binding],
            ..Request::default()
        };
        program.dispatch(&executable, &request).unwrap();
        assert_eq!(shared.to_vec(), [2; 16]);
    }
}

#[test]
fn a_kernel_may_write_where_a_program_may_not() {
    let program = Program::new(1, false);
    let executable = program.load_kernels();
    let input = Buffer::copied_from(&[1; 8], Access::HOST_CONSTANT).unwrap();
    let request = Request {
        bindings: vec![(input.clone().into(), 0, 8)],
        ..Request::default()
    };
    program.dispatch(&executable, &request).unwrap();
    assert_eq!(input.to_vec(), [2; 8]);
}

#[test]
fn a_workgroup_count_of_zero_is_no_error() {
    for program in both() {
        let executable = program.load_kernels();
        let output = buffer(8);
        for workgroup_count in [[0, 1, 1], [1, 0, 1], [1, 1, 0]] {
            let bindings = vec![(output.clone().into(), 0, 8)];
            let request = Request {
                workgroup_count,
                bindings,
                ..Request::default()
            };
            program.dispatch(&executable, &request).unwrap();
        }
        assert!(
            program
                .loader
                .last()
                .seen()
                .iter()
                .all(|seen| seen.tiles.is_empty())
        );
    }
}

#[test]
fn l7_workgroup_counts_are_never_cut() {
    for program in both() {
        let executable = program.load_kernels();
        for z in [65536, 65537, i32::MAX] {
            let request = Request {
                workgroup_count: [1, 1, z],
                ..Request::default()
            };
            check_failure(
                program.dispatch(&executable, &request),
                StatusCode::OUT_OF_RANGE,
                &format!(
                    "workgroup count {z} of function `any` in z is out of range: the limit is 65535"
                ),
            );
        }
        for [x, y, z] in [[-1, 1, 1], [1, i32::MIN, 1], [1, 1, -1], [i32::MIN; 3]] {
            let request = Request {
                workgroup_count: [x, y, z],
                ..Request::default()
            };
            check_failure(
                program.dispatch(&executable, &request),
                StatusCode::OUT_OF_RANGE,
                &format!("workgroup counts [{x}, {y}, {z}] are out of range: none may be negative"),
            );
        }
        assert!(program.loader.last().seen().is_empty());
    }
}

#[test]
fn a_function_that_does_not_exist_is_out_of_range() {
    for program in both() {
        let executable = program.load_kernels();
        for function in [3, 5, i64::from(i32::MAX), -1, i64::from(i32::MIN)] {
            check_failure(
                program.dispatch(
                    &executable,
                    &Request {
                        function,
                        ..Request::default()
                    },
                ),
                StatusCode::OUT_OF_RANGE,
                &format!(
                    "function id {} is out of range: the executable has 3 functions",
                    function.cast_unsigned()
                ),
            );
        }
    }
    let program = Program::new(1, false);
    let executable = program.load_kernels();
    for function in [1 << 32, i64::MIN, i64::MAX] {
        let trap = program
            .dispatch(
                &executable,
                &Request {
                    function,
                    ..Request::default()
                },
            )
            .unwrap_err();
        assert_eq!(trap.code(), StatusCode::OUT_OF_RANGE);
    }
}

#[test]
fn constants_and_bindings_are_as_many_as_the_function_takes() {
    for program in both() {
        let executable = program.load_kernels();
        let binding = (Ref::from(buffer(64)), 0, 64);
        let request = |constants, bindings| Request {
            function: 1,
            constants: vec![0; constants],
            bindings: vec![binding.clone(); bindings],
            ..Request::default()
        };
        assert!(program.dispatch(&executable, &request(2, 3)).is_ok());
        check_failure(
            program.dispatch(&executable, &request(2, 2)),
            INVALID,
            "function `strict` takes 3 bindings, not 2",
        );
        check_failure(
            program.dispatch(&executable, &request(2, 4)),
            INVALID,
            "function `strict` takes 3 bindings, not 4",
        );
        check_failure(
            program.dispatch(&executable, &request(3, 3)),
            INVALID,
            "function `strict` takes 2 constants, not 3",
        );
    }
}

#[test]
fn c7_the_most_bindings_are_those_of_the_abi() {
    for program in both() {
        let executable = program.load_kernels();
        let binding = (Ref::from(buffer(4)), 0, 4);
        for count in [32, 33, 64] {
            let bindings = vec![binding.clone(); count];
            program
                .dispatch(
                    &executable,
                    &Request {
                        bindings,
                        ..Request::default()
                    },
                )
                .unwrap();
        }
        let bindings = vec![binding.clone(); 65];
        check_failure(
            program.dispatch(
                &executable,
                &Request {
                    bindings,
                    ..Request::default()
                },
            ),
            StatusCode::RESOURCE_EXHAUSTED,
            "too many bindings: 65 were passed, the limit is 64",
        );
    }
}

#[test]
fn c8_a_binding_lies_in_its_buffer() {
    for program in both() {
        let executable = program.load_kernels();
        let small = Ref::from(buffer(16));
        for (offset, length) in [
            (0, 32),
            (17, 0),
            (0, -1),
            (-4, 16),
            (-1, 1),
            (i64::MIN, 0),
            (16, i64::MAX),
            (1 << 32, 1),
            (0, 1 << 32),
        ] {
            let bindings = vec![(small.clone(), 0, 16), (small.clone(), offset, length)];
            check_failure(
                program.dispatch(
                    &executable,
                    &Request {
                        bindings,
                        ..Request::default()
                    },
                ),
                StatusCode::OUT_OF_RANGE,
                &format!(
                    "out-of-bounds access detected (offset={}, length={}, alignment=1, \
                     buffer length=16) (binding 1)",
                    offset.cast_unsigned(),
                    length.cast_unsigned()
                ),
            );
        }
        assert!(program.loader.last().seen().is_empty());
    }
}

#[test]
fn a_binding_that_kernels_cannot_use_is_refused() {
    for program in both() {
        let executable = program.load_kernels();
        let memory = buffer(256);
        let aligned = (Ref::from(memory.clone()), 64, 64);
        let request = Request {
            function: 1,
            constants: vec![0; 2],
            bindings: vec![aligned.clone(), (memory.clone().into(), 1, 64), aligned],
            ..Request::default()
        };
        check_failure(
            program.dispatch(&executable, &request),
            INVALID,
            &format!(
                "binding 1 of function `strict` is at address {:#x}, \
                 which is not a multiple of 64 as compiled kernels assume",
                memory.address() + 1
            ),
        );
    }
}

#[test]
fn null_and_refs_of_other_types_are_refused() {
    for program in both() {
        let executable = program.load_kernels();
        let memory = Ref::from(buffer(16));
        let with = |binding: &Ref| Request {
            bindings: vec![(memory.clone(), 0, 16), (binding.clone(), 0, 16)],
            ..Request::default()
        };
        check_failure(
            program.dispatch(&executable, &with(&Ref::Null)),
            INVALID,
            "ref is null; expected vm.buffer (binding 1)",
        );
        check_failure(
            program.dispatch(&executable, &with(&executable)),
            INVALID,
            "ref type mismatch; expected vm.buffer but have hal.executable (binding 1)",
        );
        check_failure(
            program.dispatch(&Ref::Null, &with(&memory)),
            INVALID,
            "ref is null; expected hal.executable",
        );
        check_failure(
            program.dispatch(&memory, &with(&memory)),
            INVALID,
            "ref type mismatch; expected hal.executable but have vm.buffer",
        );
    }
}

#[test]
fn a_failing_kernel_fails_the_call_with_its_code_and_cause() {
    for program in both() {
        let executable = program.load_kernels();
        for (code, expected) in [
            (15, StatusCode::DATA_LOSS),
            (0, StatusCode::INTERNAL),
            (17, StatusCode::INTERNAL),
        ] {
            let request = Request {
                function: 2,
                constants: vec![code],
                ..Request::default()
            };
            let trap = program.dispatch(&executable, &request).unwrap_err();
            assert_eq!(
                (trap.code(), trap.message()),
                (expected, "function `failing` failed")
            );
            assert_eq!(
                trap.source().unwrap().to_string(),
                "the kernel is out of tea"
            );
        }
    }
}

/// Calls a dispatch function of the module with a block that no caller should pass.
fn call_with(context: &Context, words: &[u32], refs: &[Ref]) -> Trap {
    let function = context.lookup("hal_loader", "executable.dispatch").unwrap();
    let block = ArgumentBlock::new(words, refs);
    context
        .call(
            &function,
            block,
            &mut Results::new(),
            InvocationOptions::default(),
        )
        .unwrap_err()
}

#[test]
fn l6_a_block_that_is_no_dispatch_is_refused() {
    let dispatcher = Arc::new(hal_local::InlineDispatcher::new());
    let module = vm_hal_loader::module(hal_local::LoaderRegistry::new(), dispatcher);
    let context = Context::builder().module(module).build().unwrap();
    for length in 0..16 {
        let trap = call_with(&context, &vec![0; length], &[]);
        assert_eq!(trap.code(), INVALID, "{trap}");
    }
    for count in [0x3FFF_FFFF, u32::MAX, 0x8000_0000] {
        let mut words = [0; 16];
        words[9] = count;
        let trap = call_with(&context, &words, &[]);
        assert!(
            trap.message()
                .starts_with("argument/result signature mismatch"),
            "{trap}"
        );
    }
    // A block of the right shape that names a ref it does not have.
    let mut words = [0; 12];
    words[0] = 7;
    let trap = call_with(&context, &words[..11], &[Ref::Null]);
    assert_eq!(
        (trap.code(), trap.message()),
        (INVALID, "argument block names ref 7 of 1")
    );
}
