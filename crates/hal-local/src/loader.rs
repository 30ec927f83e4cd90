//! Loaders of executables and the list in which they are asked: [`ExecutableLoader`],
//! [`LoaderRegistry`].

mod code_image;
mod embedded;
mod error;
mod format;
mod static_library;
mod system;

use std::fmt;
use std::sync::Arc;

pub use embedded::EmbeddedElfLoader;
pub use error::{Decline, LoadError};
pub use static_library::StaticLibraryLoader;
pub use system::SystemLibraryLoader;

use crate::{Executable, ExecutableData};

/// What to load.
#[derive(Clone, Debug)]
pub struct ExecutableParams<'a> {
    /// The format the producer gave the data, such as `embedded-elf-x86_64`.
    pub format: &'a str,
    /// The data; a loader may keep a share of it.
    pub data: ExecutableData,
    /// The executable-level constants, exactly as many as the executable wants.
    pub constants: &'a [u32],
}

/// Turns the data of an executable into something that can be dispatched.
///
/// Loaders may be shared by any number of threads, and executables do not need them any more once
/// they are loaded.
pub trait ExecutableLoader: Send + Sync {
    /// Returns the name of the loader, for messages.
    fn name(&self) -> &str;

    /// Returns whether this loader, on this host, can load executables of a format.
    fn supports_format(&self, format: &str) -> bool;

    /// Returns the format of some data by what is in it, or `None` if it is not for this loader.
    ///
    /// The format may be one for another host, which [`ExecutableLoader::supports_format`] denies.
    fn infer_format(&self, data: &[u8]) -> Option<String>;

    /// Loads an executable.
    ///
    /// # Errors
    ///
    /// [`LoadError::Declined`] means that the executable is not this loader's, and that the next one
    /// may be asked. Every other error means that it is, and is broken.
    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError>;
}

/// An ordered list of loaders.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use hal_local::{EmbeddedElfLoader, LoaderRegistry, SystemLibraryLoader, Trust};
///
/// // SAFETY: this process only loads executables that its own build compiled.
/// let trust = unsafe { Trust::native_code() };
/// let loaders = LoaderRegistry::new()
///     .with(Arc::new(EmbeddedElfLoader::new(trust, None)))
///     .with(Arc::new(SystemLibraryLoader::new(trust, None)));
/// assert!(!loaders.supports_format("embedded-elf-pdp_11"));
/// ```
#[derive(Clone, Default)]
pub struct LoaderRegistry {
    loaders: Vec<Arc<dyn ExecutableLoader>>,
}

impl LoaderRegistry {
    /// Returns a list without loaders.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the list with one more loader, to be asked after the others.
    #[must_use]
    pub fn with(mut self, loader: Arc<dyn ExecutableLoader>) -> Self {
        self.loaders.push(loader);
        self
    }

    /// Returns the loaders in the order in which they are asked.
    #[must_use]
    pub fn loaders(&self) -> &[Arc<dyn ExecutableLoader>] {
        &self.loaders
    }

    /// Returns whether any loader can load executables of a format.
    #[must_use]
    pub fn supports_format(&self, format: &str) -> bool {
        self.loaders
            .iter()
            .any(|loader| loader.supports_format(format))
    }

    /// Returns the format of some data by what is in it, as the first loader names it that knows.
    #[must_use]
    pub fn infer_format(&self, data: &[u8]) -> Option<String> {
        self.loaders
            .iter()
            .find_map(|loader| loader.infer_format(data))
    }

    /// Loads an executable with the first loader that does not decline it.
    ///
    /// # Errors
    ///
    /// Returns the error of the loader that took the executable for its own, or
    /// [`LoadError::NoLoader`] if none did.
    pub fn load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!("load_executable", format = params.format).entered();
        let mut asked = Vec::new();
        for loader in &self.loaders {
            if !loader.supports_format(params.format) {
                asked.push(format!("{} (other formats)", loader.name()));
                continue;
            }
            match loader.try_load(params) {
                Err(LoadError::Declined { reason, .. }) => {
                    asked.push(format!("{} ({reason})", loader.name()));
                }
                result => return result,
            }
        }
        Err(LoadError::NoLoader {
            format: params.format.to_owned(),
            asked,
        })
    }
}

impl fmt::Debug for LoaderRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.loaders.iter().map(|loader| loader.name().to_owned()))
            .finish()
    }
}
