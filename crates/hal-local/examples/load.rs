//! The loaders alone: an executable, without a program around it, is loaded, described and dispatched.
//!
//! ```console
//! $ cargo run --quiet --package hal-local --example load
//! format embedded-elf-x86_64
//! function 0: mul_dispatch_0_elementwise_4_f32, 3 bindings, 0 constants
//! [1.0, 4.0, 9.0, 16.0]
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(unsafe_code, reason = "kernels are foreign code")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hal_local::{
    Binding, Dispatch, Dispatcher, EmbeddedElfLoader, ExecutableData, ExecutableParams,
    InlineDispatcher, LoaderRegistry, SystemLibraryLoader, Trust,
};

/// The product of two vectors of four numbers, for x86-64.
const EXECUTABLE: &[u8] = include_bytes!("../tests/fixtures/mul_3_13_0.embedded.so");

/// Kernels want their memory at multiples of 64 bytes.
#[repr(align(64))]
struct Aligned<T>(T);

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: the executable was made by a compiler, and the dispatch below fits the kernel in it.
    let trust = unsafe { Trust::native_code() };
    let loaders = LoaderRegistry::new()
        .with(Arc::new(EmbeddedElfLoader::new(trust, None)))
        .with(Arc::new(SystemLibraryLoader::new(trust, None)));

    let data = ExecutableData::copy_of(EXECUTABLE);
    let format = loaders.infer_format(&data).ok_or("not an executable")?;
    println!("format {format}");
    let executable = loaders.load(&ExecutableParams {
        format: &format,
        data,
        constants: &[],
    })?;
    // Ordinals count up from 0.
    let exports = (0..).map_while(|ordinal| executable.export(ordinal));
    for export in exports {
        let attributes = export.attributes();
        println!(
            "function {}: {}, {} bindings, {} constants",
            export.ordinal(),
            String::from_utf8_lossy(export.name().unwrap_or_default()),
            attributes.binding_count.unwrap_or_default(),
            attributes.constant_count.unwrap_or_default()
        );
    }

    let numbers = Aligned([1.0_f32, 2.0, 3.0, 4.0].map(f32::to_ne_bytes));
    let product = Aligned([const { AtomicU8::new(0) }; 16]);
    let input = Binding::read_only(numbers.0.as_flattened(), None);
    let bindings = [input, input, Binding::shared(&product.0, None)];
    let function = executable.lookup(b"mul_dispatch_0_elementwise_4_f32")?;
    let dispatch = Dispatch::new(&*executable, function.into(), [1, 1, 1], &[], &bindings)?;
    InlineDispatcher::new().dispatch(&*executable, &dispatch)?;

    let bytes = product.0.map(|byte| byte.load(Ordering::Relaxed));
    let floats: Vec<f32> = bytes
        .chunks_exact(4)
        .filter_map(|chunk| chunk.try_into().ok().map(f32::from_ne_bytes))
        .collect();
    println!("{floats:?}");
    Ok(())
}
