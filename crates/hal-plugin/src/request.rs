//! The request that walks from provider to provider: the names, their slots, and what the providers
//! leave behind.
//!
//! The one rule to know: a slot that is filled is never written again. Providers in Rust only see
//! empty slots, and plugins work on copies of which only the formerly empty slots are taken over.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::ptr;
use std::sync::Arc;

use hal_abi::{ImportFn, ResolveParams};

use crate::{Import, ImportName, KeepAlive, ProviderError, ProviderErrorKind};

/// How deep managers may be nested. Far above any use, far below the end of a stack.
const NESTING_LIMIT: usize = 64;

/// A request to resolve import names, passed from provider to provider until no slot is empty.
pub struct ResolveRequest<'a> {
    names: &'a [&'a CStr],
    functions: &'a mut [Option<ImportFn>],
    /// Those of empty slots have no meaning until the request ends: they are not NULL.
    contexts: &'a mut [*mut c_void],
    /// The number of `functions` that are `None`.
    empty_count: usize,
    /// The number of managers on the call stack.
    depth: usize,
    keep_alives: &'a mut Vec<KeepAlive>,
    /// What most requests never need.
    rare: Option<Box<Rare>>,
}

/// The parts of a request that only failures and plugins need.
#[derive(Default)]
struct Rare {
    /// The providers that managers asked in vain; `None` if no manager was involved.
    asked: Option<Vec<Arc<str>>>,
    /// The arrays that plugins see, made for the first plugin that is asked.
    foreign: ForeignArrays,
}

impl<'a> ResolveRequest<'a> {
    /// Creates a request whose slots are all empty. The three slices have the same length.
    pub(crate) fn new(
        names: &'a [&'a CStr],
        functions: &'a mut [Option<ImportFn>],
        contexts: &'a mut [*mut c_void],
        keep_alives: &'a mut Vec<KeepAlive>,
    ) -> Self {
        debug_assert_eq!(names.len(), functions.len());
        debug_assert_eq!(names.len(), contexts.len());
        Self {
            names,
            functions,
            contexts,
            empty_count: names.len(),
            depth: 0,
            keep_alives,
            rare: None,
        }
    }

    /// Returns whether every slot is filled, so that there is nothing left to do.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.empty_count == 0
    }

    /// Returns the number of names whose slot is empty.
    #[must_use]
    pub fn missing_count(&self) -> usize {
        self.empty_count
    }

    /// Returns the names whose slot is empty, in the order of the import table.
    pub fn missing(&self) -> impl Iterator<Item = ImportName<'a>> {
        let slots = self.names.iter().zip(self.functions.iter());
        slots
            .filter(|(_, function)| function.is_none())
            .map(|(name, _)| ImportName::new(name))
    }

    /// Calls `find` for each name whose slot is empty, and fills the slot with what it returns.
    pub fn fill_with(&mut self, mut find: impl FnMut(ImportName<'a>) -> Option<Import>) {
        let are_all_empty = self.empty_count == self.names.len();
        let slots = self.functions.iter_mut().zip(self.contexts.iter_mut());
        for (name, (function, context)) in self.names.iter().zip(slots) {
            if !are_all_empty && function.is_some() {
                continue;
            }
            if let Some(import) = find(ImportName::new(name)) {
                *function = Some(import.function());
                *context = import.context();
                self.empty_count -= 1;
            }
        }
    }

    /// Keeps `owner` alive for as long as the result of this resolution lives.
    ///
    /// A provider attaches whatever its imports need: see [`Import::new`].
    pub fn keep_alive(&mut self, owner: KeepAlive) {
        self.keep_alives.push(owner);
    }

    /// Returns whether the request is complete and needed nothing special.
    pub(crate) fn is_plain(&self) -> bool {
        self.empty_count == 0 && self.rare.is_none()
    }

    /// Drops the request. Where it is known to be plain this is no code at all, whereas the compiler
    /// calls a function for the implicit drop.
    #[inline]
    pub(crate) fn end(self) {
        let Self { rare, .. } = self;
        drop(rare);
    }

    /// Returns whether a slot of a required import is empty.
    pub(crate) fn is_missing_required(&self) -> bool {
        self.empty_count > 0 && self.missing().any(|name| !name.is_optional())
    }

    /// Enters a manager, and counts how many are on the call stack.
    pub(crate) fn enter(&mut self) -> Result<(), ProviderError> {
        if self.depth == NESTING_LIMIT {
            return Err(too_deep());
        }
        self.depth += 1;
        Ok(())
    }

    /// Leaves the manager that was entered last.
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Records the providers that a manager asked in vain, before those of managers further in.
    pub(crate) fn record_asked(&mut self, providers: impl Iterator<Item = Arc<str>>) {
        let asked = &mut self.rare.get_or_insert_default().asked;
        asked.get_or_insert_default().splice(0..0, providers);
    }

    /// Takes the record of the providers asked; `None` if no manager was involved.
    pub(crate) fn take_asked(&mut self) -> Option<Vec<Arc<str>>> {
        self.rare.as_mut()?.asked.take()
    }

    /// Sets the contexts of empty slots to NULL, as a result shows them.
    pub(crate) fn clear_empty_contexts(&mut self) {
        let slots = self.functions.iter().zip(self.contexts.iter_mut());
        for (_, context) in slots.filter(|(function, _)| function.is_none()) {
            *context = ptr::null_mut();
        }
    }

    /// Drops the keep-alives that were attached.
    pub(crate) fn release(&mut self) {
        self.keep_alives.clear();
    }

    /// Lets a foreign `resolve` work on copies of the slots, and takes over what it put into the
    /// empty ones. Returns what `call` returned, and whether any slot was filled.
    ///
    /// The pointers in the parameters are valid during `call` only.
    pub(crate) fn fill_from_foreign<R>(
        &mut self,
        call: impl FnOnce(&ResolveParams) -> R,
    ) -> (R, bool) {
        let arrays = &mut self.rare.get_or_insert_default().foreign;
        arrays.set(self.names, self.functions, self.contexts);

        let result = call(&ResolveParams {
            count: self.names.len(),
            symbol_names: arrays.names.as_ptr(),
            out_fn_ptrs: arrays.functions.as_mut_ptr(),
            out_fn_contexts: arrays.contexts.as_mut_ptr(),
        });

        let empty_before = self.empty_count;
        let answers = arrays.functions.iter().zip(&arrays.contexts);
        let slots = self.functions.iter_mut().zip(self.contexts.iter_mut());
        for ((function, context), answer) in slots.zip(answers) {
            if function.is_none() && answer.0.is_some() {
                *function = *answer.0;
                *context = *answer.1;
                self.empty_count -= 1;
            }
        }
        (result, self.empty_count < empty_before)
    }
}

impl fmt::Debug for ResolveRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResolveRequest")
            .field("names", &self.names)
            .field("empty_count", &self.empty_count)
            .field("depth", &self.depth)
            .finish_non_exhaustive()
    }
}

#[cold]
fn too_deep() -> ProviderError {
    let limit = NESTING_LIMIT;
    ProviderErrorKind::TooDeep { limit }.into()
}

/// Copies of a request's arrays for a plugin to read and write.
#[derive(Default)]
struct ForeignArrays {
    names: Vec<*const c_char>,
    functions: Vec<Option<ImportFn>>,
    contexts: Vec<*mut c_void>,
}

impl ForeignArrays {
    /// Copies the state of a request, which has the same names each time. The contexts of empty slots
    /// become NULL.
    fn set(&mut self, names: &[&CStr], functions: &[Option<ImportFn>], contexts: &[*mut c_void]) {
        if self.names.is_empty() {
            self.names.extend(names.iter().map(|name| name.as_ptr()));
        }
        self.functions.clear();
        self.functions.extend_from_slice(functions);
        self.contexts.clear();
        let slots = functions.iter().zip(contexts);
        self.contexts
            .extend(slots.map(|(function, &context)| match function {
                Some(_) => context,
                None => ptr::null_mut(),
            }));
    }
}
