//! The module: the names and calling conventions of its functions.

use std::sync::Arc;

use hal_local::{Dispatcher, LoaderRegistry};
use vm::{Module, NativeModule};

use crate::dispatch::DispatchAbi;
use crate::executable::EXECUTABLE_TYPE;
use crate::functions::{self, Services};
use crate::site::{dispatch, dispatch_site};

/// The newest version that modules require; it serves files that require an older one as well.
const VERSION: u32 = 1;

/// Returns the `hal_loader` module.
///
/// Executables are loaded by the first of `loaders` that takes them, and their functions are run by `dispatcher`.
/// Contexts that link the module share both; what they load is their own.
#[must_use]
#[expect(
    clippy::missing_panics_doc,
    reason = "the module is made of constants and always builds"
)]
pub fn module(loaders: LoaderRegistry, dispatcher: Arc<dyn Dispatcher>) -> Arc<dyn Module> {
    let services = Services {
        loaders,
        dispatcher,
    };
    NativeModule::builder_with_state("hal_loader", VERSION, move || services.clone())
        .ref_type(&EXECUTABLE_TYPE)
        .raw_function("executable.query_support", "0r_i", functions::query_support)
        .raw_function("executable.load", "0rrr_r", functions::load)
        .pure_function(
            "executable.lookup.function",
            "0rr_I",
            functions::lookup_function,
        )
        .function_with_sites(
            "executable.dispatch",
            DispatchAbi::FunctionId.convention(),
            dispatch::<true>,
            dispatch_site::<true>,
        )
        .function_with_sites(
            "executable.dispatch",
            DispatchAbi::Ordinal.convention(),
            dispatch::<false>,
            dispatch_site::<false>,
        )
        .build()
        .expect("the conventions are constants that parse and differ where names repeat")
}
