//! The `vmvx` module: the functions that portable kernels import.
//!
//! Version 0 and the same 32 exports in every release of IREE (`docs/vmvx.md`, section "Exports").

use std::sync::Arc;

use vm::{Call, Module, NativeModule, NativeModuleBuilder, Result, Trap};

use crate::kernels::{elementwise as e, mmt4d, pack};

const UNARY: &str = "0rIIIrIIIII_v";
const BINARY: &str = "0rIIIrIIIrIIIII_v";

/// Returns the `vmvx` module. Contexts may share it; it has no state.
///
/// # Panics
/// Never: the names and calling conventions are constants that a test builds.
#[must_use]
pub fn vmvx_module() -> Arc<dyn Module> {
    let builder = NativeModule::builder("vmvx", 0);
    let builder = matrices(floats(integers(copies(builder))));
    builder
        .build()
        .unwrap_or_else(|error| unreachable!("the exports are constants: {error}"))
}

type Builder = NativeModuleBuilder<()>;

fn add(
    builder: Builder,
    name: &str,
    convention: &str,
    function: fn(&mut Call<'_, '_>) -> Result<()>,
) -> Builder {
    builder.raw_function(name, convention, move |(), call| function(call))
}

fn copies(builder: Builder) -> Builder {
    let builder = add(builder, "copy.2d.x8", UNARY, |call| {
        e::unary(call, |value: u8| value)
    });
    let builder = add(builder, "copy.2d.x16", UNARY, |call| {
        e::unary(call, |value: u16| value)
    });
    let builder = add(builder, "copy.2d.x32", UNARY, |call| {
        e::unary(call, |value: u32| value)
    });
    let builder = add(builder, "copy.2d.x64", UNARY, |call| {
        e::unary(call, |value: u64| value)
    });
    add(builder, "fill.2d.x32", "0irIIII_v", e::fill)
}

/// Integer functions; shift amounts are taken modulo 32.
fn integers(builder: Builder) -> Builder {
    let builder = add(builder, "add.2d.i32", BINARY, |call| {
        e::binary(call, u32::wrapping_add)
    });
    let builder = add(builder, "sub.2d.i32", BINARY, |call| {
        e::binary(call, u32::wrapping_sub)
    });
    let builder = add(builder, "mul.2d.i32", BINARY, |call| {
        e::binary(call, u32::wrapping_mul)
    });
    let builder = add(builder, "divs.2d.i32", BINARY, |call| {
        e::try_binary(call, e::divide_signed)
    });
    let builder = add(builder, "divu.2d.i32", BINARY, |call| {
        e::try_binary(call, e::divide_unsigned)
    });
    let builder = add(builder, "and.2d.i32", BINARY, |call| {
        e::binary(call, |a: u32, b| a & b)
    });
    let builder = add(builder, "or.2d.i32", BINARY, |call| {
        e::binary(call, |a: u32, b| a | b)
    });
    let builder = add(builder, "xor.2d.i32", BINARY, |call| {
        e::binary(call, |a: u32, b| a ^ b)
    });
    let builder = add(builder, "shl.2d.i32", BINARY, |call| {
        e::binary(call, u32::wrapping_shl)
    });
    let builder = add(builder, "shru.2d.i32", BINARY, |call| {
        e::binary(call, u32::wrapping_shr)
    });
    let builder = add(builder, "shrs.2d.i32", BINARY, |call| {
        e::binary(call, |a: u32, b| {
            a.cast_signed().wrapping_shr(b).cast_unsigned()
        })
    });
    add(builder, "ctlz.2d.i32", UNARY, |call| {
        e::unary(call, u32::leading_zeros)
    })
}

fn floats(builder: Builder) -> Builder {
    let builder = add(builder, "add.2d.f32", BINARY, |call| {
        e::binary_f32(call, |a, b| a + b)
    });
    let builder = add(builder, "sub.2d.f32", BINARY, |call| {
        e::binary_f32(call, |a, b| a - b)
    });
    let builder = add(builder, "mul.2d.f32", BINARY, |call| {
        e::binary_f32(call, |a, b| a * b)
    });
    let builder = add(builder, "div.2d.f32", BINARY, |call| {
        e::binary_f32(call, |a, b| a / b)
    });
    let builder = add(builder, "abs.2d.f32", UNARY, |call| {
        e::unary_f32(call, f32::abs)
    });
    let builder = add(builder, "ceil.2d.f32", UNARY, |call| {
        e::unary_f32(call, f32::ceil)
    });
    let builder = add(builder, "exp.2d.f32", UNARY, |call| {
        e::unary_f32(call, libm::expf)
    });
    let builder = add(builder, "floor.2d.f32", UNARY, |call| {
        e::unary_f32(call, f32::floor)
    });
    let builder = add(builder, "log.2d.f32", UNARY, |call| {
        e::unary_f32(call, libm::logf)
    });
    let builder = add(builder, "neg.2d.f32", UNARY, |call| {
        e::unary_f32(call, |a| -a)
    });
    add(builder, "rsqrt.2d.f32", UNARY, |call| {
        e::unary_f32(call, |a| 1.0 / a.sqrt())
    })
}

fn matrices(builder: Builder) -> Builder {
    let builder = add(builder, "mmt4d", "0rIIrIIrIIIIIiiii_v", mmt4d::mmt4d);
    let builder = add(builder, "pack", "0rIIIrIIIIIIIIIIi_v", pack::pack);
    let builder = add(builder, "unpack", "0rIIIrIIIIIIIIIi_v", pack::unpack);
    add(builder, "query_tile_sizes.2d", "0IIi_II", query_tile_sizes)
}

/// Answers the tile sizes of an operand: `size0, size1, flags`. The sizes do not matter.
///
/// The answers are those the reference gives where it knows nothing of the machine, so that a program computes the same
/// everywhere. Any answer that divides 16 is one programs can work with.
fn query_tile_sizes(call: &mut Call<'_, '_>) -> Result<()> {
    const LEFT: u32 = 1;
    const RIGHT: u32 = 2;
    const RESULT: u32 = 3;
    let mut arguments = call.arguments.reader();
    let _sizes = [arguments.i64()?, arguments.i64()?];
    let flags = arguments.i32()?.cast_unsigned();
    let (rows, columns, depth) = match flags & !0xFF {
        0x100 => (8, 4, 1),
        0x200 => (8, 4, 2),
        0x300 | 0x400 | 0x500 | 0x600 => (8, 8, 4),
        _ => return Err(unknown_flags(flags)),
    };
    let (first, second) = match flags & 0xFF {
        LEFT => (rows, depth),
        RIGHT => (columns, depth),
        RESULT => (rows, columns),
        _ => return Err(unknown_flags(flags)),
    };
    call.results.push_i64(first);
    call.results.push_i64(second);
    Ok(())
}

#[cold]
fn unknown_flags(flags: u32) -> Trap {
    Trap::invalid_argument(format!(
        "tile sizes were asked for with unknown flags {flags:#x}"
    ))
}
