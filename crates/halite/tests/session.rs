//! The facade on real programs: loading, linking, calling, and what goes wrong.

#![expect(
    clippy::unwrap_used,
    unsafe_code,
    reason = "helpers of tests may panic, and make the promise for the fixtures"
)]

use std::error::Error as _;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use halite::{
    Dispatcher, Error, InvocationOptions, NativeModule, Obstacle, PluginManager, PluginSpec,
    PoolDispatcher, Program, Session, StatusCode, Tensor, Trust, Value,
};
use vm::Dependency;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(path)
}

fn trust() -> Trust {
    // SAFETY: the tests run the committed fixtures, which released compilers made, on arguments of their shapes.
    unsafe { Trust::native_code() }
}

fn program(path: &str) -> Program {
    Program::open(fixture(path)).unwrap()
}

/// A session that may run native code where the fixtures' machine is this one.
fn session(path: &str) -> Session {
    Session::builder()
        .program(program(path))
        .native_code(trust())
        .build()
        .unwrap()
}

fn tensor(values: &[f32]) -> Value {
    Tensor::from_slice(&[values.len()], values).unwrap().into()
}

fn floats(value: &Value) -> Vec<f32> {
    value.as_tensor().unwrap().to_vec().unwrap()
}

const PORTABLE: &str = "3.13.0/vmvx/mul.vmfb";

fn portable() -> Session {
    Session::builder()
        .program(program(PORTABLE))
        .build()
        .unwrap()
}

#[test]
fn a_portable_program_needs_no_trust() {
    let results = portable().invoke("mul", &[tensor(&[1.0, 2.0, 3.0, 4.0]), tensor(&[10.0; 4])]);
    assert_eq!(floats(&results.unwrap()[0]), [10.0, 20.0, 30.0, 40.0]);
}

/// Interrupts a session at the moment that a kernel is about to run.
struct InterruptBefore(vm::InterruptHandle, halite::InlineDispatcher);

impl Dispatcher for InterruptBefore {
    fn dispatch(
        &self,
        executable: &dyn hal_local::Executable,
        dispatch: &hal_local::Dispatch<'_>,
    ) -> Result<(), hal_local::DispatchError> {
        self.0.interrupt();
        self.1.dispatch(executable, dispatch)
    }
}

#[test]
fn an_interrupt_stops_a_portable_kernel() {
    let handle = vm::InterruptHandle::default();
    let dispatcher = InterruptBefore(handle.clone(), halite::InlineDispatcher::new());
    let session = Session::builder()
        .program(program(PORTABLE))
        .interrupt_handle(handle.clone())
        .dispatcher(Arc::new(dispatcher))
        .build()
        .unwrap();
    let arguments = [tensor(&[1.0; 4]), tensor(&[1.0; 4])];
    let error = session.invoke("mul", &arguments).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::CANCELLED);
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    let stopped_in_the_kernel = causes
        .map(ToString::to_string)
        .any(|text| text.contains("mul_dispatch"));
    assert!(stopped_in_the_kernel, "{error:?}");
}

#[test]
fn a_native_program_needs_trust() {
    let native = program("3.13.0/llvm-cpu/mul.vmfb");
    let error = Session::builder().program(native).build().unwrap_err();
    assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
    let Error::Start {
        obstacle: Some(obstacle),
        ..
    } = &error
    else {
        panic!("{error:?}")
    };
    if cfg!(target_arch = "x86_64") {
        assert_eq!(*obstacle, Obstacle::NativeCodeNotAllowed);
        assert!(error.hint().unwrap().contains("native_code"));
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn native_programs_of_all_releases_run() {
    for path in [
        "2.9.0/llvm-cpu/mul.vmfb",
        "3.9.0/llvm-cpu-edited/mul.vmfb",
        "3.10.0/llvm-cpu-edited/mul.vmfb",
        "3.11.0/llvm-cpu-edited/mul.vmfb",
        "3.13.0/llvm-cpu/mul.vmfb",
        "3.13.0/llvm-cpu-system/mul.vmfb",
    ] {
        let session = session(path);
        let mul = session.function("mul").unwrap();
        for factor in [2.0, 3.0] {
            let results = mul
                .invoke(&[tensor(&[1.0, 2.0, 3.0, 4.0]), tensor(&[factor; 4])])
                .unwrap();
            assert_eq!(floats(&results[0])[3], 4.0 * factor, "{path}");
        }
    }
}

#[test]
fn kernels_for_another_machine_are_named() {
    if cfg!(target_arch = "aarch64") {
        return;
    }
    let foreign = program("3.13.0/llvm-cpu-aarch64/mul.vmfb");
    let error = Session::builder()
        .program(foreign)
        .native_code(trust())
        .build()
        .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
    let hint = error.hint().unwrap();
    assert!(
        hint.contains("kernels are for arm_64, this machine is"),
        "{hint}"
    );
}

#[test]
fn a_function_is_found_by_name_with_and_without_its_module() {
    let session = portable();
    assert_eq!(session.function("mul").unwrap().name(), "mul");
    assert_eq!(session.function("module.mul").unwrap().name(), "mul");
    assert_eq!(session.only_function().unwrap().name(), "mul");
    let error = session.function("mull").unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert_eq!(
        error.to_string(),
        "no function `mull` exported by module `module`"
    );
    assert_eq!(error.hint().unwrap(), "did you mean `mul`?");
    let error = session.function("attention").unwrap_err();
    assert_eq!(error.hint().unwrap(), "the module has the functions mul");
}

#[test]
fn the_declared_signature_is_there() {
    let session = portable();
    let mul = session.function("mul").unwrap();
    assert!(mul.declaration().unwrap().starts_with("sync func @mul("));
    let signature = mul.signature().unwrap();
    assert_eq!(signature.inputs[1].type_name, "tensor<4xf32>");
    assert_eq!(mul.parameters()[0].declared_type, Some("tensor<4xf32>"));
    assert_eq!(mul.convention().text(), "0rr_r");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let session = portable();
    let error = session.invoke("mul", &[tensor(&[1.0; 4])]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the function `mul` takes 2 arguments, 1 are given"
    );
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);

    let wrong: [(Value, &str); 4] = [
        (tensor(&[1.0; 5]), "tensor<5xf32>"),
        (
            Tensor::from_slice(&[4], &[1.0f64; 4]).unwrap().into(),
            "tensor<4xf64>",
        ),
        (Value::Null, "null"),
        (Value::I32(1), "i32"),
    ];
    for (argument, found) in wrong {
        let error = session
            .invoke("mul", &[tensor(&[1.0; 4]), argument])
            .unwrap_err();
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
        assert_eq!(
            error.to_string(),
            format!(
                "the function `mul` takes tensor<4xf32> as argument 1 (input1), given is {found}"
            )
        );
    }
}

#[test]
fn what_the_declaration_leaves_open_the_program_checks() {
    let session = portable();
    let view = halite::BufferView::new(
        halite::Buffer::allocate(20, 0).unwrap(),
        halite::ElementType::F32,
        halite::EncodingType::OPAQUE,
        &[5],
    );
    let opaque = Value::Opaque(view.unwrap().into());
    let error = session
        .invoke("mul", &[opaque, tensor(&[1.0; 4])])
        .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
    assert!(error.source().unwrap().to_string().contains("input0"));
}

fn check_calls_with_one_memory(session: &Session) {
    let function = session.function("mul").unwrap();
    let mut results = vec![Value::I32(7); 3];
    for factor in [2.0, 3.0, 4.0] {
        let arguments = [tensor(&[1.0, 2.0, 3.0, factor]), tensor(&[factor; 4])];
        function.invoke_into(&arguments, &mut results).unwrap();
        let expected = [1.0, 2.0, 3.0, factor].map(|value| value * factor);
        assert_eq!(floats(&results[0]), expected);
        assert_eq!(results.len(), 1);
        // What the last call gave is not in the way of this one.
        assert_eq!(floats(&function.invoke(&arguments).unwrap()[0]), expected);
    }
    let wrong = [tensor(&[1.0; 4]), tensor(&[1.0; 5])];
    assert!(function.invoke_into(&wrong, &mut results).is_err());
    assert!(results.is_empty());
    assert!(function.invoke_into(&[], &mut results).is_err());
}

#[test]
fn results_of_many_calls_take_the_memory_of_one() {
    check_calls_with_one_memory(&portable());
}

#[test]
#[cfg(target_arch = "x86_64")]
fn native_results_of_many_calls_take_the_memory_of_one() {
    // Dispatches by a function's id and by its ordinal.
    for path in ["3.13.0/llvm-cpu/mul.vmfb", "2.9.0/llvm-cpu/mul.vmfb"] {
        check_calls_with_one_memory(&session(path));
    }
}

#[test]
fn arguments_are_not_changed_and_can_be_used_again() {
    let session = portable();
    let left = tensor(&[1.0, 2.0, 3.0, 4.0]);
    for _ in 0..3 {
        let results = session
            .invoke("mul", &[left.clone(), left.clone()])
            .unwrap();
        assert_eq!(floats(&results[0]), [1.0, 4.0, 9.0, 16.0]);
    }
    assert_eq!(floats(&left), [1.0, 2.0, 3.0, 4.0]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn state_belongs_to_a_session() {
    let globals = program("3.13.0/llvm-cpu/globals.vmfb");
    let names: Vec<&str> = globals.function_names().collect();
    assert!(
        !names.is_empty() && names.iter().all(|name| !name.starts_with("__")),
        "{names:?}"
    );
    let new = || {
        Session::builder()
            .program(globals.clone())
            .native_code(trust())
            .build()
            .unwrap()
    };
    let (first, second) = (new(), new());
    let call = |session: &Session| match session
        .invoke(names[0], &arguments(session, names[0]))
        .unwrap()[0]
    {
        Value::I32(value) => value,
        ref other => panic!("{other:?}"),
    };
    let before = call(&first);
    assert_ne!(call(&first), before, "the program counts");
    assert_eq!(call(&second), before, "another session begins anew");
}

#[cfg(target_arch = "x86_64")]
fn arguments(session: &Session, name: &str) -> Vec<Value> {
    let function = session.function(name).unwrap();
    let items: Vec<String> = function
        .signature()
        .unwrap()
        .inputs
        .iter()
        .map(|declared| declared.example())
        .collect();
    halite::text::Inputs::new()
        .parse(&items, &function.parameters())
        .unwrap()
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_failing_program_tells_its_status_and_message() {
    let session = session("3.13.0/llvm-cpu/assert.vmfb");
    let function = session.only_function().unwrap();
    let error = function
        .invoke(&[tensor(&[1.0, 2.0, 3.0]), Value::I32(11)])
        .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::FAILED_PRECONDITION);
    let trap = error.source().unwrap().to_string();
    assert_eq!(trap, "FAILED_PRECONDITION: n must be < 10");
}

#[test]
fn fuel_limits_a_call() {
    let session = session("3.13.0/llvm-cpu/loop.vmfb");
    let function = session.only_function().unwrap();
    let options = InvocationOptions {
        fuel: Some(50),
        ..InvocationOptions::default()
    };
    let endless: Vec<Value> = function
        .parameters()
        .iter()
        .map(|_| Value::I32(i32::MAX))
        .collect();
    let error = function.invoke_with(&endless, options).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::DEADLINE_EXCEEDED);
}

#[test]
fn threads_give_the_same_results() {
    for threads in [0, 2, 3] {
        let session = Session::builder()
            .program(program(PORTABLE))
            .threads(threads)
            .build()
            .unwrap();
        let results = session
            .invoke("mul", &[tensor(&[2.0; 4]), tensor(&[4.0; 4])])
            .unwrap();
        assert_eq!(floats(&results[0]), [8.0; 4]);
    }
}

#[test]
fn what_is_no_program_is_named() {
    let error = Program::open("/nonexistent/model.vmfb").unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert!(error.to_string().contains("/nonexistent/model.vmfb"));

    let error = Program::from_bytes(b"\x93NUMPY\x01\0").unwrap_err();
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
    let cause = error.source().unwrap().source().unwrap().to_string();
    assert!(cause.contains("a NumPy array"), "{cause}");

    let mut damaged = fs::read(fixture(PORTABLE)).unwrap();
    damaged.truncate(damaged.len() / 2);
    assert!(Program::from_bytes(damaged).is_err());
}

#[test]
fn a_session_needs_a_program() {
    let error = Session::builder().build().unwrap_err();
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
}

#[test]
fn plugins_need_trust_and_must_exist() {
    let spec = PluginSpec::parse("/nonexistent/plugin.so").unwrap();
    let error = Session::builder()
        .program(program(PORTABLE))
        .plugin(spec.clone())
        .build()
        .unwrap_err();
    assert_eq!(error.status_code(), StatusCode::PERMISSION_DENIED);
    let builder = Session::builder()
        .program(program(PORTABLE))
        .native_code(trust());
    let error = builder.plugin(spec).build().unwrap_err();
    assert!(error.to_string().contains("/nonexistent/plugin.so"));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_missing_import_is_named() {
    let plugin = program("3.13.0/llvm-cpu/plugin.vmfb");
    let error = Session::builder()
        .program(plugin)
        .native_code(trust())
        .build()
        .unwrap_err();
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text += &format!("; {next}");
        cause = next.source();
    }
    assert!(text.contains("lab_scale_add"), "{text}");
}

#[test]
fn c11_another_signature_of_an_import_says_to_compile_again() {
    let names = [
        "buffer_view.buffer",
        "buffer_view.assert",
        "buffer_view.create",
        "buffer.storage",
        "buffer.allocate",
    ];
    let module = names
        .into_iter()
        .fold(NativeModule::builder("hal_inline", 0), |module, name| {
            module.function(name, |_: &(), argument: i32| Ok((argument,)))
        });
    let builder = Session::builder().module(module.build().unwrap());
    let error = builder
        .program(program("3.13.0/vmvx-inline/mul.vmfb"))
        .build()
        .unwrap_err();
    let text = error.source().unwrap().to_string();
    assert!(
        text.contains("signature mismatch") && text.contains("0i_i"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("compile it again"));
}

#[test]
fn c12_a_module_that_needs_a_newer_runtime_is_told_apart() {
    let module = NativeModule::builder("user", 0)
        .dependency(Dependency {
            name: "hal_loader".into(),
            minimum_version: 99,
            optional: false,
        })
        .build()
        .unwrap();
    let builder = Session::builder().module(module).program(program(PORTABLE));
    let error = builder.build().unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    let text = error.source().unwrap().to_string();
    assert!(
        text.contains("version mismatch") && text.contains("99"),
        "{text}"
    );
    assert!(error.hint().unwrap().contains("a newer compiler"));
}

#[test]
fn c13_an_unknown_bytecode_version_is_named() {
    let bytes = fs::read(fixture(PORTABLE)).unwrap();
    // The version is the only word of this value whose change the reader blames on the version.
    let version = 0x0011_0000u32.to_le_bytes();
    let places = bytes
        .windows(4)
        .enumerate()
        .filter(|(_, word)| *word == version);
    let texts = places.filter_map(|(offset, _)| {
        let mut newer = bytes.clone();
        newer[offset + 2] = 0x12;
        let error = Program::from_bytes(newer).err()?;
        Some(error.source()?.source()?.to_string())
    });
    let texts: Vec<String> = texts.collect();
    assert!(
        texts
            .iter()
            .any(|text| text.contains("bytecode version 18.0")),
        "{texts:?}"
    );
}

#[test]
fn sessions_move_between_threads() {
    let session = portable();
    let results = std::thread::spawn(move || {
        session
            .invoke("mul", &[tensor(&[2.0; 4]), tensor(&[4.0; 4])])
            .unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(floats(&results[0]), [8.0; 4]);
}

#[test]
fn sessions_on_many_threads_share_a_program_plugins_and_a_pool() {
    let program = program(PORTABLE);
    let plugins = PluginManager::new();
    let pool = PoolDispatcher::new(NonZero::new(2).unwrap()).unwrap();
    let pool: Arc<dyn Dispatcher> = Arc::new(pool);
    std::thread::scope(|scope| {
        for thread in 0..8u8 {
            let builder = Session::builder()
                .program(program.clone())
                .plugins(plugins.clone())
                .dispatcher(Arc::clone(&pool));
            scope.spawn(move || {
                let session = builder.build().unwrap();
                let factor = f32::from(thread);
                for _ in 0..20 {
                    let results = session.invoke("mul", &[tensor(&[3.0; 4]), tensor(&[factor; 4])]);
                    assert_eq!(floats(&results.unwrap()[0]), [3.0 * factor; 4]);
                }
            });
        }
    });
}

#[test]
fn a_program_may_lie_anywhere_in_memory() {
    let file = fs::read(fixture(PORTABLE)).unwrap();
    for offset in 0..3 {
        let bytes = [vec![0; offset], file.clone()].concat();
        let owner = SkipFirst(bytes, offset);
        let session = Session::builder().program(Program::from_bytes(owner).unwrap());
        let session = session.build().unwrap();
        let results = session.invoke("mul", &[tensor(&[2.0; 4]), tensor(&[4.0; 4])]);
        assert_eq!(floats(&results.unwrap()[0]), [8.0; 4]);
    }
}

/// Bytes without the first few.
struct SkipFirst(Vec<u8>, usize);

impl AsRef<[u8]> for SkipFirst {
    fn as_ref(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

/// A program that imports a function of the application and writes a result where it is told to.
fn host_program() -> Session {
    let clamp = |_: &(), value: i32, low: i32, high: i32| Ok((value.max(low).min(high),));
    let host = NativeModule::builder("host", 0).function("clamp", clamp);
    Session::builder()
        .program(program("3.13.0/vmvx/host.vmfb"))
        .module(host.build().unwrap())
        .build()
        .unwrap()
}

#[test]
fn a_program_calls_a_module_of_the_application() {
    let session = host_program();
    for (value, clamped) in [(-5, 0), (77, 77), (1000, 255)] {
        let results = session.invoke("clamped", &[Value::I32(value)]).unwrap();
        assert!(matches!(results[..], [Value::I32(found)] if found == clamped));
    }
    let alone = Session::builder().program(program("3.13.0/vmvx/host.vmfb"));
    let error = alone.build().unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert!(error.source().unwrap().to_string().contains("host"));
}

#[test]
fn a_result_is_written_to_memory_of_the_caller_again_and_again() {
    let session = host_program();
    let function = session.function("mul_into").unwrap();
    let output = Tensor::zeros(halite::ElementType::F32, &[4]).unwrap();
    let storage = Value::Storage(Arc::clone(output.buffer()));
    for factor in [2.0, 3.0] {
        let arguments = [
            tensor(&[1.0, 2.0, 3.0, 4.0]),
            tensor(&[factor; 4]),
            storage.clone(),
        ];
        let results = function.invoke(&arguments).unwrap();
        let result = results[0].as_tensor().unwrap();
        assert!(Arc::ptr_eq(result.buffer(), output.buffer()));
        assert_eq!(output.to_vec::<f32>().unwrap()[3], 4.0 * factor);
    }
}

#[test]
fn the_memory_of_a_dropped_result_is_used_again() {
    let session = portable();
    let mul = session.function("mul").unwrap();
    let arguments = [tensor(&[2.0; 4]), tensor(&[4.0; 4])];
    let address = || {
        let results = mul.invoke(&arguments).unwrap();
        results[0].as_tensor().unwrap().buffer().address()
    };
    assert_eq!(address(), address());
}

#[test]
fn a_result_is_read_without_a_copy() {
    let session = portable();
    let mut results = session
        .invoke("mul", &[tensor(&[2.0; 4]), tensor(&[4.0; 4])])
        .unwrap();
    let result = Tensor::try_from(results.remove(0)).unwrap();
    let address = result.buffer().address();
    let mut result = result.into_exclusive().unwrap();
    let floats: &mut [f32] = result.as_mut_slice().unwrap();
    assert_eq!(floats, [8.0; 4]);
    assert_eq!(floats.as_ptr().addr(), address);
}

#[test]
fn arguments_in_memory_of_the_caller_are_not_copied() {
    #[repr(align(64))]
    struct Input([f32; 4]);
    impl AsRef<[f32]> for Input {
        fn as_ref(&self) -> &[f32] {
            &self.0
        }
    }
    static INPUT: Input = Input([1.0, 2.0, 3.0, 4.0]);
    let input = Tensor::from_owner(&[4], &INPUT).unwrap();
    assert_eq!(input.buffer().address(), INPUT.0.as_ptr().addr());
    let results = portable().invoke("mul", &[input.clone().into(), input.into()]);
    assert_eq!(floats(&results.unwrap()[0]), [1.0, 4.0, 9.0, 16.0]);
}
