//! A program inside an application: the module is part of the binary, and one session calls it again and again.
//!
//! ```console
//! $ cargo run --quiet --package halite --example embed
//! mul: tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
//! [2.0, 4.0, 6.0, 8.0]
//! [3.0, 6.0, 9.0, 12.0]
//! error: the function `mul` takes tensor<4xf32> as argument 1 (input1), given is tensor<2xf32>
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use halite::{Program, Session, Tensor};

/// Compiled with portable kernels (`vmvx`), so that it runs on any machine and needs no trust.
const MODULE: &[u8] = include_bytes!("../../../tests/fixtures/3.13.0/vmvx/mul.vmfb");

fn main() -> Result<(), Box<dyn Error>> {
    let program = Program::from_bytes(MODULE)?;
    let session = Session::builder().program(program).build()?;

    // Looking a function up once is cheaper than calling it by name.
    let mul = session.function("mul")?;
    let signature = mul.signature().ok_or("the compiler kept no signature")?;
    let types = |list: &[halite::Declared]| {
        let names: Vec<&str> = list.iter().map(|item| item.type_name.as_str()).collect();
        names.join(", ")
    };
    println!(
        "mul: {} -> {}",
        types(&signature.inputs),
        types(&signature.outputs)
    );

    let input = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?;
    for factor in [2f32, 3.0] {
        let factor = Tensor::from_slice(&[4], &[factor; 4])?;
        let mut results = mul.invoke(&[input.clone().into(), factor.into()])?;
        let product = Tensor::try_from(results.remove(0)).map_err(|_| "not a tensor")?;
        // Nobody else has this tensor: its elements can be used where they are.
        let mut product = product.into_exclusive().map_err(|_| "a shared tensor")?;
        println!("{:?}", product.as_mut_slice::<f32>()?);
    }

    // Arguments are compared with the declaration before anything runs.
    let short = Tensor::from_slice(&[2], &[1f32, 2.0])?;
    if let Err(error) = mul.invoke(&[input.into(), short.into()]) {
        println!("error: {error}");
    }
    Ok(())
}
