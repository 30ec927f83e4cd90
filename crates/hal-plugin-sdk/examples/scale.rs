//! A plugin in Rust, as a shared library: `demo_scale` multiplies numbers by a factor.
//!
//! [`docs/guide/plugins.md`](https://github.com/halite-rs/halite/blob/main/docs/guide/plugins.md) builds the same plugin
//! in a package of its own, with a program that calls it, and as a freestanding image.
//!
//! ```console
//! $ cargo build --quiet --release --package hal-plugin-sdk --example scale
//! $ halite plugin target/release/examples/libscale.so demo_scale
//! target/release/examples/libscale.so: plugin `scale`
//!   description     demo_scale: y[i] = factor * x[i]
//!   code            system library `target/release/examples/libscale.so`
//!   ABI             0.1
//!   features        none
//!   function        demo_scale: found
//! ```

use core::ffi::CStr;

use hal_plugin_sdk::{
    Call, ConstPtr, LoadContext, MutPtr, Plugin, StatusCode, export_plugin, parameter_block,
};

struct Scale;

impl Plugin for Scale {
    const NAME: &'static CStr = c"scale";
    const DESCRIPTION: &'static CStr = c"demo_scale: y[i] = factor * x[i]";

    fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
        Ok(Self)
    }
}

parameter_block! {
    /// `(memref<f32>, index, memref<f32>, index, index, f32)` with bare pointers.
    struct ScaleBlock {
        x: ConstPtr<f32>,
        x_offset: usize,
        y: MutPtr<f32>,
        y_offset: usize,
        len: usize,
        factor: f32,
    }
}

fn scale(_: &Scale, call: &mut Call<'_, ScaleBlock>) -> Result<(), StatusCode> {
    let block = *call.params();
    let x = call.slice(block.x, block.x_offset, block.len)?;
    let y = call.slice_mut(block.y, block.y_offset, block.len)?;
    y.iter_mut().zip(x).for_each(|(y, x)| *y = block.factor * x);
    Ok(())
}

export_plugin! {
    Scale {
        // Promise: kernels pass `len` elements behind both pointers, and each workgroup writes its own part of `y`.
        unsafe "demo_scale" => scale,
    }
}
