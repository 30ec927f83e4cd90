//! The plugin manager: who is registered, in which order they are asked, and when they go.
//!
//! The one rule to know: a resolution sees exactly one snapshot of the registrations, and no lock
//! is held while a provider runs or goes away.

use std::ffi::CStr;
use std::sync::Arc;

use crate::resolution::resolve_from;
use crate::snapshot::SnapshotCell;
use crate::{
    ImportProvider, Plugin, ProviderError, RegisterError, ResolveError, ResolveRequest,
    ResolvedImports, Resolver,
};

/// A growing list of import providers, asked newest first.
///
/// A cheap handle: clones share the registrations. Providers may be registered, replaced and
/// unregistered at any time and from any thread, also from inside a provider. A resolution that
/// runs meanwhile sees the registrations as they were or as they are, never a mixture.
///
/// Names are labels, not keys: the same name may be registered twice, as the same plugin may be
/// loaded twice. [`replace`](Self::replace) and [`unregister`](Self::unregister) act on the newest
/// registration of a name.
///
/// When the last handle goes, registrations are dropped newest first. A plugin that is still in use
/// by [`ResolvedImports`] lives on until those are dropped.
///
/// # Examples
///
/// ```
/// use hal_plugin::{Import, ImportProvider, PluginManager, ProviderError, ResolveRequest};
/// # use std::{ffi::c_void, sync::Arc};
///
/// unsafe extern "C" fn fast_add(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> i32 {
///     0
/// }
///
/// struct Builtins;
///
/// impl ImportProvider for Builtins {
///     fn name(&self) -> &str {
///         "builtins"
///     }
///     fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
///         request.fill_with(|name| match name.symbol() {
///             // SAFETY: `fast_add` can be called at any time, on any thread, with any arguments.
///             b"fast_add" => Some(unsafe { Import::new(fast_add, std::ptr::null_mut()) }),
///             _ => None,
///         });
///         Ok(())
///     }
/// }
///
/// let manager = PluginManager::new();
/// manager.register_provider("builtins", Arc::new(Builtins))?;
///
/// let imports = manager.resolve(&[c"fast_add", c"?fast_sub"])?;
/// assert!(imports.get(0).is_some());
/// assert!(imports.get(1).is_none());
///
/// let error = manager.resolve(&[c"fast_mul"]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "missing 1 required executable import: [fast_mul]; providers asked: [builtins]"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PluginManager(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: String,
    capacity: Option<usize>,
    registrations: SnapshotCell<Registrations>,
}

impl PluginManager {
    /// Creates an empty manager without a limit.
    #[must_use]
    pub fn new() -> Self {
        Self::build(DEFAULT_NAME.to_owned(), None, Registrations::default())
    }

    /// Creates an empty manager that holds at most `capacity` registrations.
    #[must_use]
    pub fn with_capacity(capacity: usize) -> Self {
        Self::build(
            DEFAULT_NAME.to_owned(),
            Some(capacity),
            Registrations::default(),
        )
    }

    /// Starts the description of a manager with a name, a limit or default registrations.
    #[must_use]
    pub fn builder() -> PluginManagerBuilder {
        PluginManagerBuilder {
            name: DEFAULT_NAME.to_owned(),
            capacity: None,
            defaults: Registrations::default(),
        }
    }

    fn build(name: String, capacity: Option<usize>, registrations: Registrations) -> Self {
        Self(Arc::new(Shared {
            name,
            capacity,
            registrations: SnapshotCell::new(registrations),
        }))
    }

    /// Registers `provider` under `name`. From now on it is asked before all others.
    ///
    /// # Errors
    ///
    /// [`RegisterError::CapacityReached`] if a limit was set and is reached.
    pub fn register_provider(
        &self,
        name: impl Into<Arc<str>>,
        provider: Arc<dyn ImportProvider>,
    ) -> Result<(), RegisterError> {
        let registration = Registration {
            name: name.into(),
            provider,
        };
        self.0.registrations.update(|current| {
            let next = current.with(&registration, self.0.capacity)?;
            Ok((next, ()))
        })
    }

    /// Registers `plugin` under its own name. From now on it is asked before all others.
    ///
    /// # Errors
    ///
    /// [`RegisterError::CapacityReached`] if a limit was set and is reached.
    pub fn register_plugin(&self, plugin: Plugin) -> Result<(), RegisterError> {
        self.register_provider(plugin.label(), Arc::new(plugin))
    }

    /// Puts `provider` in the place of the newest registration of `name`, and returns the provider
    /// that was there. Its place in the order stays.
    ///
    /// # Errors
    ///
    /// [`RegisterError::NotRegistered`] if there is none.
    pub fn replace(
        &self,
        name: &str,
        provider: Arc<dyn ImportProvider>,
    ) -> Result<Arc<dyn ImportProvider>, RegisterError> {
        self.0.registrations.update(|current| {
            let index = current.newest(name)?;
            let mut next = current.clone();
            let place = &mut next.list[index].provider;
            let previous = std::mem::replace(place, Arc::clone(&provider));
            Ok((next, previous))
        })
    }

    /// Removes the newest registration of `name`, and returns the provider that was there.
    ///
    /// Imports that were resolved from it stay callable.
    ///
    /// # Errors
    ///
    /// [`RegisterError::NotRegistered`] if there is none.
    pub fn unregister(&self, name: &str) -> Result<Arc<dyn ImportProvider>, RegisterError> {
        self.0.registrations.update(|current| {
            let index = current.newest(name)?;
            let mut next = current.clone();
            let previous = next.list.remove(index).provider;
            Ok((next, previous))
        })
    }

    /// Returns the registrations as they are now. Later changes do not show in it.
    #[must_use]
    pub fn snapshot(&self) -> ManagerSnapshot {
        ManagerSnapshot(self.0.registrations.load_full())
    }

    /// Resolves `names`: see [`resolve_imports`](crate::resolve_imports).
    ///
    /// # Errors
    ///
    /// Those of [`resolve_imports`](crate::resolve_imports).
    pub fn resolve(&self, names: &[&CStr]) -> Result<ResolvedImports, ResolveError> {
        let mut imports = ResolvedImports::new();
        resolve_from(Some(self), names, &mut imports)?;
        Ok(imports)
    }

    /// Returns a resolver: for those who resolve often, and reuse memory.
    #[must_use]
    pub fn resolver(&self) -> Resolver<'_> {
        Resolver::new(self, self.0.registrations.reader())
    }
}

impl Default for PluginManager {
    fn default() -> Self {
        Self::new()
    }
}

impl ImportProvider for PluginManager {
    fn name(&self) -> &str {
        &self.0.name
    }

    #[inline]
    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        self.0.registrations.load().resolve(request)
    }
}

/// The name of a manager that was given none.
const DEFAULT_NAME: &str = "plugin manager";

/// Describes a [`PluginManager`].
///
/// The default registrations take the place of the registration hook that a C program links in:
/// they come first, so that whatever is registered later overrides them.
#[derive(Debug)]
pub struct PluginManagerBuilder {
    name: String,
    capacity: Option<usize>,
    defaults: Registrations,
}

impl PluginManagerBuilder {
    /// Sets the name that errors show when the manager is itself a provider.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets the largest number of registrations, defaults included.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Registers a provider from the start, after those named before.
    #[must_use]
    pub fn default_provider(
        mut self,
        name: impl Into<Arc<str>>,
        provider: Arc<dyn ImportProvider>,
    ) -> Self {
        self.defaults.list.push(Registration {
            name: name.into(),
            provider,
        });
        self
    }

    /// Registers a plugin from the start, after those named before.
    #[must_use]
    pub fn default_plugin(self, plugin: Plugin) -> Self {
        self.default_provider(plugin.label(), Arc::new(plugin))
    }

    /// Creates the manager.
    ///
    /// # Errors
    ///
    /// [`RegisterError::CapacityReached`] if there are more defaults than the capacity allows.
    pub fn build(self) -> Result<PluginManager, RegisterError> {
        if let Some(capacity) = self.capacity
            && let Some(first_without_place) = self.defaults.list.get(capacity)
        {
            return Err(RegisterError::CapacityReached {
                name: first_without_place.name.to_string(),
                capacity,
            });
        }
        Ok(PluginManager::build(
            self.name,
            self.capacity,
            self.defaults,
        ))
    }
}

/// The registrations of a manager at one moment. A provider like the manager itself.
#[derive(Clone, Debug)]
pub struct ManagerSnapshot(Arc<Registrations>);

impl ManagerSnapshot {
    /// Returns the number of registrations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.list.len()
    }

    /// Returns whether nothing is registered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.list.is_empty()
    }

    /// Returns the registered names in the order in which they are asked: newest first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.list.iter().rev().map(|entry| &*entry.name)
    }
}

impl ImportProvider for ManagerSnapshot {
    fn name(&self) -> &str {
        "plugin manager snapshot"
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        self.0.resolve(request)
    }
}

/// A provider and the name it is registered under.
#[derive(Clone)]
struct Registration {
    name: Arc<str>,
    provider: Arc<dyn ImportProvider>,
}

impl Registration {
    /// Returns the provider's error, unless it only means that others may know more.
    #[cold]
    fn judge(&self, error: ProviderError) -> Result<(), ProviderError> {
        if error.is_not_found() {
            return Ok(());
        }
        Err(error.in_provider(&self.name))
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.name, f)
    }
}

/// An immutable list of registrations, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registrations {
    list: Vec<Registration>,
}

impl Registrations {
    /// Returns the list with one more registration at its end.
    fn with(&self, last: &Registration, capacity: Option<usize>) -> Result<Self, RegisterError> {
        if let Some(capacity) = capacity
            && self.list.len() >= capacity
        {
            return Err(RegisterError::CapacityReached {
                name: last.name.to_string(),
                capacity,
            });
        }
        let mut list = Vec::with_capacity(self.list.len() + 1);
        list.extend_from_slice(&self.list);
        list.push(last.clone());
        Ok(Self { list })
    }

    /// Returns the index of the newest registration of `name`.
    fn newest(&self, name: &str) -> Result<usize, RegisterError> {
        let same_name = |entry: &Registration| &*entry.name == name;
        self.list
            .iter()
            .rposition(same_name)
            .ok_or_else(|| RegisterError::NotRegistered {
                name: name.to_owned(),
            })
    }

    /// Asks the providers, newest first, until every slot is filled or one of them fails.
    #[inline]
    pub(crate) fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        if request.is_complete() {
            return Ok(());
        }
        request.enter()?;
        let result = self.ask_each(request);
        request.leave();
        result
    }

    #[inline]
    fn ask_each(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        for entry in self.list.iter().rev() {
            if let Err(error) = entry.provider.resolve(request) {
                entry.judge(error)?;
            }
            if request.is_complete() {
                return Ok(());
            }
        }
        self.record_asked(request);
        Ok(())
    }

    /// Leaves a note of who was asked in vain, for the error.
    #[cold]
    fn record_asked(&self, request: &mut ResolveRequest<'_>) {
        if request.is_missing_required() {
            request.record_asked(self.list.iter().rev().map(|entry| Arc::clone(&entry.name)));
        }
    }
}

/// Drops the newest registration first, as C hosts do.
impl Drop for Registrations {
    fn drop(&mut self) {
        while self.list.pop().is_some() {}
    }
}

#[cfg(test)]
mod model;
