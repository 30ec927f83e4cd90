//! The loader of portable executables, format `vmvx-bytecode-fb`.

use std::sync::Arc;

use hal_local::{
    Decline, Executable, ExecutableData, ExecutableLoader, ExecutableParams, ExportAttributes,
    ExportInfo, LoadError, StatusCode,
};
use vm::{Export, InterruptHandle, Module, Trap};
use vm_bytecode::{Archive, BytecodeModule};

use crate::executable::{
    ENTRY_CONVENTION, Limits, SET_CONSTANTS, VmvxExecutable, is_kernel, status_code,
};

/// The name of the format.
const FORMAT: &str = "vmvx-bytecode-fb";

/// Loads executables whose kernels are VM bytecode. It runs no foreign machine code, so it needs no trust.
///
/// The payload is a bytecode module like any other and verified the same way; only the `vmvx` module is there for its
/// imports. Bindings of a dispatch must be owned by `Arc<vm::Buffer>`: kernels reach them through the buffer.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use hal_local::LoaderRegistry;
/// use vm_vmvx::VmvxLoader;
///
/// let loaders = LoaderRegistry::new().with(Arc::new(VmvxLoader::new()));
/// assert!(loaders.supports_format("vmvx-bytecode-fb"));
/// assert!(!loaders.supports_format("embedded-elf-x86_64"));
/// ```
#[derive(Debug, Default)]
pub struct VmvxLoader {
    limits: Limits,
    compiles_loops: bool,
}

impl VmvxLoader {
    /// Returns the loader.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets `handle` stop kernels that run: they fail with `CANCELLED`.
    #[must_use]
    pub fn interrupt_handle(mut self, handle: InterruptHandle) -> Self {
        self.limits.interrupt = handle;
        self
    }

    /// Lets a workgroup run at most `instructions`; then it fails with `DEADLINE_EXCEEDED`. So does each function that
    /// sets an executable up.
    #[must_use]
    pub fn fuel_per_workgroup(mut self, instructions: u64) -> Self {
        self.limits.fuel = Some(instructions);
        self
    }

    /// Compiles hot loops of kernels to machine code while they run, as [`BytecodeModule::compiling`] says.
    #[must_use]
    pub fn compile_loops(mut self) -> Self {
        self.compiles_loops = true;
        self
    }

    /// Returns the module of a payload in the form in which it is run.
    fn runnable(&self, module: Arc<BytecodeModule>) -> Arc<dyn Module> {
        if self.compiles_loops {
            module.compiling()
        } else {
            module
        }
    }
}

/// Why the exports of a payload are not those of an executable.
#[derive(Debug, thiserror::Error)]
enum PayloadError {
    #[error(
        "executable entry point `{name}` does not match the expected calling convention; expected \
         '{ENTRY_CONVENTION}' but got '{found}', possible ABI version mismatch"
    )]
    EntryConvention { name: String, found: String },
    #[error(
        "export `{name}` has the attribute `{key}` = `{value}`, which is not a number from 0 to {limit}"
    )]
    Attribute {
        name: String,
        key: &'static str,
        value: String,
        limit: u32,
    },
    #[error("executable requires executable-level constants but none were provided")]
    ConstantsMissing,
    #[error("executable has no executable-level constants but {found} constants were provided")]
    ConstantsUnwanted { found: usize },
}

/// Bytes of a payload, shared with the file they lie in.
struct Payload(ExecutableData);

impl AsRef<[u8]> for Payload {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ExecutableLoader for VmvxLoader {
    fn name(&self) -> &str {
        "vmvx-module"
    }

    fn supports_format(&self, format: &str) -> bool {
        format == FORMAT
    }

    fn infer_format(&self, data: &[u8]) -> Option<String> {
        Archive::parse(data).ok().map(|_| FORMAT.to_owned())
    }

    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        if !self.supports_format(params.format) {
            return Err(LoadError::Declined {
                code: Decline::Cancelled,
                reason: format!("not a loader of format `{}`", params.format),
            });
        }
        let module = BytecodeModule::load(Arc::new(Payload(params.data.clone())))
            .map_err(|error| self.failure(StatusCode::INVALID_ARGUMENT, error))?;
        let exports = (0..)
            .zip(module.exports())
            .map(|(ordinal, export)| describe(ordinal, export));
        let exports = exports
            .collect::<Result<_, _>>()
            .and_then(|exports| check_constants(&module, params.constants).map(|()| exports))
            .map_err(|error| self.failure(StatusCode::INVALID_ARGUMENT, error))?;
        let executable = VmvxExecutable::new(
            self.runnable(module),
            exports,
            params.constants,
            self.limits.clone(),
        )
        .map_err(|trap: Trap| self.failure(status_code(trap.code()), trap))?;
        Ok(Arc::new(executable))
    }
}

impl VmvxLoader {
    #[cold]
    fn failure(
        &self,
        code: StatusCode,
        source: impl std::error::Error + Send + Sync + 'static,
    ) -> LoadError {
        LoadError::Loader {
            loader: self.name().to_owned(),
            code,
            source: Box::new(source),
        }
    }
}

/// Describes an export, as its reflection attributes say.
fn describe(ordinal: u32, export: &Export) -> Result<ExportInfo, PayloadError> {
    let name = Some(export.name.as_bytes().into());
    if !is_kernel(&export.name) {
        return Ok(ExportInfo::new(ordinal, name, ExportAttributes::default()));
    }
    if export.convention.text() != ENTRY_CONVENTION {
        return Err(PayloadError::EntryConvention {
            name: export.name.to_string(),
            found: export.convention.text().to_owned(),
        });
    }
    // Counts are reported, not demanded: kernels check what they read, and the reference runs dispatches that pass more.
    let attributes = ExportAttributes {
        local_memory_byte_length: number(export, "local_memory", MAX_LOCAL_MEMORY)?.unwrap_or(0),
        ..ExportAttributes::default()
    };
    Ok(ExportInfo::new(ordinal, name, attributes))
}

/// The most scratch memory an export may ask for: the pages that a native executable's attributes can say.
const MAX_LOCAL_MEMORY: u32 = u16::MAX as u32 * 4096;

fn number(export: &Export, key: &'static str, limit: u32) -> Result<Option<usize>, PayloadError> {
    let Some(value) = export.attribute(key) else {
        return Ok(None);
    };
    let number = value.parse::<u32>().ok().filter(|number| *number <= limit);
    match number.and_then(|number| usize::try_from(number).ok()) {
        Some(number) => Ok(Some(number)),
        None => Err(PayloadError::Attribute {
            name: export.name.to_string(),
            key,
            value: value.to_owned(),
            limit,
        }),
    }
}

fn check_constants(module: &BytecodeModule, constants: &[u32]) -> Result<(), PayloadError> {
    match (module.lookup(SET_CONSTANTS), constants.len()) {
        (Some(_), 0) => Err(PayloadError::ConstantsMissing),
        (None, found @ 1..) => Err(PayloadError::ConstantsUnwanted { found }),
        _ => Ok(()),
    }
}
