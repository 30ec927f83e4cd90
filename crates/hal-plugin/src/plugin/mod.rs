//! A loaded plugin: from the query to `unload`, and as an import provider in between.

use std::ffi::c_void;
use std::fmt;
use std::path::PathBuf;
use std::ptr;
use std::sync::Arc;

use hal_abi::{
    PluginEnvironment, PluginFeatures, PluginQueryFn, Resolution, StringPair, StringView,
};
use hal_elf::Image;

use crate::source::{self, sanitizer};
use crate::{
    ImportProvider, PluginError, PluginFormat, PluginSpec, ProviderError, ProviderErrorKind,
    ResolveRequest,
};

mod memory;
mod table;

use self::table::PluginTable;

pub use self::memory::PluginMemory;

/// A load parameter of a plugin: a key and its value.
pub type Parameter<'a> = (&'a str, &'a str);

/// A loaded plugin instance.
///
/// A cheap handle: clones share the instance. Its `unload` runs when the last of the clones, the
/// managers it is registered with and the [`ResolvedImports`](crate::ResolvedImports) that use it
/// is dropped, on the thread that drops it; its code goes after that. Loading the same plugin twice
/// gives two instances.
///
/// # Slots are copied
///
/// The plugin ABI lets a plugin replace its own entries in the slots of an executable later on, as
/// a JIT compiler might. That is not supported here: a plugin sees copies of the slots, which are
/// freed after its `resolve` returns.
#[derive(Clone)]
pub struct Plugin(Arc<Instance>);

impl Plugin {
    /// Loads the plugin that `spec` names.
    ///
    /// A system library is mapped from a private copy of its file, resolved completely
    /// (`RTLD_NOW`), with its symbols kept to itself (`RTLD_LOCAL`), and stays mapped until the
    /// process ends: see the crate's documentation for why. A bare file name without a `/` is looked
    /// up by the system's loader on its search path, not in the current directory.
    ///
    /// # Errors
    ///
    /// See [`PluginError`]. If the plugin's `load` fails its `unload` is not called.
    ///
    /// # Safety
    ///
    /// The file must be trusted code. If it exports the plugin query function, that function and
    /// all it leads to obey the plugin ABI (`docs/abi.md`, sections 2 to 6): in particular, no
    /// pointer passed to a call is used after the call unless the ABI says so, no slot is written
    /// after `resolve` returns, and every function it resolves may be called from any thread with
    /// the context beside it until `unload`.
    pub unsafe fn load(spec: &PluginSpec) -> Result<Self, PluginError> {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!("load_plugin", path = %spec.path().display()).entered();
        let parameters: Vec<Parameter<'_>> = spec.parameters().collect();
        match spec.format() {
            PluginFormat::System => {
                // SAFETY: the caller vouches for the file and its initializers.
                let query = unsafe { source::system::open(spec.path()) }?;
                let origin = PluginOrigin::System(spec.path().to_owned());
                // SAFETY: the caller vouches for the plugin in the file, which stays mapped.
                unsafe { Self::start(query, None, origin, &parameters) }
            }
            PluginFormat::Embedded => {
                let origin = PluginOrigin::Embedded(spec.path().to_owned());
                let bytes = source::read(spec.path())?;
                // SAFETY: the caller vouches for the file and its initializers.
                let (query, image) = unsafe { source::embedded::open(&bytes, &origin) }?;
                // SAFETY: the caller vouches for the plugin in the file; `image` holds it.
                unsafe { Self::start(query, Some(image), origin, &parameters) }
            }
        }
    }

    /// Loads a plugin that is linked into the program.
    ///
    /// # Errors
    ///
    /// See [`PluginError`].
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load): `query` and all it leads to obey the plugin ABI.
    pub unsafe fn from_static(
        query: PluginQueryFn,
        parameters: &[Parameter<'_>],
    ) -> Result<Self, PluginError> {
        // SAFETY: the caller vouches for the plugin; its code is part of the program.
        unsafe { Self::start(query, None, PluginOrigin::Static, parameters) }
    }

    /// Loads a plugin from the bytes of a freestanding ELF image or a FatELF file.
    ///
    /// The bytes are copied; they may be dropped afterwards.
    ///
    /// # Errors
    ///
    /// See [`PluginError`].
    ///
    /// # Safety
    ///
    /// As for [`load`](Self::load), with the bytes in place of the file.
    pub unsafe fn from_bytes(
        bytes: &[u8],
        parameters: &[Parameter<'_>],
    ) -> Result<Self, PluginError> {
        let origin = PluginOrigin::Memory;
        // SAFETY: the caller vouches for the image and its initializers.
        let (query, image) = unsafe { source::embedded::open(bytes, &origin) }?;
        // SAFETY: the caller vouches for the plugin in the image; `image` holds it.
        unsafe { Self::start(query, Some(image), origin, parameters) }
    }

    /// Queries and loads the plugin behind `query`.
    ///
    /// # Safety
    ///
    /// `query` and all it leads to obey the plugin ABI, and are mapped as long as `image` lives, or
    /// until the process ends if there is none.
    unsafe fn start(
        query: PluginQueryFn,
        image: Option<Image>,
        origin: PluginOrigin,
        parameters: &[Parameter<'_>],
    ) -> Result<Self, PluginError> {
        // SAFETY: by this function's contract; `image` is kept beside the table from here on.
        let table = match unsafe { PluginTable::query(query, sanitizer::runs_in_this_process) } {
            Ok(table) => table,
            Err(source) => return Err(PluginError::Rejected { origin, source }),
        };
        let memory = PluginMemory::default();
        // SAFETY: a checked table of a plugin that obeys the ABI; `memory` outlives the instance.
        let state = unsafe { call_load(&table, &memory, parameters) };
        match state {
            Ok(state) => Ok(Self(Arc::new(Instance {
                state,
                label: label(&table.name, &origin),
                table,
                origin,
                memory,
                _image: image,
            }))),
            Err(raw) => Err(PluginError::Load {
                origin,
                plugin: table.name,
                raw,
            }),
        }
    }

    /// Returns the name in the plugin's header; empty if it has none.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.table.name
    }

    /// Returns the description in the plugin's header; empty if it has none.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.0.table.description
    }

    /// Returns the version of the plugin ABI that the plugin implements.
    #[must_use]
    pub fn version(&self) -> u32 {
        self.0.table.version
    }

    /// Returns the feature bits in the plugin's header.
    ///
    /// A freestanding plugin should set [`PluginFeatures::STANDALONE`]; hosts load it without.
    #[must_use]
    pub fn features(&self) -> PluginFeatures {
        self.0.table.features
    }

    /// Returns where the plugin's code came from.
    #[must_use]
    pub fn origin(&self) -> &PluginOrigin {
        &self.0.origin
    }

    /// Returns the account of the host memory that the plugin holds. It outlives the plugin.
    #[must_use]
    pub fn memory(&self) -> PluginMemory {
        self.0.memory.clone()
    }

    /// Returns the name to register the plugin under: its own, or its origin if it has none.
    pub(crate) fn label(&self) -> Arc<str> {
        Arc::clone(&self.0.label)
    }
}

fn label(name: &str, origin: &PluginOrigin) -> Arc<str> {
    if name.is_empty() {
        return origin.to_string().into();
    }
    name.into()
}

impl ImportProvider for Plugin {
    fn name(&self) -> &str {
        &self.0.label
    }

    /// Lets the plugin fill the empty slots.
    ///
    /// The resolution bits that the plugin reports are ignored: the slots tell.
    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        if request.is_complete() {
            return Ok(());
        }
        let instance = &*self.0;
        let mut resolution = Resolution::COMPLETE;
        let (status, has_filled) = request.fill_from_foreign(|params| {
            // SAFETY: the plugin is loaded and not unloaded while `self` lives, and obeys the ABI;
            // the parameters describe living arrays of `count` entries.
            unsafe { (instance.table.resolve)(instance.state, params, &raw mut resolution) }
        });
        if has_filled {
            request.keep_alive(Arc::clone(&self.0) as _);
        }
        if status.is_ok() {
            return Ok(());
        }
        Err(ProviderErrorKind::Status { raw: status.0 }.into())
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.0.table.name)
            .field("origin", &self.0.origin)
            .finish_non_exhaustive()
    }
}

/// Where a plugin's code came from.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PluginOrigin {
    /// It is linked into the program.
    Static,
    /// A system library: a file, or a bare name that the system's loader found.
    System(PathBuf),
    /// A file with a freestanding image.
    Embedded(PathBuf),
    /// A freestanding image in memory.
    Memory,
}

impl fmt::Display for PluginOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static => f.write_str("linked plugin"),
            Self::System(path) => write!(f, "system library `{}`", path.display()),
            Self::Embedded(path) => write!(f, "freestanding image `{}`", path.display()),
            Self::Memory => f.write_str("freestanding image in memory"),
        }
    }
}

/// A plugin between a successful `load` and its `unload`.
///
/// Invariant: `table` was checked, `load` returned OK and stored `state`, and `unload` has not run.
struct Instance {
    table: PluginTable,
    /// What `load` stored; NULL is legal.
    state: *mut c_void,
    /// Never empty.
    label: Arc<str>,
    origin: PluginOrigin,
    /// The account that the allocator handed to `load` points at.
    memory: PluginMemory,
    /// Keeps the functions in `table` mapped. Last, and so dropped last.
    _image: Option<Image>,
}

// SAFETY: `state` blocks the automatic impl. It is only passed back to the plugin, whose functions
// may be called from any thread: `resolve` concurrently, `unload` once when nothing else runs.
unsafe impl Send for Instance {}
// SAFETY: as for `Send`.
unsafe impl Sync for Instance {}

impl Drop for Instance {
    fn drop(&mut self) {
        if let Some(unload) = self.table.unload {
            // SAFETY: `load` succeeded, this runs once, and nobody else holds the instance, so no
            // call into the plugin is in flight; the code is still mapped.
            unsafe { unload(self.state) };
        }
    }
}

/// Calls `load` and returns the state it stored, or the status it returned.
///
/// # Safety
///
/// The plugin obeys the ABI and is mapped, and a clone of `memory` lives until it is unloaded.
unsafe fn call_load(
    table: &PluginTable,
    memory: &PluginMemory,
    parameters: &[Parameter<'_>],
) -> Result<*mut c_void, usize> {
    let environment = PluginEnvironment {
        host_allocator: memory.allocator(),
    };
    let pairs: Vec<StringPair> = parameters
        .iter()
        .map(|(key, value)| StringPair {
            key: view(key),
            value: view(value),
        })
        .collect();
    let mut state = ptr::null_mut();
    // SAFETY: a checked function of a plugin that obeys the ABI; environment and strings live
    // during the call, and the allocator longer.
    let status = unsafe {
        (table.load)(
            &raw const environment,
            pairs.len(),
            pairs.as_ptr(),
            &raw mut state,
        )
    };
    if status.is_ok() {
        return Ok(state);
    }
    Err(status.0)
}

fn view(text: &str) -> StringView {
    StringView {
        data: text.as_ptr().cast(),
        size: text.len(),
    }
}
