//! What the scenarios run on: a session of the program `micro` with executables of the kernels in this program, and an
//! executable without a session.
//!
//! A workbench can be *crowded*: next to what is measured it then has many more modules, executables and providers of
//! imports, none of which is used. What is measured must not cost more for it.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

use hal_local::{
    EmbeddedElfLoader, Executable, ExecutableData, ExecutableParams, LoaderRegistry,
    StaticLibraryLoader,
};
use hal_plugin::{Import, ImportProvider, PluginManager, ProviderError, ResolveRequest};
use halite::{Loops, Program, Session, Value};
use vm::{Access, Buffer, NativeModule};

use crate::kernels;

/// How many modules, executables and providers a crowded workbench has besides.
const CROWD: usize = 64;

/// A session of the program `micro`.
pub(crate) struct Workbench {
    session: Session,
    /// What the executables of the crowd are kept by.
    _executables: Vec<Value>,
}

/// Provides the import of the kernels.
struct Provider;

/// Provides nothing.
struct Bystander;

impl ImportProvider for Provider {
    fn name(&self) -> &str {
        "provider"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        // SAFETY: the function can be called at any time, on any thread, with any arguments.
        let import = unsafe { Import::new(kernels::imported, ptr::null_mut()) };
        request.fill_with(|name| (name.symbol() == kernels::IMPORT.as_bytes()).then_some(import));
        Ok(())
    }
}

impl ImportProvider for Bystander {
    fn name(&self) -> &str {
        "bystander"
    }

    fn resolve(&self, _: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        Ok(())
    }
}

impl Workbench {
    /// Returns a session with what it needs.
    pub(crate) fn new() -> Result<Self, Box<dyn Error>> {
        Self::with(0, Loops::Interpreted)
    }

    /// Returns a session that compiles hot loops.
    pub(crate) fn compiling() -> Result<Self, Box<dyn Error>> {
        Self::with(0, Loops::Compiled)
    }

    /// Returns a session with much more than it needs.
    pub(crate) fn crowded() -> Result<Self, Box<dyn Error>> {
        Self::with(CROWD, Loops::Interpreted)
    }

    fn with(count: usize, loops: Loops) -> Result<Self, Box<dyn Error>> {
        let plugins = PluginManager::new();
        plugins.register_provider("provider", Arc::new(Provider))?;
        for index in 0..count {
            plugins.register_provider(format!("bystander_{index}"), Arc::new(Bystander))?;
        }
        let loader = static_loader(Arc::new(plugins))?;

        let nothing = |name: &str| {
            NativeModule::builder(name, 0)
                .function("nothing", |_: &()| Ok(()))
                .build()
        };
        let mut session = Session::builder()
            .loops(loops)
            .loader(Arc::new(loader))
            .module(nothing("bench")?);
        for index in 0..count {
            session = session.module(nothing(&format!("bystander_{index}"))?);
        }
        let program = Program::open(data("micro.vmfb"))?;
        let mut workbench = Self {
            session: session.program(program).build()?,
            _executables: Vec::new(),
        };
        for _ in 0..count {
            let executable = workbench.load("many")?;
            workbench._executables.push(executable);
        }
        Ok(workbench)
    }

    /// Returns the session.
    pub(crate) fn session(&self) -> &Session {
        &self.session
    }

    /// Loads a library of this program.
    pub(crate) fn load(&self, library: &str) -> Result<Value, Box<dyn Error>> {
        let arguments = [bytes("static")?, bytes(library)?];
        let results = self.session.invoke("load", &arguments)?;
        results
            .into_iter()
            .next()
            .ok_or_else(|| "load returned nothing".into())
    }
}

/// Loads a library of this program without a session.
pub(crate) fn executable(library: &str) -> Result<Arc<dyn Executable>, Box<dyn Error>> {
    let loaders = LoaderRegistry::new().with(Arc::new(static_loader(Arc::new(Provider))?));
    Ok(loaders.load(&ExecutableParams {
        format: "static",
        data: ExecutableData::copy_of(library.as_bytes()),
        constants: &[],
    })?)
}

/// Returns a loader of embedded executables.
pub(crate) fn embedded_loader() -> LoaderRegistry {
    LoaderRegistry::new().with(Arc::new(EmbeddedElfLoader::new(trust(), None)))
}

fn static_loader(
    provider: Arc<dyn ImportProvider>,
) -> Result<StaticLibraryLoader, hal_local::LoadError> {
    StaticLibraryLoader::new(trust(), Some(provider), &kernels::ALL)
}

fn trust() -> hal_local::Trust {
    // SAFETY: what is loaded are the libraries of this program and a file of this repository that the compiler made.
    unsafe { hal_local::Trust::native_code() }
}

/// Returns a `vm.buffer` of the bytes of a text: constant, as the texts of a compiled program are.
pub(crate) fn bytes(text: &str) -> Result<Value, vm::Trap> {
    let bytes = text.as_bytes().to_vec();
    let range = 0..bytes.len();
    let buffer = Buffer::constant(Arc::new(bytes), range, Access::HOST_CONSTANT)?;
    Ok(Value::Buffer(buffer))
}

/// Returns the path of a file of the benchmarks.
pub(crate) fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/bench")
        .join(name)
}
