//! A VM module of the application's own, which a program imports, and memory of the application's own for a result.
//!
//! The program is `tests/fixtures/src/host.mlir`: it declares `func.func private @host.clamp(i32, i32, i32) -> i32`.
//!
//! ```console
//! $ cargo run --quiet --package halite --example custom_module
//! clamped(1000) = 255, after 1 call of host.clamp
//! clamped(-7) = 0, after 2 calls of host.clamp
//! the result is in the buffer that was given: [10.0, 20.0, 30.0, 40.0]
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use halite::{ElementType, NativeModule, Program, Session, Tensor, Value};

const MODULE: &[u8] = include_bytes!("../../../tests/fixtures/3.13.0/vmvx/host.vmfb");

fn main() -> Result<(), Box<dyn Error>> {
    let calls = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&calls);
    // The calling convention, (i32, i32, i32) -> i32, follows from the closure's types.
    let host = NativeModule::builder("host", 0)
        .function("clamp", move |_: &(), value: i32, low: i32, high: i32| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok((value.max(low).min(high),))
        })
        .build()?;
    let session = Session::builder()
        .program(Program::from_bytes(MODULE)?)
        .module(host)
        .build()?;

    for value in [1000, -7] {
        let results = session.invoke("clamped", &[Value::I32(value)])?;
        let [Value::I32(clamped)] = results[..] else {
            return Err("not a number".into());
        };
        let count = calls.load(Ordering::Relaxed);
        let calls = if count == 1 { "call" } else { "calls" };
        println!("clamped({value}) = {clamped}, after {count} {calls} of host.clamp");
    }

    // The last parameter of `mul_into` is `!hal.buffer {iree.abi.output = 0 : index}`: memory for the result.
    let output = Tensor::zeros(ElementType::F32, &[4])?;
    let left = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?;
    let right = Tensor::from_slice(&[4], &[10f32; 4])?;
    let storage = Value::Storage(Arc::clone(output.buffer()));
    session.invoke("mul_into", &[left.into(), right.into(), storage])?;
    println!(
        "the result is in the buffer that was given: {:?}",
        output.to_vec::<f32>()?
    );
    Ok(())
}
