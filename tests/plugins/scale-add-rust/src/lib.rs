//! Sample plugin: `lab_scale_add`, which computes `c[i] = a[i] * 10 + b[i]`.
//!
//! The same source is a shared library and, without the feature `std`, a freestanding image.
//! `tests/plugins/README.md` has the build commands.

#![no_std]

use core::ffi::CStr;

use hal_plugin_sdk::{
    Call, ConstPtr, LoadContext, MutPtr, Plugin, StatusCode, export_plugin, parameter_block,
};

#[cfg(not(feature = "std"))]
hal_plugin_sdk::freestanding!();

struct ScaleAdd;

impl Plugin for ScaleAdd {
    const NAME: &'static CStr = c"scale_add_rust";
    const DESCRIPTION: &'static CStr = c"lab_scale_add: c[i] = a[i] * 10 + b[i]";

    fn load(_: &LoadContext<'_>) -> Result<Self, StatusCode> {
        Ok(Self)
    }
}

parameter_block! {
    /// `(memref<f32>, index, memref<f32>, index, memref<f32>, index, index)` with bare pointers.
    struct ScaleAddBlock {
        a: ConstPtr<f32>,
        a_offset: usize,
        b: ConstPtr<f32>,
        b_offset: usize,
        c: MutPtr<f32>,
        c_offset: usize,
        len: usize,
    }
}

fn scale_add(_: &ScaleAdd, call: &mut Call<'_, ScaleAddBlock>) -> Result<(), StatusCode> {
    let block = *call.params();
    let a = call.slice(block.a, block.a_offset, block.len)?;
    let b = call.slice(block.b, block.b_offset, block.len)?;
    let c = call.slice_mut(block.c, block.c_offset, block.len)?;
    for ((c, a), b) in c.iter_mut().zip(a).zip(b) {
        *c = a * 10.0 + b;
    }
    Ok(())
}

export_plugin! {
    ScaleAdd {
        // Promise: kernels pass `len` elements behind each pointer, and workgroups write disjoint
        // parts of `c`.
        unsafe "lab_scale_add" => scale_add,
    }
}
