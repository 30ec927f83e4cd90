//! One model in one small static binary: a module with native kernels (embedded ELF) is loaded and run.
//!
//! How it is built, how large it is and what it is made of: `docs/footprint.md`.
//!
//! ```console
//! $ cargo run --quiet --package minimal
//! [10.0, 40.0, 90.0, 160.0]
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(unsafe_code, reason = "kernels are foreign code")]

use std::error::Error;

use halite::{Program, Session, Tensor, Trust};

/// Compiled for x86-64.
const MODULE: &[u8] = include_bytes!("../../../tests/fixtures/3.13.0/llvm-cpu/mul.vmfb");

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: a released compiler made the module, and it is called with the shapes that it was compiled for.
    let trust = unsafe { Trust::native_code() };
    let session = Session::builder()
        .program(Program::from_bytes(MODULE)?)
        .native_code(trust)
        .build()?;

    let left = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?;
    let right = Tensor::from_slice(&[4], &[10f32, 20.0, 30.0, 40.0])?;
    let results = session.invoke("mul", &[left.into(), right.into()])?;
    let product = results[0].as_tensor().ok_or("not a tensor")?;
    println!("{:?}", product.to_vec::<f32>()?);
    Ok(())
}
