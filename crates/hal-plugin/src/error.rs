//! The errors of resolving, registering and loading. (`ProviderError` is beside its trait, and
//! `SpecError` beside the parser.)

use std::io;
use std::path::PathBuf;

use hal_abi::{SanitizerKind, Status, StatusCode};
use hal_elf::ElfError;

use crate::provider::failure_code;
use crate::{PluginOrigin, ProviderError, ProviderErrorKind};

/// Why a list of imports was not resolved.
///
/// A caller that walks a list of executable loaders must not take any of these for "not mine, try
/// the next": see `docs/abi.md`, section 8.5.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Required imports that no provider knows.
    #[error(
        "missing {} required executable import{}: [{}]; {}",
        missing.len(),
        if missing.len() == 1 { "" } else { "s" },
        missing.join(", "),
        asked_text(asked)
    )]
    MissingImports {
        /// Their names, sorted by bytes, each once.
        missing: Vec<String>,
        /// The providers that were asked, in the order in which a manager asks: newest first.
        asked: Vec<String>,
    },

    /// Required imports, but nobody to ask.
    #[error("no import provider for required executable imports: [{}]", missing.join(", "))]
    NoProvider {
        /// Their names, sorted by bytes, each once.
        missing: Vec<String>,
    },

    /// A provider failed.
    #[error("import provider `{provider}` failed")]
    Provider {
        /// The provider.
        provider: String,
        /// Its error.
        #[source]
        source: ProviderError,
    },
}

impl ResolveError {
    /// Returns the status code to report.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::MissingImports { .. } => StatusCode::NOT_FOUND,
            Self::NoProvider { .. } => StatusCode::UNAVAILABLE,
            Self::Provider { source, .. } => source.status_code(),
        }
    }

    /// Wraps the error of a provider, naming the innermost one that failed.
    #[cold]
    pub(crate) fn from_provider(provider: &str, error: ProviderError) -> Self {
        match error.into_kind() {
            ProviderErrorKind::Nested { provider, source } => Self::Provider { provider, source },
            kind => Self::Provider {
                provider: provider.to_owned(),
                source: kind.into(),
            },
        }
    }
}

fn asked_text(asked: &[String]) -> String {
    if asked.is_empty() {
        return "no provider is registered".to_owned();
    }
    format!("providers asked: [{}]", asked.join(", "))
}

/// Why a manager did not change its registrations.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The manager was created with a limit, and it is reached.
    #[error("cannot register `{name}`: the capacity of {capacity} providers is reached")]
    CapacityReached {
        /// The provider that found no place.
        name: String,
        /// The limit that was asked for.
        capacity: usize,
    },

    /// No provider is registered under the name.
    #[error("no provider is registered under the name `{name}`")]
    NotRegistered {
        /// The name.
        name: String,
    },
}

impl RegisterError {
    /// Returns the status code to report.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::CapacityReached { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::NotRegistered { .. } => StatusCode::NOT_FOUND,
        }
    }
}

/// Why a plugin was not loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PluginError {
    /// The file cannot be read.
    #[error("cannot read plugin file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },

    /// The path names a directory, a device or the like.
    #[error("plugin path `{}` is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },

    /// A path is empty or has a NUL in it.
    #[error("plugin path {path:?} {problem}")]
    InvalidPath {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// The private copy that is mapped in place of the file cannot be written.
    #[error("cannot copy plugin file `{}` to a private file in `{}`", path.display(), directory.display())]
    Copy {
        /// The file.
        path: PathBuf,
        /// The directory for temporary files.
        directory: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },

    /// The system's loader refused the library.
    #[error("cannot open system library `{}` (RTLD_NOW | RTLD_LOCAL)", path.display())]
    Open {
        /// The file, or the bare name that was searched.
        path: PathBuf,
        /// What the loader says.
        #[source]
        source: libloading::Error,
    },

    /// The freestanding image cannot be loaded.
    #[error("cannot load {origin}")]
    Image {
        /// Where the image came from.
        origin: PluginOrigin,
        /// Why.
        #[source]
        source: ElfError,
    },

    /// The file is no plugin: it does not export the query function.
    #[error("{origin} does not export `iree_hal_executable_plugin_query`")]
    NotAPlugin {
        /// Where the code came from.
        origin: PluginOrigin,
    },

    /// The answer to the query is not a plugin that this host can run.
    #[error("{origin} is not usable here")]
    Rejected {
        /// Where the code came from.
        origin: PluginOrigin,
        /// Why.
        #[source]
        source: RejectReason,
    },

    /// The plugin's `load` failed. Its `unload` was not called.
    #[error(
        "`load` of plugin `{plugin}` ({origin}) returned {} (raw value {raw:#x})",
        Status(*raw).code()
    )]
    Load {
        /// Where the code came from.
        origin: PluginOrigin,
        /// The name in the plugin's header.
        plugin: String,
        /// The status as returned. From 0x20 on it is an address that only the plugin understands;
        /// it was neither read nor freed.
        raw: usize,
    },
}

impl PluginError {
    /// Returns the status code to report.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Read { source, .. } => io_code(source),
            Self::Copy { .. } => StatusCode::UNAVAILABLE,
            Self::NotAFile { .. } | Self::InvalidPath { .. } => StatusCode::INVALID_ARGUMENT,
            Self::Open { .. } | Self::NotAPlugin { .. } => StatusCode::NOT_FOUND,
            Self::Image { source, .. } => source.status_code(),
            Self::Rejected { source, .. } => source.status_code(),
            Self::Load { raw, .. } => failure_code(Status(*raw).code()),
        }
    }
}

fn io_code(error: &io::Error) -> StatusCode {
    match error.kind() {
        io::ErrorKind::NotFound => StatusCode::NOT_FOUND,
        io::ErrorKind::PermissionDenied => StatusCode::PERMISSION_DENIED,
        io::ErrorKind::OutOfMemory => StatusCode::RESOURCE_EXHAUSTED,
        _ => StatusCode::UNAVAILABLE,
    }
}

/// What is wrong with the answer to a plugin's query.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// The query returned NULL.
    #[error("the plugin does not support ABI version {asked}, the newest this host knows")]
    VersionRefused {
        /// The version asked for.
        asked: u32,
    },

    /// The header declares a version that was not asked for.
    #[error("the plugin was asked for ABI version 1 at most but answers with version {found}")]
    VersionMismatch {
        /// The version in the header.
        found: u32,
    },

    /// A pointer is NULL or misaligned, or a function that must exist is NULL.
    #[error("the plugin's {what} is {problem}")]
    BadPointer {
        /// The pointer, such as `header` or `resolve function`.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },

    /// The plugin returns statuses that only a host with the same status implementation can read.
    #[error(
        "plugin `{plugin}` is built with full statuses (feature FULL_STATUS), which only a host \
         with the same C status implementation can read and free; build it without"
    )]
    FullStatus {
        /// The name in the header.
        plugin: String,
    },

    /// The plugin is instrumented for a sanitizer that does not run in this process.
    #[error("plugin `{plugin}` is built with {}", sanitizer_text(*kind))]
    Sanitizer {
        /// The name in the header.
        plugin: String,
        /// The sanitizer.
        kind: SanitizerKind,
    },

    /// The file needs the runtime of a sanitizer that does not run in this process.
    #[error("it is built with {}", sanitizer_text(*kind))]
    Instrumented {
        /// The sanitizer.
        kind: SanitizerKind,
    },

    /// A reserved field of the header is not zero.
    #[error("reserved field {index} in the header of plugin `{plugin}` is {value:#x}, not 0")]
    Reserved {
        /// The name in the header.
        plugin: String,
        /// The index of the field.
        index: usize,
        /// Its value.
        value: u64,
    },
}

impl RejectReason {
    /// Returns the status code to report.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::VersionRefused { .. }
            | Self::VersionMismatch { .. }
            | Self::BadPointer { .. }
            | Self::FullStatus { .. }
            | Self::Reserved { .. } => StatusCode::FAILED_PRECONDITION,
            Self::Sanitizer { .. } | Self::Instrumented { .. } => StatusCode::UNAVAILABLE,
        }
    }
}

fn sanitizer_text(kind: SanitizerKind) -> String {
    match kind {
        SanitizerKind::ADDRESS => {
            "the address sanitizer (ASan), which does not run in this process".to_owned()
        }
        SanitizerKind::THREAD => {
            "the thread sanitizer (TSan), which does not run in this process".to_owned()
        }
        SanitizerKind::MEMORY => {
            "the memory sanitizer (MSan), which no host supports for plugins".to_owned()
        }
        SanitizerKind::UNDEFINED => {
            "the undefined behavior sanitizer (UBSan), which no host supports for plugins"
                .to_owned()
        }
        SanitizerKind(kind) => format!("a sanitizer of unknown kind {kind}"),
    }
}
