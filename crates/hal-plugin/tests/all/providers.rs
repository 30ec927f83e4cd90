//! Providers written in Rust for tests.

use std::collections::HashSet;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use hal_abi::StatusCode;
use hal_plugin::{Import, ImportProvider, ProviderError, ResolveRequest};

/// The function behind every import of these providers; their contexts tell them apart.
pub(crate) unsafe extern "C" fn function(_: *mut c_void, _: *mut c_void, _: *mut c_void) -> c_int {
    0
}

/// Returns an import whose context is the number `tag`.
pub(crate) fn import(tag: usize) -> Import {
    // SAFETY: `function` can be called at any time, on any thread, with any arguments.
    unsafe { Import::new(function, ptr::without_provenance_mut(tag)) }
}

/// Returns the number in the context of an import.
pub(crate) fn tag(import: Import) -> usize {
    import.context().addr()
}

/// Borrows the names for a resolution.
pub(crate) fn borrow(names: &[CString]) -> Vec<&CStr> {
    names.iter().map(CString::as_c_str).collect()
}

/// What a [`Known`] answers after it filled what it knows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    Ok,
    Error(StatusCode),
}

/// A provider that knows some symbols, and counts how often it was asked.
#[derive(Debug)]
pub(crate) struct Known {
    name: String,
    tag: usize,
    symbols: HashSet<Vec<u8>>,
    answer: Answer,
    calls: AtomicUsize,
}

impl Known {
    pub(crate) fn new(name: &str, tag: usize, symbols: &[&str]) -> Self {
        Self::with_answer(name, tag, symbols, Answer::Ok)
    }

    pub(crate) fn with_answer(name: &str, tag: usize, symbols: &[&str], answer: Answer) -> Self {
        Self {
            name: name.to_owned(),
            tag,
            symbols: symbols.iter().map(|s| s.as_bytes().to_vec()).collect(),
            answer,
            calls: AtomicUsize::new(0),
        }
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl ImportProvider for Known {
    fn name(&self) -> &str {
        &self.name
    }

    fn resolve(&self, request: &mut ResolveRequest<'_>) -> Result<(), ProviderError> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        request.fill_with(|name| {
            self.symbols
                .contains(name.symbol())
                .then(|| import(self.tag))
        });
        match self.answer {
            Answer::Ok => Ok(()),
            Answer::Error(code) => Err(ProviderError::new(code, "as told")),
        }
    }
}
