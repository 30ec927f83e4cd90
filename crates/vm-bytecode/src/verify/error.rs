//! Why a module does not load.

use vm::{CallingConvention, ConventionError, StatusCode};

use crate::flatbuffer::FieldError;
use crate::{ArchiveError, BytecodeVersion, Features, FunctionError};

/// Why a file does not load as a module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is not a module.
    #[error("cannot find a module in the file")]
    Archive(#[from] ArchiveError),
    /// The description of the module is damaged.
    #[error("cannot read the module")]
    Schema(#[from] FieldError),
    /// The module does not verify.
    #[error("cannot verify the module")]
    Verify(#[from] VerifyError),
}

impl LoadError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::Archive(error) => error.status_code(),
            Self::Schema(error) => error.status_code(),
            Self::Verify(error) => error.status_code(),
        }
    }
}

/// Why a module does not verify.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The bytecode version is not known.
    #[error("module `{module}` has bytecode version {found}, known are {}: {}", BytecodeVersion::known(), .found.age())]
    Version {
        /// Name of the module.
        module: String,
        /// Version of its bytecode.
        found: BytecodeVersion,
    },
    /// Features are needed that do not exist here.
    #[error("{what} needs the features {missing}, which are not available")]
    Features {
        /// Module or function that needs them.
        what: String,
        /// The features.
        missing: Features,
    },
    /// The number of signatures is not that of the functions.
    #[error("module `{module}` has {signatures} signatures for {functions} functions")]
    SignatureCount {
        /// Name of the module.
        module: String,
        /// Count of signatures.
        signatures: usize,
        /// Count of functions.
        functions: usize,
    },
    /// An export names a function that does not exist.
    #[error("export `{module}.{export}` is function {ordinal}, the module has {functions}")]
    ExportOrdinal {
        /// Name of the module.
        module: String,
        /// Name of the export.
        export: String,
        /// Ordinal of the function.
        ordinal: u32,
        /// Count of functions.
        functions: usize,
    },
    /// The module asks for more globals than its bytecode could ever name.
    #[error("module `{module}` asks for {found} {what}, the limit for its size is {limit}")]
    GlobalCount {
        /// Name of the module.
        module: String,
        /// What is counted.
        what: &'static str,
        /// Count of the module.
        found: u32,
        /// Most that is accepted.
        limit: u64,
    },
    /// A function body is empty, not aligned, or not in the bytecode.
    #[error(
        "the body of function {function}, {length} bytes at {offset}, is empty, not aligned to 8, or outside the {available} bytes of bytecode"
    )]
    Body {
        /// Function, for people.
        function: String,
        /// Offset of the body in the bytecode.
        offset: i32,
        /// Byte length of the body.
        length: i32,
        /// Bytes of bytecode.
        available: usize,
    },
    /// Two function bodies share bytes.
    #[error("the bodies of functions {first} and {second} overlap")]
    BodyOverlap {
        /// Function whose body starts first, for people.
        first: String,
        /// Other function, for people.
        second: String,
    },
    /// A calling convention is not well formed.
    #[error("{what} has a bad calling convention")]
    Convention {
        /// Function or import, for people.
        what: String,
        /// What is wrong with it.
        #[source]
        error: ConventionError,
    },
    /// A function of the module has span arguments, which only imports may have.
    #[error("function {function} has span arguments: `{convention}`")]
    FunctionSpans {
        /// Function, for people.
        function: String,
        /// Its calling convention.
        convention: CallingConvention,
    },
    /// A function does not verify.
    #[error("function {function} does not verify")]
    Function {
        /// Function, for people.
        function: String,
        /// Where and what is wrong.
        #[source]
        error: FunctionError,
    },
}

impl VerifyError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::GlobalCount { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::Convention { error, .. } => error.status_code(),
            Self::Function { error, .. } => error.status_code(),
            Self::Version { .. }
            | Self::Features { .. }
            | Self::SignatureCount { .. }
            | Self::ExportOrdinal { .. }
            | Self::Body { .. }
            | Self::BodyOverlap { .. }
            | Self::FunctionSpans { .. } => StatusCode::INVALID_ARGUMENT,
        }
    }
}
