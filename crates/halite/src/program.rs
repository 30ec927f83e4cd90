//! Programs: verified modules, before they have state.
#![forbid(unsafe_code)]

use core::fmt;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use vm::{BytesOwner, Module};
use vm_bytecode::BytecodeModule;

use crate::Error;

/// A compiled program: a bytecode module that was read and verified.
///
/// Cheap to clone; sessions on any thread may share it. Loading runs nothing of it.
#[derive(Clone)]
pub struct Program {
    module: Arc<BytecodeModule>,
    bytes: Arc<dyn BytesOwner>,
    origin: Arc<str>,
}

impl Program {
    /// Reads the program in a file (`.vmfb`).
    ///
    /// # Errors
    /// Fails when the file cannot be read, is no program, or does not verify.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|source| Error::Read {
            path: path.into(),
            source,
        })?;
        Self::from_named_bytes(path.display().to_string(), bytes)
    }

    /// Reads the program in `bytes`, which it keeps.
    ///
    /// # Errors
    /// Fails when the bytes are no program or do not verify.
    pub fn from_bytes(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<Self, Error> {
        Self::from_named_bytes("<memory>", bytes)
    }

    /// Reads the program in `bytes`, which errors call `origin`.
    ///
    /// # Errors
    /// Fails when the bytes are no program or do not verify.
    pub fn from_named_bytes(
        origin: impl Into<String>,
        bytes: impl AsRef<[u8]> + Send + Sync + 'static,
    ) -> Result<Self, Error> {
        let origin = origin.into();
        let bytes: Arc<dyn BytesOwner> = Arc::new(bytes);
        match BytecodeModule::load(Arc::clone(&bytes)) {
            Ok(module) => Ok(Self {
                module,
                bytes,
                origin: origin.into(),
            }),
            Err(error) => Err(Error::Load {
                origin,
                source: Box::new(error),
            }),
        }
    }

    /// Returns the module's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.module.name()
    }

    /// Returns where the program came from: its path, or what the caller named it.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns the names of the functions that an application may call, in the order of the program.
    ///
    /// Names that begin with `__` are called by the runtime, names with a `$` are the compiler's own.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        let names = self.module.exports().iter().map(|export| &*export.name);
        names.filter(|name| !name.starts_with("__") && !name.contains('$'))
    }

    /// Returns whether the program cannot do without the module `name`.
    pub(crate) fn depends_on(&self, name: &str) -> bool {
        let dependencies = self.module.dependencies().iter();
        dependencies
            .filter(|dependency| !dependency.optional)
            .any(|dependency| &*dependency.name == name)
    }

    /// Returns the bytes of the file.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }

    /// Returns the module, for tools that look inside.
    #[must_use]
    pub fn module(&self) -> &Arc<BytecodeModule> {
        &self.module
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.name())
            .field("origin", &self.origin)
            .finish()
    }
}
