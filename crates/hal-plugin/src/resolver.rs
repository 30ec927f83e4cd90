//! Resolving again and again through one manager.

use std::ffi::CStr;
use std::fmt;

use crate::manager::Registrations;
use crate::resolution::resolve_from;
use crate::snapshot::SnapshotReader;
use crate::{
    ImportProvider, PluginManager, ProviderError, ResolveError, ResolveRequest, ResolvedImports,
};

/// Resolves through a [`PluginManager`] and remembers the registrations it saw
/// last, so that it costs less than [`PluginManager::resolve`] as
/// long as they do not change.
///
/// Each resolution sees the registrations as they are at that time. In exchange, a provider that was
/// unregistered stays alive until the resolver is used again or dropped.
///
/// # Examples
///
/// ```
/// use hal_plugin::{PluginManager, ResolvedImports};
///
/// let manager = PluginManager::new();
/// let mut resolver = manager.resolver();
/// let mut imports = ResolvedImports::new();
/// for _ in 0..1000 {
///     resolver.resolve_into(&[c"?prefetch"], &mut imports)?;
///     assert!(imports.get(0).is_none());
/// }
/// # Ok::<(), hal_plugin::ResolveError>(())
/// ```
pub struct Resolver<'a> {
    manager: &'a PluginManager,
    registrations: SnapshotReader<'a, Registrations>,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(
        manager: &'a PluginManager,
        registrations: SnapshotReader<'a, Registrations>,
    ) -> Self {
        Self {
            manager,
            registrations,
        }
    }

    /// Resolves `names` into the memory of `imports`: see
    /// [`resolve_imports_into`](crate::resolve_imports_into).
    ///
    /// # Errors
    ///
    /// Those of [`resolve_imports`](crate::resolve_imports); `imports` is empty then.
    #[inline]
    pub fn resolve_into(
        &mut self,
        names: &[&CStr],
        imports: &mut ResolvedImports,
    ) -> Result<(), ResolveError> {
        let provider = Current {
            manager: self.manager,
            registrations: self.registrations.load(),
        };
        resolve_from(Some(&provider), names, imports)
    }
}

impl fmt::Debug for Resolver<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Resolver")
            .field(&self.manager.name())
            .finish()
    }
}

/// The registrations of a manager during one resolution.
struct Current<'a> {
    manager: &'a PluginManager,
    registrations: &'a Registrations,
}

impl ImportProvider for Current<'_> {
    fn name(&self) -> &str {
        self.manager.name()
    }

    #[inline]
    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        self.registrations.resolve(request)
    }
}
