//! The plugin manager alone: providers of functions, in Rust and from plugin files, and who answers first.
//!
//! Takes plugins to load, each as `path.so`, `path.sos` or `embedded:path`, with `?key=value` for parameters. Their code
//! is run.
//!
//! ```console
//! $ cargo run --quiet --package hal-plugin --example manager
//! providers: builtins
//! twice(21) = 42
//! cannot resolve: missing 1 required executable import: [lab_scale_add]; providers asked: [builtins]
//! $ cargo run --quiet --package hal-plugin --example manager target/plugins/scale_add_rust.sos
//! providers: scale_add_rust, builtins
//! twice(21) = 42
//! lab_scale_add is there
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]
#![expect(unsafe_code, reason = "plugins and imports are foreign code")]

use std::error::Error;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

use hal_plugin::{
    Import, ImportProvider, Plugin, PluginManager, PluginSpec, ProviderError, ResolveRequest,
};

/// `(i32) -> i32` in the import calling convention: `params` points at the result, then the argument.
unsafe extern "C" fn twice(params: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    let params = params.cast::<[i32; 2]>();
    // SAFETY: callers pass the two numbers that the function is declared with.
    let params = unsafe { &mut *params };
    params[0] = params[1].wrapping_mul(2);
    0
}

/// A provider in Rust.
struct Builtins;

impl ImportProvider for Builtins {
    fn name(&self) -> &str {
        "builtins"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        request.fill_with(|name| match name.symbol() {
            // SAFETY: `twice` may be called on any thread and needs no context.
            b"twice" => Some(unsafe { Import::new(twice, std::ptr::null_mut()) }),
            _ => None,
        });
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let manager = PluginManager::new();
    manager.register_provider("builtins", Arc::new(Builtins))?;
    for spec in std::env::args().skip(1) {
        let spec = PluginSpec::parse(&spec)?;
        // SAFETY: whoever runs the example names plugins that may run here.
        manager.register_plugin(unsafe { Plugin::load(&spec) }?)?;
    }
    let providers: Vec<String> = manager.snapshot().names().map(str::to_owned).collect();
    println!("providers: {}", providers.join(", "));

    let imports = manager.resolve(&[c"twice"])?;
    let import = imports.get(0).ok_or("`twice` is required")?;
    let mut params = [0, 21];
    let params_pointer = params.as_mut_ptr().cast();
    // SAFETY: the parameters are the two numbers that `twice` takes.
    let status =
        unsafe { import.function()(params_pointer, import.context(), std::ptr::null_mut()) };
    if status != 0 {
        return Err(format!("`twice` failed with {status}").into());
    }
    println!("twice({}) = {}", params[1], params[0]);

    match manager.resolve(&[c"lab_scale_add"]) {
        Ok(_) => println!("lab_scale_add is there"),
        Err(error) => println!("cannot resolve: {error}"),
    }
    Ok(())
}
