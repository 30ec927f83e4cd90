//! Resolving a list of names against a provider, and the table that comes out.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;

use hal_abi::{ImportFn, Resolution};

use crate::slots::ImportSlots;
use crate::{Import, ImportName, ImportProvider, KeepAlive, ResolveError, ResolveRequest};

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
    let mut slots = ImportSlots::new(names.len());
    if names.is_empty() {
        return Ok(ResolvedImports {
            slots,
            keep_alives: Vec::new(),
            resolution: Resolution::COMPLETE,
        });
    }
    let (functions, contexts) = slots.split_mut();
    let mut request = ResolveRequest::new(names, functions, contexts, names.len());
    if let Some(provider) = provider {
        match provider.resolve(&mut request) {
            Ok(()) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(ResolveError::from_provider(provider.name(), error)),
        }
    }
    if request.is_missing_required() {
        return Err(missing(provider, &mut request));
    }
    let resolution = if request.is_complete() {
        Resolution::COMPLETE
    } else {
        Resolution::MISSING_OPTIONAL
    };
    let keep_alives = request.into_keep_alives();
    Ok(ResolvedImports {
        slots,
        keep_alives,
        resolution,
    })
}

/// Describes the failure of a request in which required slots stayed empty.
#[cold]
fn missing(
    provider: Option<&dyn ImportProvider>,
    request: &mut ResolveRequest<'_>,
) -> ResolveError {
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
        None => vec![provider.name().to_owned()],
    };
    ResolveError::MissingImports { missing, asked }
}

/// Resolved imports: two parallel arrays at a stable address, and whatever keeps the functions in
/// them callable.
///
/// Entry `i` belongs to name `i`. The function of a missing optional import is NULL, and so is its
/// context. The arrays do not move when this value does, are never written again, and live as long
/// as it does; so does every plugin that supplied a function.
pub struct ResolvedImports {
    // Field order is drop order: the table goes before the code it points into.
    slots: ImportSlots,
    keep_alives: Vec<KeepAlive>,
    resolution: Resolution,
}

impl ResolvedImports {
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

impl fmt::Debug for ResolvedImports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolvedImports")
            .field("functions", &self.slots.split().0)
            .field("keep_alives", &self.keep_alives.len())
            .field("resolution", &self.resolution)
            .finish()
    }
}
