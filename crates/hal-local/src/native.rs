//! Executables that are native code, whatever file they came in: [`NativeExecutable`].

mod call;
mod denormals;
mod environment;
mod site;

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use hal_plugin::ImportProvider;

pub use denormals::Denormals;
pub(crate) use environment::{Environment, QueryEnvironment};
pub use site::{DispatchRequest, DispatchRequestError, DispatchSite, ExecutableHandle};

use crate::executable::LookupError;
use crate::library::Library;
use crate::{Dispatch, DispatchError, Executable, ExportInfo, LoadError, Worker};

/// A loaded library with everything its kernels need while they run.
///
/// Fields are dropped in the order they are declared in, and that order matters: the image goes
/// first, as its finalizers may still call imports; then the environment with its imports, which
/// keep the plugins they came from loaded. No kernel runs at that time, as each borrows `self`.
pub(crate) struct NativeExecutable {
    library: Arc<Library>,
    /// Keeps the code of `library` mapped. Held, not used.
    _image: Box<dyn Any + Send + Sync>,
    environment: Environment,
}

impl NativeExecutable {
    /// Completes a library that was loaded: checks its constants and resolves its imports.
    ///
    /// `image` is what keeps the code of the library mapped.
    pub(crate) fn new(
        library: Arc<Library>,
        image: Box<dyn Any + Send + Sync>,
        environment: QueryEnvironment,
        provider: Option<&dyn ImportProvider>,
    ) -> Result<Self, LoadError> {
        library.check_constants(environment.constants())?;
        let names: Vec<_> = library
            .imports()
            .iter()
            .map(|name| name.as_c_str())
            .collect();
        let imports = hal_plugin::resolve_imports(provider, &names)
            .map_err(|source| LoadError::imports(library.name(), source))?;
        Ok(Self {
            library,
            _image: image,
            environment: environment.with_imports(imports),
        })
    }
}

impl Executable for NativeExecutable {
    fn exports(&self) -> &[ExportInfo] {
        self.library.exports()
    }

    fn lookup(&self, name: &[u8]) -> Result<u32, LookupError> {
        self.library.lookup(name)
    }

    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
        worker: &mut Worker,
    ) -> Result<(), DispatchError> {
        call::run(&self.library, &self.environment, dispatch, tiles, worker)
    }
}
