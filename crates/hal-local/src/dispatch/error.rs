//! Why a dispatch was refused or failed: [`DispatchError`].
//!
//! The constructors are out of line and cold, so that the checks they belong to stay small.

use std::any::Any;
use std::error::Error;
use std::ffi::c_int;

use hal_abi::{MAX_BINDINGS, MAX_CONSTANTS, StatusCode};

use crate::{Executable, ExportInfo};

/// Why a dispatch was refused before it began, or failed while it ran.
///
/// `export` is the function as [`ExportInfo`] displays it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The executable has no such function.
    #[error("function id {id} is out of range: the executable has {export_count} functions")]
    IdOutOfRange {
        /// The id asked for.
        id: u64,
        /// The number of functions.
        export_count: usize,
    },
    /// The number of constants is not what the function wants.
    #[error("function {export} takes {expected} constants, not {found}")]
    ConstantCount {
        /// The function.
        export: String,
        /// The number it wants.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// There are more constants than any function may take.
    #[error("function {export} was given {found} constants; the limit is {limit}")]
    TooManyConstants {
        /// The function.
        export: String,
        /// The number given.
        found: usize,
        /// The limit of the ABI.
        limit: usize,
    },
    /// The number of bindings is not what the function wants.
    #[error("function {export} takes {expected} bindings, not {found}")]
    BindingCount {
        /// The function.
        export: String,
        /// The number it wants.
        expected: usize,
        /// The number given.
        found: usize,
    },
    /// There are more bindings than any function may take.
    #[error("function {export} was given {found} bindings; the limit is {limit}")]
    TooManyBindings {
        /// The function.
        export: String,
        /// The number given.
        found: usize,
        /// The limit of the ABI.
        limit: usize,
    },
    /// The address of a binding is not aligned as the function needs it.
    #[error(
        "binding {binding} of function {export} is at address {address:#x}, \
         which is not a multiple of {alignment} as compiled kernels assume"
    )]
    BindingMisaligned {
        /// The function.
        export: String,
        /// The index of the binding.
        binding: usize,
        /// Its address.
        address: usize,
        /// The alignment needed.
        alignment: usize,
    },
    /// The workgroup count in z does not fit the 16 bits that the ABI has for it.
    #[error(
        "workgroup count {count} of function {export} in z is out of range: the limit is 65535"
    )]
    CountZ {
        /// The function.
        export: String,
        /// The count given.
        count: u32,
    },
    /// There are more workgroups than a 64-bit integer counts.
    #[error(
        "workgroup counts {count:?} of function {export} are out of range: their product exceeds 64 bits"
    )]
    CountTotal {
        /// The function.
        export: String,
        /// The counts given, in x, y and z.
        count: [u32; 3],
    },
    /// The dispatch was made for a function of another executable.
    #[error("the dispatch of function {export} was made for another executable")]
    OtherExecutable {
        /// The function.
        export: String,
    },
    /// The scratch memory of the function cannot be had.
    #[error("no memory for the {byte_length} bytes of local memory of function {export}")]
    LocalMemory {
        /// The function.
        export: String,
        /// The size in bytes.
        byte_length: usize,
    },
    /// A kernel returned an error.
    #[error("function {export} failed in workgroup {workgroup_id:?}: the kernel returned {code}")]
    KernelFailed {
        /// The function.
        export: String,
        /// The workgroup, in x, y and z.
        workgroup_id: [u32; 3],
        /// What the kernel returned, as it is.
        code: c_int,
    },
    /// An executable that is not native code failed.
    #[error("function {export} failed")]
    Executable {
        /// The function.
        export: String,
        /// The status code that stands for the failure.
        code: StatusCode,
        /// The failure.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// An executable panicked.
    #[error("function {export} panicked: {message}")]
    Panicked {
        /// The function.
        export: String,
        /// The message of the panic.
        message: String,
    },
}

impl DispatchError {
    /// Returns the status code that stands for this error.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::ConstantCount { .. }
            | Self::BindingCount { .. }
            | Self::BindingMisaligned { .. }
            | Self::OtherExecutable { .. } => StatusCode::INVALID_ARGUMENT,
            Self::IdOutOfRange { .. }
            | Self::TooManyConstants { .. }
            | Self::TooManyBindings { .. }
            | Self::CountZ { .. }
            | Self::CountTotal { .. } => StatusCode::OUT_OF_RANGE,
            Self::LocalMemory { .. } => StatusCode::RESOURCE_EXHAUSTED,
            Self::KernelFailed { .. } | Self::Panicked { .. } => StatusCode::INTERNAL,
            Self::Executable { code, .. } => *code,
        }
    }

    /// Returns the error of an executable that is not native code.
    #[cold]
    pub fn executable(
        export: &ExportInfo,
        code: StatusCode,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self::Executable {
            export: export.to_string(),
            code,
            source: source.into(),
        }
    }

    /// Returns the error of a dispatch of a function that `executable` does not have.
    #[cold]
    pub fn id_out_of_range(id: u64, executable: &dyn Executable) -> Self {
        Self::IdOutOfRange {
            id,
            export_count: executable.export_count(),
        }
    }

    #[cold]
    pub(super) fn constant_count(export: &ExportInfo, found: usize) -> Self {
        let name = export.to_string();
        match export.attributes().constant_count {
            Some(expected) => Self::ConstantCount {
                export: name,
                expected,
                found,
            },
            None => Self::TooManyConstants {
                export: name,
                found,
                limit: MAX_CONSTANTS,
            },
        }
    }

    #[cold]
    pub(super) fn binding_count(export: &ExportInfo, found: usize) -> Self {
        let name = export.to_string();
        match export.attributes().binding_count {
            Some(expected) => Self::BindingCount {
                export: name,
                expected,
                found,
            },
            None => Self::TooManyBindings {
                export: name,
                found,
                limit: MAX_BINDINGS,
            },
        }
    }

    /// Returns the error that names the first misaligned binding. There is one, if the bindings' source is true to them.
    #[cold]
    pub(crate) fn misaligned(export: &ExportInfo, addresses: impl Iterator<Item = usize>) -> Self {
        let alignment = export.attributes().binding_alignment;
        let (binding, address) = addresses
            .enumerate()
            .find(|(_, address)| !address.is_multiple_of(alignment))
            .unwrap_or_default();
        Self::BindingMisaligned {
            export: export.to_string(),
            binding,
            address,
            alignment,
        }
    }

    #[cold]
    pub(super) fn count_z(export: &ExportInfo, count: u32) -> Self {
        Self::CountZ {
            export: export.to_string(),
            count,
        }
    }

    #[cold]
    pub(super) fn count_total(export: &ExportInfo, x: u32, y: u32, z: u32) -> Self {
        Self::CountTotal {
            export: export.to_string(),
            count: [x, y, z],
        }
    }

    #[cold]
    pub(crate) fn other_executable(export: &ExportInfo) -> Self {
        Self::OtherExecutable {
            export: export.to_string(),
        }
    }

    #[cold]
    pub(crate) fn local_memory(export: &ExportInfo) -> Self {
        let byte_length = export.attributes().local_memory_byte_length;
        Self::LocalMemory {
            export: export.to_string(),
            byte_length,
        }
    }

    #[cold]
    pub(crate) fn kernel_failed(export: &ExportInfo, workgroup_id: [u32; 3], code: c_int) -> Self {
        Self::KernelFailed {
            export: export.to_string(),
            workgroup_id,
            code,
        }
    }

    #[cold]
    pub(crate) fn panicked(export: &ExportInfo, payload: &(dyn Any + Send)) -> Self {
        let message = payload
            .downcast_ref::<&str>()
            .map(ToString::to_string)
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "no message".to_owned());
        Self::Panicked {
            export: export.to_string(),
            message,
        }
    }
}
