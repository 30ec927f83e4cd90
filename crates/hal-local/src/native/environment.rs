//! What all kernels of an executable share: its constants, its imports and the processor's features.

#![expect(
    unsafe_code,
    reason = "the environment is shared between threads by raw pointer"
)]

use std::ffi::{c_int, c_void};

use hal_abi::{ImportFn, Processor, StatusCode};
use hal_plugin::ResolvedImports;

/// A structure at an address that is a multiple of 16, as kernels are compiled for (`docs/abi.md`, section 7).
///
/// Not of more: the stack has this alignment anyway, and two of the structures are often on it.
#[repr(align(16))]
#[derive(Debug)]
pub(super) struct Aligned<T>(pub(super) T);

/// The environment of an executable that is being loaded: all but the imports.
///
/// This is what a library's query is given. The structure stays at the same address for the life of
/// the executable, in case a library keeps the pointer.
#[derive(Debug)]
pub(crate) struct QueryEnvironment {
    block: Box<Aligned<hal_abi::Environment>>,
    constants: Vec<u32>,
}

impl QueryEnvironment {
    /// Returns an environment with these executable-level constants.
    pub(crate) fn new(processor: Processor, constants: &[u32]) -> Self {
        let constants = constants.to_vec();
        let block = Box::new(Aligned(hal_abi::Environment {
            constants: if constants.is_empty() {
                std::ptr::null()
            } else {
                constants.as_ptr()
            },
            import_thunk: None,
            import_funcs: std::ptr::null(),
            import_contexts: std::ptr::null(),
            processor,
        }));
        Self { block, constants }
    }

    /// Returns the structure for a library's query.
    pub(crate) fn as_ptr(&self) -> *const hal_abi::Environment {
        &raw const self.block.0
    }

    /// Returns the features of the processor.
    pub(crate) fn processor(&self) -> Processor {
        self.block.0.processor
    }

    /// Returns the executable-level constants.
    pub(crate) fn constants(&self) -> &[u32] {
        &self.constants
    }

    /// Returns the complete environment. Without imports all fields about them stay NULL.
    pub(crate) fn with_imports(self, imports: ResolvedImports) -> Environment {
        let mut environment = Environment {
            block: self.block,
            _constants: self.constants,
            imports,
        };
        if !environment.imports.is_empty() {
            let fields = &mut environment.block.0;
            fields.import_thunk = Some(call_import);
            fields.import_funcs = environment.imports.functions();
            fields.import_contexts = environment.imports.contexts();
        }
        environment
    }
}

// SAFETY: only the raw pointers of `block` are in the way. They are NULL, or point at `constants`,
// which is owned and does not move with `self`.
unsafe impl Send for QueryEnvironment {}

// SAFETY: only the raw pointers of `block` are in the way, and what they point at is immutable.
unsafe impl Sync for QueryEnvironment {}

/// The environment of a loaded executable.
///
/// Invariant: the pointers of `block` are NULL or point into the other fields, which do not change
/// and whose arrays stay where they are when the environment is moved.
#[derive(Debug)]
pub(crate) struct Environment {
    block: Box<Aligned<hal_abi::Environment>>,
    _constants: Vec<u32>,
    imports: ResolvedImports,
}

impl Environment {
    /// Returns the structure for a kernel.
    #[inline]
    pub(super) fn as_ptr(&self) -> *const hal_abi::Environment {
        &raw const self.block.0
    }
}

// SAFETY: only the raw pointers of `block` are in the way. What they point at is owned by the other
// fields, which are `Send`, and does not move with `self`.
unsafe impl Send for Environment {}

// SAFETY: only the raw pointers of `block` are in the way. What they point at is immutable, and that
// imported functions and their contexts may be used from any thread is what `ResolvedImports`,
// which is `Sync`, says.
unsafe impl Sync for Environment {}

/// The thunk through which kernels call imports: it forwards.
///
/// A kernel that calls an optional import that was not found gets an error, as every kernel that
/// tests before it calls never gets here.
///
/// # Safety
///
/// `function`, unless NULL, and the pointers must be those of an import of the calling kernel.
unsafe extern "C" fn call_import(
    function: Option<ImportFn>,
    params: *mut c_void,
    context: *mut c_void,
    reserved: *mut c_void,
) -> c_int {
    const MISSING: c_int = StatusCode::NOT_FOUND.0.cast_signed();
    let Some(function) = function else {
        return MISSING;
    };
    // SAFETY: the kernel passes on a function that was resolved for it, with the parameters and the
    // context that belong to it.
    unsafe { function(params, context, reserved) }
}
