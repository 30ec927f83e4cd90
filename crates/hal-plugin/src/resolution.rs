//! Resolving a list of names against a provider, and the table that comes out.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;

use hal_abi::{ImportFn, Resolution};

use crate::slots::ImportSlots;
use crate::{
    Import, ImportName, ImportProvider, KeepAlive, ProviderError, ResolveError, ResolveRequest,
};

/// Resolves `names` against `provider`.
///
/// Names may be unsorted, empty or repeated. A name that starts with `?` may stay unresolved.
/// Success is decided from the slots, not from what providers claim: every required name has a
/// function, whoever supplied it. With no provider at all, a list of optional names still resolves.
///
/// # Errors
///
/// * [`ResolveError::MissingImports`] if required names stay unresolved: all of them, and who was
///   asked.
/// * [`ResolveError::NoProvider`] if there is no provider and a name is required.
/// * [`ResolveError::Provider`] if a provider failed with anything but NOT_FOUND.
pub fn resolve_imports(
    provider: Option<&dyn ImportProvider>,
    names: &[&CStr],
) -> Result<ResolvedImports, ResolveError> {
    let mut imports = ResolvedImports::new();
    resolve_imports_into(provider, names, &mut imports)?;
    Ok(imports)
}

/// Resolves `names` against `provider` into the memory of `imports`, which is used again if it is
/// large enough. Otherwise like [`resolve_imports`].
///
/// What `imports` held is released first, plugins included, and whatever pointers into it were
/// given out are invalid from then on.
///
/// # Errors
///
/// Those of [`resolve_imports`]; `imports` is empty then.
pub fn resolve_imports_into(
    provider: Option<&dyn ImportProvider>,
    names: &[&CStr],
    imports: &mut ResolvedImports,
) -> Result<(), ResolveError> {
    resolve_from(provider, names, imports)
}

/// Resolves `names` against a provider whose type may be known.
#[inline]
pub(crate) fn resolve_from<P: ImportProvider + ?Sized>(
    provider: Option<&P>,
    names: &[&CStr],
    imports: &mut ResolvedImports,
) -> Result<(), ResolveError> {
    imports.clear();
    if names.is_empty() {
        return Ok(());
    }
    #[cfg(feature = "tracing")]
    let _span = tracing::debug_span!("resolve", names = names.len()).entered();
    let (functions, contexts) = imports.slots.prepare(names.len());
    let mut request = ResolveRequest::new(names, functions, contexts, &mut imports.keep_alives);
    let result = match provider {
        Some(provider) => provider.resolve(&mut request),
        None => Ok(()),
    };
    if result.is_err() || !request.is_plain() {
        imports.resolution = settle(provider.map(P::name), result, request)?;
    } else {
        request.end();
    }
    imports.slots.publish(names.len());
    Ok(())
}

/// Ends a request that is not simply complete, and decides what became of it.
#[cold]
fn settle(
    provider: Option<&str>,
    result: Result<(), ProviderError>,
    mut request: ResolveRequest<'_>,
) -> Result<Resolution, ResolveError> {
    let error = match (provider, result) {
        (Some(provider), Err(error)) if !error.is_not_found() => {
            ResolveError::from_provider(provider, error)
        }
        _ if request.is_complete() => return Ok(Resolution::COMPLETE),
        _ if request.is_missing_required() => missing(provider, &mut request),
        _ => {
            request.clear_empty_contexts();
            return Ok(Resolution::MISSING_OPTIONAL);
        }
    };
    request.release();
    Err(error)
}

/// Describes the failure of a request in which required slots stayed empty.
fn missing(provider: Option<&str>, request: &mut ResolveRequest<'_>) -> ResolveError {
    let mut required: Vec<ImportName<'_>> = request
        .missing()
        .filter(|name| !name.is_optional())
        .collect();
    required.sort_unstable();
    required.dedup();
    let missing = required.iter().map(ToString::to_string).collect();
    let Some(provider) = provider else {
        return ResolveError::NoProvider { missing };
    };
    let asked = match request.take_asked() {
        Some(asked) => asked.iter().map(ToString::to_string).collect(),
        None => vec![provider.to_owned()],
    };
    ResolveError::MissingImports { missing, asked }
}

/// Resolved imports: two parallel arrays at a stable address, and whatever keeps the functions in
/// them callable.
///
/// Entry `i` belongs to name `i`. The function of a missing optional import is NULL, and so is its
/// context. The arrays do not move when this value does, and live as long as it does; so does every
/// plugin that supplied a function. They are written again only by
/// [`resolve_imports_into`] and [`Resolver::resolve_into`](crate::Resolver::resolve_into), which
/// borrow the value mutably.
pub struct ResolvedImports {
    // Field order is drop order: the table goes before the code it points into.
    slots: ImportSlots,
    keep_alives: Vec<KeepAlive>,
    resolution: Resolution,
}

impl ResolvedImports {
    /// Creates an empty list, to be resolved into. It takes no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            slots: ImportSlots::new(),
            keep_alives: Vec::new(),
            resolution: Resolution::COMPLETE,
        }
    }

    /// Removes all imports and releases what kept them alive. The memory is kept.
    pub fn clear(&mut self) {
        self.slots.clear();
        self.resolution = Resolution::COMPLETE;
        if !self.keep_alives.is_empty() {
            release(&mut self.keep_alives);
        }
    }

    /// Returns the number of imports.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.count()
    }

    /// Returns whether there are no imports.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slots.count() == 0
    }

    /// Returns the array of functions, or NULL if there are no imports.
    #[must_use]
    pub fn functions(&self) -> *const Option<ImportFn> {
        if self.is_empty() {
            return ptr::null();
        }
        self.slots.functions_ptr()
    }

    /// Returns the array of contexts, or NULL if there are no imports.
    #[must_use]
    pub fn contexts(&self) -> *const *mut c_void {
        if self.is_empty() {
            return ptr::null();
        }
        self.slots.contexts_ptr()
    }

    /// Returns import `index`: `None` if it is a missing optional one, or if there is no such index.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<Import> {
        let (functions, contexts) = self.slots.split();
        let function = (*functions.get(index)?)?;
        Some(Import::from_slot(function, contexts[index]))
    }

    /// Returns whether an optional import is missing.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }
}

/// Drops keep-alives, out of the way of resolutions that have none.
#[inline(never)]
fn release(keep_alives: &mut Vec<KeepAlive>) {
    keep_alives.clear();
}

impl Default for ResolvedImports {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ResolvedImports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedImports")
            .field("functions", &self.slots.split().0)
            .field("keep_alives", &self.keep_alives.len())
            .field("resolution", &self.resolution)
            .finish()
    }
}
