//! A single executable, loaded and dispatched without a program around it: [`Executable`].
//!
//! For tools and tests of kernels. A program's own executables are loaded by its session.
#![forbid(unsafe_code)]

use core::any::Any;
use core::fmt;
use std::sync::Arc;

use hal_local::{
    Binding, Dispatch, DispatchError, Dispatcher, ExecutableParams, ExportInfo, LoadError,
    LookupError,
};
use hal_plugin::PluginManager;
use vm::{InterruptHandle, StatusCode};

use crate::{Error, Loops, Profiler, Tensor, Trust, session};

/// An executable: functions that can be dispatched on tensors.
///
/// # Examples
/// ```no_run
/// use halite::{Executable, ExecutableOptions, Tensor, Trust};
///
/// // SAFETY: the executable was compiled by us, and `mul` takes three tensors of four floats.
/// let trust = unsafe { Trust::native_code() };
/// let options = ExecutableOptions::default().native_code(trust);
/// let executable = Executable::load(std::fs::read("mul.so")?, &options)?;
///
/// let input = Tensor::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0])?;
/// let output = Tensor::from_slice(&[4], &[0f32; 4])?;
/// let function = executable.lookup("mul")?;
/// executable.dispatch(function, [1, 1, 1], &[], &[input.clone(), input, output.clone()])?;
/// assert_eq!(output.to_vec::<f32>()?, [1.0, 4.0, 9.0, 16.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Executable {
    executable: Arc<dyn hal_local::Executable>,
    dispatcher: Arc<dyn Dispatcher>,
    format: String,
}

/// How an [`Executable`] is loaded, and on how many threads it runs.
#[derive(Clone, Debug)]
#[must_use]
pub struct ExecutableOptions {
    format: Option<String>,
    constants: Vec<u32>,
    trust: Option<Trust>,
    plugins: PluginManager,
    threads: usize,
    profiler: Option<Profiler>,
}

/// Why an executable cannot be loaded or dispatched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecutableError {
    /// No format was given, and the data is of none that a loader knows.
    #[error("the format of the executable is not given and cannot be told from its data")]
    UnknownFormat,
    /// The executable cannot be loaded.
    #[error("cannot load the executable of format `{format}`")]
    Load {
        /// The format.
        format: String,
        /// Why.
        #[source]
        source: LoadError,
    },
    /// There is no such function.
    #[error("no function `{name}` in the executable")]
    Lookup {
        /// The name asked for.
        name: String,
        /// Why.
        #[source]
        source: LookupError,
    },
    /// A function was refused what it was given, or failed.
    #[error("cannot dispatch function {function}")]
    Dispatch {
        /// The ordinal of the function.
        function: u32,
        /// Why.
        #[source]
        source: DispatchError,
    },
    /// The threads cannot be started.
    #[error(transparent)]
    Threads(Error),
}

impl ExecutableError {
    /// Returns the status code of the failure.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        let abi = |code: hal_abi::StatusCode| StatusCode::from_low_bits(code.0);
        match self {
            Self::UnknownFormat => StatusCode::INVALID_ARGUMENT,
            Self::Load { source, .. } => abi(source.status_code()),
            Self::Lookup { source, .. } => abi(source.status_code()),
            Self::Dispatch { source, .. } => abi(source.status_code()),
            Self::Threads(source) => source.status_code(),
        }
    }
}

impl Default for ExecutableOptions {
    /// Returns options for an executable without imports and constants that is no native code and runs on the caller's
    /// thread.
    fn default() -> Self {
        Self {
            format: None,
            constants: Vec::new(),
            trust: None,
            plugins: PluginManager::new(),
            threads: 1,
            profiler: None,
        }
    }
}

impl ExecutableOptions {
    /// Sets the format, such as `embedded-elf-x86_64`, instead of telling it from the data.
    pub fn format(mut self, format: impl Into<String>) -> Self {
        self.format = Some(format.into());
        self
    }

    /// Sets the executable-level constants.
    pub fn constants(mut self, constants: Vec<u32>) -> Self {
        self.constants = constants;
        self
    }

    /// Allows native code.
    pub fn native_code(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// Resolves imports through `plugins`.
    pub fn plugins(mut self, plugins: PluginManager) -> Self {
        self.plugins = plugins;
        self
    }

    /// Runs dispatches on this many threads: 1 is the caller's alone, 0 is one for each core.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Measures dispatches.
    pub fn profiler(mut self, profiler: Profiler) -> Self {
        self.profiler = Some(profiler);
        self
    }
}

impl Executable {
    /// Loads the executable in `data`.
    ///
    /// # Errors
    /// Fails when no loader takes its format, when it is damaged or for another machine, and when an import is missing.
    pub fn load(data: Vec<u8>, options: &ExecutableOptions) -> Result<Self, ExecutableError> {
        let profiler = options.profiler.as_ref();
        let interrupt = InterruptHandle::default();
        let (trust, plugins) = (options.trust, &options.plugins);
        let loops = Loops::of(trust);
        let loaders = session::registry(Vec::new(), trust, plugins, loops, profiler, &interrupt);
        let dispatcher =
            session::new_dispatcher(options.threads, profiler).map_err(ExecutableError::Threads)?;
        let format = match &options.format {
            Some(format) => format.clone(),
            None => loaders
                .infer_format(&data)
                .ok_or(ExecutableError::UnknownFormat)?,
        };
        let params = ExecutableParams {
            format: &format,
            data: data.into(),
            constants: &options.constants,
        };
        match loaders.load(&params) {
            Ok(executable) => Ok(Self {
                executable,
                dispatcher,
                format,
            }),
            Err(source) => Err(ExecutableError::Load { format, source }),
        }
    }

    /// Returns the format that the executable was loaded as.
    #[must_use]
    pub fn format(&self) -> &str {
        &self.format
    }

    /// Returns the functions, by ordinal.
    pub fn functions(&self) -> impl Iterator<Item = &ExportInfo> {
        let ordinals = 0..u32::try_from(self.executable.export_count()).unwrap_or(u32::MAX);
        ordinals.filter_map(|ordinal| self.executable.export(ordinal))
    }

    /// Returns the ordinal of a function.
    ///
    /// # Errors
    /// `NOT_FOUND` when there is none of the name, `UNAVAILABLE` when the file holds no names.
    pub fn lookup(&self, name: &str) -> Result<u32, ExecutableError> {
        self.executable
            .lookup(name.as_bytes())
            .map_err(|source| ExecutableError::Lookup {
                name: name.to_owned(),
                source,
            })
    }

    /// Runs all workgroups of a function on the memory of `bindings`, which it may write.
    ///
    /// # Errors
    /// Fails when constants, bindings or counts are not what the function wants, and as a workgroup fails.
    pub fn dispatch(
        &self,
        function: u32,
        workgroup_count: [u32; 3],
        constants: &[u32],
        bindings: &[Tensor],
    ) -> Result<(), ExecutableError> {
        let bindings: Vec<Binding<'_>> = bindings.iter().map(binding).collect();
        Dispatch::new(
            &*self.executable,
            function.into(),
            workgroup_count,
            constants,
            &bindings,
        )
        .and_then(|dispatch| self.dispatcher.dispatch(&*self.executable, &dispatch))
        .map_err(|source| ExecutableError::Dispatch { function, source })
    }
}

/// Returns the memory of a tensor's elements.
fn binding(tensor: &Tensor) -> Binding<'_> {
    let buffer = tensor.buffer();
    // Portable kernels find the buffer behind the bytes by its type.
    let owner = Some(buffer as &(dyn Any + Send + Sync));
    match (buffer.as_shared(), buffer.as_constant()) {
        (Some(bytes), _) => Binding::shared(bytes, owner),
        (None, bytes) => Binding::read_only(bytes.unwrap_or_default(), owner),
    }
}

impl fmt::Debug for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executable")
            .field("format", &self.format)
            .field("functions", &self.executable.export_count())
            .finish_non_exhaustive()
    }
}
