//! Why an executable was not loaded: [`LoadError`].

use std::error::Error;
use std::io;

use hal_abi::StatusCode;
use hal_elf::{ElfError, FatElfError};
use hal_plugin::ResolveError;

use crate::LibraryError;

/// Why an executable was not loaded.
///
/// One variant, [`LoadError::Declined`], means "not mine, ask the next loader"; which it is never
/// depends on a status code. A missing import has the code NOT_FOUND, and is not that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The executable is not this loader's; the next one may be asked.
    #[error("not an executable for this loader: {reason}")]
    Declined {
        /// Which of the two codes stands for it.
        code: Decline,
        /// Why.
        reason: String,
    },
    /// No loader took the executable.
    #[error(
        "no executable loader registered for the given executable format `{format}`; loaders asked: {}",
        if asked.is_empty() { "none".to_owned() } else { asked.join(", ") }
    )]
    NoLoader {
        /// The format.
        format: String,
        /// The loaders, each with its reason.
        asked: Vec<String>,
    },
    /// The ELF file is damaged, or cannot be loaded on this host.
    #[error("cannot load the ELF file")]
    Elf {
        /// Why.
        #[source]
        source: ElfError,
    },
    /// The FatELF file has no usable member for this host.
    #[error("cannot select a member of the FatELF file")]
    FatElf {
        /// Why.
        #[source]
        source: FatElfError,
    },
    /// The system library cannot be stored where the operating system can load it from.
    #[error("cannot store the system library for loading: {operation} failed")]
    Store {
        /// The call that failed.
        operation: &'static str,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The operating system refused the system library.
    #[error("cannot open the system library (RTLD_NOW | RTLD_LOCAL)")]
    Open {
        /// Why.
        #[source]
        source: libloading::Error,
    },
    /// The file exports no query function.
    #[error(
        "the file is no executable library: it does not export `iree_hal_executable_library_query`"
    )]
    NoQuery,
    /// The tables of the library are not acceptable, or do not fit the constants.
    #[error("the executable library is not usable here")]
    Library {
        /// Why.
        #[source]
        source: LibraryError,
    },
    /// Imports of the executable are missing.
    #[error("the imports of executable library `{library}` are not satisfied")]
    Imports {
        /// The name of the library.
        library: String,
        /// Which, and who was asked.
        #[source]
        source: ResolveError,
    },
    /// A loader of another crate failed on an executable of its own.
    #[error("cannot load the executable with loader `{loader}`")]
    Loader {
        /// The name of the loader.
        loader: String,
        /// The status code that stands for the failure.
        code: StatusCode,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// How a loader says that an executable is not its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decline {
    /// The loader cannot load this kind of executable.
    Cancelled,
    /// The loader has no executable of this name.
    NotFound,
}

impl LoadError {
    /// Returns whether the next loader may be asked.
    #[must_use]
    pub fn is_declined(&self) -> bool {
        matches!(self, Self::Declined { .. })
    }

    /// Returns the status code that stands for this error.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Declined {
                code: Decline::Cancelled,
                ..
            } => StatusCode::CANCELLED,
            Self::Declined {
                code: Decline::NotFound,
                ..
            }
            | Self::NoLoader { .. }
            | Self::NoQuery
            | Self::Open { .. } => StatusCode::NOT_FOUND,
            Self::Elf { source } => source.status_code(),
            Self::FatElf { source } => source.status_code(),
            Self::Store { .. } => StatusCode::UNAVAILABLE,
            Self::Library { source } => source.status_code(),
            Self::Imports { source, .. } => source.status_code(),
            Self::Loader { code, .. } => *code,
        }
    }

    pub(super) fn other_format(format: &str) -> Self {
        Self::Declined {
            code: Decline::Cancelled,
            reason: format!("not a loader of format `{format}`"),
        }
    }

    pub(crate) fn imports(library: &str, source: ResolveError) -> Self {
        Self::Imports {
            library: library.to_owned(),
            source,
        }
    }
}

impl From<LibraryError> for LoadError {
    fn from(source: LibraryError) -> Self {
        Self::Library { source }
    }
}
