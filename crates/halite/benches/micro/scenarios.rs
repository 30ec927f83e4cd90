//! The scenarios: a name, and how to make something that can be called any number of times.
//!
//! Those that run in the VM are loops of the program `micro` (`tests/bench/micro.mlir`): one call runs one loop, and
//! what it costs includes the loop itself, which the scenario `loop` measures alone.

use std::convert::Infallible;
use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use hal_local::{
    Binding, DispatchRequest, DispatchRequestError, DispatchSite, ExecutableData, ExecutableHandle,
    ExecutableParams, InlineDispatcher,
};
use halite::{Program, Session, Tensor, Trust, Value};
use vm::Buffer;

use crate::workbench::{self, Workbench};

/// Runs what was prepared this many times.
pub(crate) type Run = Box<dyn FnMut(u64) -> Result<(), Box<dyn Error>>>;

/// Something to measure.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    /// Makes what the scenario needs, and runs it once.
    pub(crate) prepare: fn() -> Result<Run, Box<dyn Error>>,
}

/// Writes a row of the table: a name and an expression of type `Result<Run, _>`.
macro_rules! scenarios {
    ($($name:literal => $prepare:expr,)*) => {
        &[$(Scenario { name: $name, prepare: || checked($prepare) },)*]
    };
}

/// All scenarios.
pub(crate) const SCENARIOS: &[Scenario] = scenarios! {
    "load" => load(),
    "inline_c0_b0" => inline("c0_b0", 0, 0, 1),
    "inline_c0_b3" => inline("c0_b3", 0, 3, 1),
    "inline_c0_b16" => inline("c0_b16", 0, 16, 1),
    "inline_c16_b3" => inline("c16_b3", 16, 3, 1),
    "inline_c0_b3_w1000" => inline("c0_b3", 0, 3, 1000),
    "loop" => vm_loop(Workbench::new()?, "count"),
    "loop_compiled_1000" => compiled_loop(),
    "call_internal" => vm_loop(Workbench::new()?, "call_internal"),
    "call_import" => vm_loop(Workbench::new()?, "call_import"),
    "allocate" => vm_loop(Workbench::new()?, "allocate"),
    "lookup" => lookup(Workbench::new()?, "lookup", "kernels"),
    "lookup_of_1024" => lookup(Workbench::new()?, "lookup_of_many", "many"),
    "dispatch_c0_b0" => dispatch(Workbench::new()?, "dispatch_c0_b0", "c0_b0", 1),
    "dispatch_c0_b3" => dispatch(Workbench::new()?, "dispatch_c0_b3", "c0_b3", 1),
    "dispatch_c0_b16" => dispatch(Workbench::new()?, "dispatch_c0_b16", "c0_b16", 1),
    "dispatch_c16_b3" => dispatch(Workbench::new()?, "dispatch_c16_b3", "c16_b3", 1),
    "dispatch_c0_b3_w1000" => dispatch(Workbench::new()?, "dispatch_c0_b3", "c0_b3", 1000),
    "dispatch_import" => dispatch(Workbench::new()?, "dispatch_c0_b3", "import", 1),
    "invoke_empty" => invoke_empty(Workbench::new()?),
    "invoke_mul4" => invoke("mul4.inline.vmfb", 4),
    "invoke_chain32" => invoke("chain32.inline.vmfb", 64),
    "crowded_call_import" => vm_loop(Workbench::crowded()?, "call_import"),
    "crowded_lookup" => lookup(Workbench::crowded()?, "lookup", "kernels"),
    "crowded_dispatch" => dispatch(Workbench::crowded()?, "dispatch_c0_b3", "c0_b3", 1),
    "crowded_dispatch_import" => dispatch(Workbench::crowded()?, "dispatch_c0_b3", "import", 1),
    "crowded_invoke_empty" => invoke_empty(Workbench::crowded()?),
};

/// Runs once what was prepared, so that it fails here if it fails.
fn checked(run: Result<Run, Box<dyn Error>>) -> Result<Run, Box<dyn Error>> {
    let mut run = run?;
    run(1)?;
    Ok(run)
}

/// Loads and releases an embedded executable.
fn load() -> Result<Run, Box<dyn Error>> {
    let file = workbench::data("../../crates/hal-local/tests/fixtures/mul_3_13_0.embedded.so");
    let data = ExecutableData::from(std::fs::read(file)?);
    let loaders = workbench::embedded_loader();
    let format = "embedded-elf-x86_64";
    Ok(Box::new(move |calls| {
        for _ in 0..calls {
            let data = data.clone();
            black_box(loaders.load(&ExecutableParams {
                format,
                data,
                constants: &[],
            })?);
        }
        Ok(())
    }))
}

/// Dispatches a kernel that does nothing, without the VM.
fn inline(
    kernel: &'static str,
    constants: usize,
    bindings: usize,
    workgroups: u32,
) -> Result<Run, Box<dyn Error>> {
    let memory = Buffer::allocate(64, 64)?;
    let executable = ExecutableHandle::new(workbench::executable("kernels")?);
    let mut site = DispatchSite::new(Arc::new(InlineDispatcher::new()));
    let constants = vec![1; constants];
    Ok(Box::new(move |calls| {
        let bytes = memory.as_shared().ok_or("the memory is constant")?;
        let binding = Binding::shared(bytes, None);
        let bindings = vec![binding; bindings];
        let function = executable.executable().lookup(kernel.as_bytes())?.into();
        let request = DispatchRequest {
            executable: &executable,
            function,
            workgroup_count: [workgroups, 1, 1],
            constants: &constants,
        };
        for _ in 0..calls {
            let request = black_box(request);
            if let Some(outcome) = site.repeat(request, bindings.iter().copied().map(Some)) {
                outcome?;
                continue;
            }
            match site.dispatch(request, bindings.iter().copied().map(Ok::<_, Infallible>)) {
                Err(DispatchRequestError::Dispatch(error)) => return Err(error.into()),
                Err(DispatchRequestError::Binding { error, .. }) => match error {},
                Ok(()) => {}
            }
        }
        Ok(())
    }))
}

/// Runs a loop of the program that takes nothing but its length.
fn vm_loop(workbench: Workbench, function: &'static str) -> Result<Run, Box<dyn Error>> {
    loop_with(workbench, function, Vec::new())
}

/// Runs 1000 turns of the empty loop when it is machine code already.
fn compiled_loop() -> Result<Run, Box<dyn Error>> {
    const TURNS: u64 = 1000;
    const TURNS_UNTIL_HOT: u64 = 20_000;
    let mut run = vm_loop(Workbench::compiling()?, "count")?;
    run(TURNS_UNTIL_HOT)?;
    Ok(Box::new(move |calls| run(TURNS * calls)))
}

/// Looks a function of a library up by its name, in the VM.
fn lookup(
    workbench: Workbench,
    function: &'static str,
    library: &str,
) -> Result<Run, Box<dyn Error>> {
    let arguments = vec![workbench.load(library)?];
    loop_with(workbench, function, arguments)
}

/// Dispatches a kernel that does nothing, in the VM.
fn dispatch(
    workbench: Workbench,
    function: &'static str,
    kernel: &str,
    workgroups: i32,
) -> Result<Run, Box<dyn Error>> {
    let ordinal = workbench::executable("kernels")?.lookup(kernel.as_bytes())?;
    let arguments = vec![
        workbench.load("kernels")?,
        Value::I64(ordinal.into()),
        Value::I32(workgroups),
        Value::Buffer(Buffer::allocate(64, 64)?),
    ];
    loop_with(workbench, function, arguments)
}

/// Runs a loop of the program with arguments after its length.
fn loop_with(
    workbench: Workbench,
    function: &'static str,
    arguments: Vec<Value>,
) -> Result<Run, Box<dyn Error>> {
    let mut arguments = arguments;
    arguments.insert(0, Value::I32(0));
    Ok(Box::new(move |calls| {
        let function = workbench.session().function(function)?;
        let mut left = calls;
        while left > 0 {
            let length = i32::try_from(left).unwrap_or(i32::MAX);
            arguments[0] = Value::I32(length);
            function.invoke(&arguments)?;
            left -= u64::from(length.unsigned_abs());
        }
        Ok(())
    }))
}

/// Calls a function that does nothing, from the application.
fn invoke_empty(workbench: Workbench) -> Result<Run, Box<dyn Error>> {
    Ok(Box::new(move |calls| {
        let function = workbench.session().function("empty")?;
        for _ in 0..calls {
            black_box(function.invoke(&[])?);
        }
        Ok(())
    }))
}

/// Calls a compiled program on two tensors, from the application.
fn invoke(program: &str, length: usize) -> Result<Run, Box<dyn Error>> {
    // SAFETY: the program is a file of this repository that the compiler made.
    let trust = unsafe { Trust::native_code() };
    let program = Program::open(workbench::data(program))?;
    let session = Session::builder()
        .program(program)
        .native_code(trust)
        .build()?;
    let tensor = Tensor::from_slice(&[length], &vec![0.01_f32; length])?;
    let arguments = [tensor.clone().into(), tensor.into()];
    Ok(Box::new(move |calls| {
        let function = session.function("main")?;
        for _ in 0..calls {
            black_box(function.invoke(&arguments)?);
        }
        Ok(())
    }))
}
