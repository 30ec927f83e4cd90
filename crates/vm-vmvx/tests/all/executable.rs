//! Portable executables: loading, dispatching and what is refused.

use std::error::Error as _;
use std::num::NonZero;
use std::sync::Arc;

use hal_local::{
    Binding, Dispatch, DispatchError, Dispatcher, Executable, ExecutableData, ExecutableLoader,
    ExecutableParams, InlineDispatcher, LoadError, PoolDispatcher, StatusCode,
};
use vm::{Access, Buffer};
use vm_vmvx::VmvxLoader;

const KERNELS: &[u8] = include_bytes!("../fixtures/kernels.vmfb");
const CONSTANTS: &[u8] = include_bytes!("../fixtures/constants.vmfb");
const WRONG_CONVENTION: &[u8] = include_bytes!("../fixtures/wrong_convention.vmfb");
const UNKNOWN_IMPORT: &[u8] = include_bytes!("../fixtures/unknown_import.vmfb");

fn load(payload: &[u8], constants: &[u32]) -> Result<Arc<dyn Executable>, LoadError> {
    let data = ExecutableData::copy_of(payload);
    VmvxLoader::new().try_load(&ExecutableParams {
        format: "vmvx-bytecode-fb",
        data,
        constants,
    })
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn dispatch(
    executable: &dyn Executable,
    dispatcher: &dyn Dispatcher,
    name: &str,
    count: [u32; 3],
    constants: &[u32],
    buffer: &Arc<Buffer>,
) -> Result<(), DispatchError> {
    let ordinal = executable.lookup(name.as_bytes()).unwrap();
    let bindings = match buffer.as_shared() {
        Some(bytes) => [Binding::shared(bytes, Some(buffer))],
        None => [Binding::read_only(
            buffer.as_constant().unwrap(),
            Some(buffer),
        )],
    };
    let dispatch = Dispatch::new(executable, ordinal.into(), count, constants, &bindings)?;
    dispatcher.dispatch(executable, &dispatch)
}

fn words(buffer: &Buffer) -> Vec<u32> {
    let bytes = buffer.to_vec();
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|chunk| u32::from_le_bytes(*chunk))
        .collect()
}

#[test]
fn every_workgroup_runs_once_on_one_thread_and_on_several() {
    let executable = load(KERNELS, &[]).unwrap();
    let pool = PoolDispatcher::new(NonZero::new(3).unwrap()).unwrap();
    let dispatchers: [&dyn Dispatcher; 2] = [&InlineDispatcher::default(), &pool];
    for dispatcher in dispatchers {
        let buffer = Buffer::allocate(4 * 600, 0).unwrap();
        dispatch(
            &*executable,
            dispatcher,
            "add_id",
            [20, 30, 1],
            &[1000],
            &buffer,
        )
        .unwrap();
        assert_eq!(words(&buffer), (1000..1600).collect::<Vec<u32>>());
    }
}

#[test]
fn the_cause_of_a_failing_kernel_is_kept() {
    let executable = load(KERNELS, &[]).unwrap();
    let buffer = Buffer::allocate(4, 0).unwrap();
    let error = dispatch(
        &*executable,
        &InlineDispatcher::default(),
        "fail_at_one",
        [3, 1, 1],
        &[],
        &buffer,
    )
    .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::ALREADY_EXISTS);
    let trap = error.source().unwrap().downcast_ref::<vm::Trap>().unwrap();
    assert_eq!(trap.message(), "boom");
    assert_eq!(trap.frames()[0].function, "fail_at_one");
}

#[test]
fn a_kernel_that_leaves_its_binding_fails_and_so_does_one_that_lacks_a_constant() {
    let executable = load(KERNELS, &[]).unwrap();
    let small = Buffer::allocate(8, 0).unwrap();
    for (count, constants) in [([3, 1, 1], &[0u32][..]), ([1, 1, 1], &[])] {
        let error = dispatch(
            &*executable,
            &InlineDispatcher::default(),
            "add_id",
            count,
            constants,
            &small,
        )
        .unwrap_err();
        assert_eq!(error.status_code(), StatusCode::OUT_OF_RANGE);
    }
}

#[test]
fn a_binding_that_is_constant_stays_constant() {
    let executable = load(KERNELS, &[]).unwrap();
    let constant = Buffer::constant(Arc::new([0u8; 8]), 0..8, Access::CONSTANT).unwrap();
    let error = dispatch(
        &*executable,
        &InlineDispatcher::default(),
        "add_id",
        [1, 1, 1],
        &[1],
        &constant,
    )
    .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::PERMISSION_DENIED);
}

#[test]
fn constants_reach_the_executable_and_are_checked() {
    let executable = load(CONSTANTS, &[7, 42]).unwrap();
    let buffer = Buffer::allocate(4, 0).unwrap();
    dispatch(
        &*executable,
        &InlineDispatcher::default(),
        "store",
        [1, 1, 1],
        &[],
        &buffer,
    )
    .unwrap();
    assert_eq!(words(&buffer), [42]);

    let missing = load(CONSTANTS, &[]).err().unwrap();
    assert!(chain(&missing).contains("requires executable-level constants but none were provided"));
    let unwanted = load(KERNELS, &[1, 2]).err().unwrap();
    assert!(
        chain(&unwanted).contains("no executable-level constants but 2 constants were provided")
    );
    // The constant the initializer reads is the second.
    assert_eq!(
        load(CONSTANTS, &[7]).err().unwrap().status_code(),
        StatusCode::OUT_OF_RANGE
    );
}

#[test]
fn a_payload_that_is_no_executable_is_refused_with_the_reason() {
    let error = load(WRONG_CONVENTION, &[]).err().unwrap();
    assert!(
        chain(&error).contains("expected '0rrriiiiiiiii_v' but got '0i_v'"),
        "{}",
        chain(&error)
    );
    let error = load(UNKNOWN_IMPORT, &[]).err().unwrap();
    assert!(!error.is_declined());
    assert!(chain(&error).contains("vmvx.conv.2d"), "{}", chain(&error));
    let error = load(b"not a module at all", &[]).err().unwrap();
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
}

#[test]
fn c9_an_executable_outlives_the_bytes_it_was_loaded_from() {
    let bytes: Arc<Vec<u8>> = Arc::new(KERNELS.to_vec());
    let data = ExecutableData::new(bytes.clone());
    let params = ExecutableParams {
        format: "vmvx-bytecode-fb",
        data,
        constants: &[],
    };
    let executable = VmvxLoader::new().try_load(&params).unwrap();
    drop((params, bytes));
    let buffer = Buffer::allocate(4, 0).unwrap();
    dispatch(
        &*executable,
        &InlineDispatcher::default(),
        "add_id",
        [1, 1, 1],
        &[5],
        &buffer,
    )
    .unwrap();
    assert_eq!(words(&buffer), [5]);
}

#[test]
fn another_format_is_left_to_other_loaders() {
    let data = ExecutableData::copy_of(KERNELS);
    let params = ExecutableParams {
        format: "embedded-elf-x86_64",
        data,
        constants: &[],
    };
    assert!(
        VmvxLoader::new()
            .try_load(&params)
            .err()
            .unwrap()
            .is_declined()
    );
    assert_eq!(
        VmvxLoader::new().infer_format(KERNELS).as_deref(),
        Some("vmvx-bytecode-fb")
    );
    assert_eq!(VmvxLoader::new().infer_format(b"\x7fELF"), None);
}

#[test]
fn a_kernel_that_is_interrupted_or_out_of_fuel_stops() {
    let handle = vm::InterruptHandle::default();
    let buffer = Buffer::allocate(4, 0).unwrap();
    let run = |loader: &VmvxLoader| {
        let data = ExecutableData::copy_of(KERNELS);
        let params = ExecutableParams {
            format: "vmvx-bytecode-fb",
            data,
            constants: &[],
        };
        let executable = loader.try_load(&params).unwrap();
        let interrupted = handle.clone();
        interrupted.interrupt();
        let outcome = dispatch(
            &*executable,
            &InlineDispatcher::default(),
            "add_id",
            [1, 1, 1],
            &[0],
            &buffer,
        );
        handle.reset();
        outcome.unwrap_err().status_code()
    };
    assert_eq!(
        run(&VmvxLoader::new().interrupt_handle(handle.clone())),
        StatusCode::CANCELLED
    );
    assert_eq!(run(&VmvxLoader::new().fuel_per_workgroup(5)), StatusCode(4));
}

#[test]
fn spoiled_payloads_are_refused_or_run_to_an_end() {
    let loader = VmvxLoader::new().fuel_per_workgroup(1000);
    for at in 0..KERNELS.len() {
        for change in [0x01, 0x80, 0xFF] {
            let mut payload = KERNELS.to_vec();
            payload[at] ^= change;
            let data = ExecutableData::copy_of(&payload);
            let params = ExecutableParams {
                format: "vmvx-bytecode-fb",
                data,
                constants: &[],
            };
            let Ok(executable) = loader.try_load(&params) else {
                continue;
            };
            let buffer = Buffer::allocate(64, 0).unwrap();
            let bindings = [Binding::shared(buffer.as_shared().unwrap(), Some(&buffer))];
            for id in 0..executable.export_count() as u64 {
                if let Ok(dispatch) = Dispatch::new(&*executable, id, [2, 1, 1], &[1], &bindings) {
                    let _ = InlineDispatcher::default().dispatch(&*executable, &dispatch);
                }
            }
        }
    }
}
