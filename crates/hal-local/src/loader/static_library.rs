//! Executables that are linked into this program: [`StaticLibraryLoader`].

#![expect(
    unsafe_code,
    reason = "the libraries are behind foreign query functions"
)]

use std::fmt;
use std::sync::Arc;

use hal_abi::library::LibraryQueryFn;
use hal_plugin::ImportProvider;

use super::{Decline, ExecutableLoader, ExecutableParams, LoadError};
use crate::library::{Library, query_library};
use crate::native::{NativeExecutable, QueryEnvironment};
use crate::processor;
use crate::{Executable, Trust};

/// The only format of this loader.
const FORMAT: &str = "static";

/// Loads executables that are linked into this program, by the name of their library.
///
/// The format is `static` and the data is the name, with or without a NUL at its end. If several
/// libraries have the same name the first one counts.
pub struct StaticLibraryLoader {
    provider: Option<Arc<dyn ImportProvider>>,
    environment: QueryEnvironment,
    libraries: Vec<Arc<Library>>,
}

impl StaticLibraryLoader {
    /// Queries the libraries, each once, and returns a loader of them.
    ///
    /// `provider` supplies the imports of all executables.
    ///
    /// # Errors
    ///
    /// Fails if a library is not usable here.
    pub fn new(
        _trust: Trust,
        provider: Option<Arc<dyn ImportProvider>>,
        queries: &[LibraryQueryFn],
    ) -> Result<Self, LoadError> {
        let environment = QueryEnvironment::new(processor::detect(), &[]);
        let mut libraries = Vec::with_capacity(queries.len());
        for &query in queries {
            // SAFETY: the `Trust` promises that the libraries given to this loader follow the ABI. Code
            // that is linked into the program stays mapped, and the environment is complete.
            let library = unsafe { query_library(query, environment.as_ptr()) }?;
            libraries.push(Arc::new(library));
        }
        Ok(Self {
            provider,
            environment,
            libraries,
        })
    }
}

impl ExecutableLoader for StaticLibraryLoader {
    fn name(&self) -> &str {
        "static-library"
    }

    fn supports_format(&self, format: &str) -> bool {
        format == FORMAT
    }

    fn infer_format(&self, data: &[u8]) -> Option<String> {
        self.find(data).map(|_| FORMAT.to_owned())
    }

    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        if !self.supports_format(params.format) {
            return Err(LoadError::other_format(params.format));
        }
        let Some(library) = self.find(&params.data) else {
            let reason = format!(
                "no library is named `{}`",
                library_name(&params.data).escape_ascii()
            );
            return Err(LoadError::Declined {
                code: Decline::NotFound,
                reason,
            });
        };
        let environment = QueryEnvironment::new(self.environment.processor(), params.constants);
        // The code of the program itself needs no image to keep it mapped.
        let image = Box::new(());
        let executable = NativeExecutable::new(
            library.clone(),
            image,
            environment,
            self.provider.as_deref(),
        )?;
        Ok(Arc::new(executable))
    }
}

impl StaticLibraryLoader {
    /// Returns the first library whose name is the data of an executable.
    fn find(&self, data: &[u8]) -> Option<&Arc<Library>> {
        let name = library_name(data);
        self.libraries
            .iter()
            .find(|library| library.name().as_bytes() == name)
    }
}

impl fmt::Debug for StaticLibraryLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.libraries.iter().map(|library| library.name());
        f.debug_tuple("StaticLibraryLoader")
            .field(&names.collect::<Vec<_>>())
            .finish()
    }
}

/// Returns the name in the data of an executable, which may end in a NUL.
fn library_name(data: &[u8]) -> &[u8] {
    data.strip_suffix(&[0]).unwrap_or(data)
}
