//! Counts what one resolution costs: `resolve_cost [PROVIDERS] [NAMES] [REPEATS]`.
//!
//! The oldest provider knows every name; all others know nothing. To count instructions, run it
//! under callgrind twice and divide the difference:
//!
//! ```text
//! cargo build --release -p hal-plugin --example resolve_cost
//! valgrind --tool=callgrind target/release/examples/resolve_cost 8 16 0
//! valgrind --tool=callgrind target/release/examples/resolve_cost 8 16 1000
//! ```

#![expect(
    clippy::print_stdout,
    reason = "the result of a command goes to stdout"
)]

use std::error::Error;
use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use hal_plugin::{Import, ImportProvider, PluginManager, ProviderError, ResolveRequest};

unsafe extern "C" fn function(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// Knows nothing.
struct Nothing;

impl ImportProvider for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }

    fn resolve(&self, _: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// Knows every name.
struct Everything;

impl ImportProvider for Everything {
    fn name(&self) -> &str {
        "everything"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        // SAFETY: `function` can be called at any time, on any thread, with any arguments.
        let import = unsafe { Import::new(function, std::ptr::null_mut()) };
        request.fill_with(|_| Some(import));
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| -> Result<usize, Box<dyn Error>> {
        Ok(arguments.next().map_or(Ok(default), |text| text.parse())?)
    };
    let provider_count = number(8)?;
    let name_count = number(16)?;
    let repeat_count = number(100_000)?;

    let manager = PluginManager::new();
    manager.register_provider("everything", Arc::new(Everything))?;
    for _ in 1..provider_count {
        manager.register_provider("nothing", Arc::new(Nothing))?;
    }
    let owned = (0..name_count)
        .map(|index| CString::new(format!("import_{index:04}")))
        .collect::<Result<Vec<CString>, _>>()?;
    let names: Vec<&CStr> = owned.iter().map(CString::as_c_str).collect();

    let start = Instant::now();
    for _ in 0..repeat_count {
        black_box(manager.resolve(black_box(&names))?);
    }
    let elapsed = start.elapsed();
    let mean = elapsed.as_nanos() / u128::try_from(repeat_count.max(1))?;
    println!("{provider_count} providers, {name_count} names: {mean} ns per resolution");
    Ok(())
}
