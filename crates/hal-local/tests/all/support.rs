//! What several tests need: aligned memory, trust, and executables of the kernels in this program.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hal_local::{
    Binding, Dispatch, DispatchError, Dispatcher, Executable, ExecutableData, ExecutableLoader,
    ExecutableParams, KernelBindings, StaticLibraryLoader, Trust,
};
use hal_plugin::ImportProvider;

use crate::kernels;

/// Vouches for the kernels of this program and the fixtures beside it.
pub(crate) fn trust() -> Trust {
    // SAFETY: the tests load what is in this repository, made by this build or by the compiler. What
    // hostile data they make is refused before any of its code runs.
    unsafe { Trust::native_code() }
}

/// Shared memory for bindings, at an address that is a multiple of 64.
pub(crate) struct Memory {
    storage: Vec<AtomicU8>,
    start: usize,
    byte_length: usize,
}

impl Memory {
    /// Returns zeroed memory.
    pub(crate) fn zeroed(byte_length: usize) -> Self {
        let storage: Vec<_> = std::iter::repeat_with(AtomicU8::default)
            .take(byte_length + 63)
            .collect();
        let start = storage.as_ptr().align_offset(64);
        Self {
            storage,
            start,
            byte_length,
        }
    }

    /// Returns memory with these numbers.
    pub(crate) fn of_f32(values: &[f32]) -> Self {
        let memory = Self::zeroed(values.len() * 4);
        let bytes = values.iter().flat_map(|value| value.to_ne_bytes());
        for (cell, byte) in memory.bytes().iter().zip(bytes) {
            cell.store(byte, Ordering::Relaxed);
        }
        memory
    }

    pub(crate) fn bytes(&self) -> &[AtomicU8] {
        &self.storage[self.start..self.start + self.byte_length]
    }

    pub(crate) fn binding(&self) -> Binding<'_> {
        Binding::shared(self.bytes(), None)
    }

    fn words(&self) -> impl Iterator<Item = [u8; 4]> {
        let (words, _) = self.bytes().as_chunks::<4>();
        words
            .iter()
            .map(|word| word.each_ref().map(|byte| byte.load(Ordering::Relaxed)))
    }

    pub(crate) fn to_u32(&self) -> Vec<u32> {
        self.words().map(u32::from_ne_bytes).collect()
    }

    pub(crate) fn to_f32(&self) -> Vec<f32> {
        self.words().map(f32::from_ne_bytes).collect()
    }
}

/// Loads the library of kernels in this program.
pub(crate) fn test_kernels() -> Arc<dyn Executable> {
    load_static(kernels::query, "kernels", None).unwrap()
}

/// Loads a library that is linked into this program, without executable-level constants.
pub(crate) fn load_static(
    query: hal_abi::library::LibraryQueryFn,
    name: &str,
    provider: Option<Arc<dyn ImportProvider>>,
) -> Result<Arc<dyn Executable>, hal_local::LoadError> {
    let loader = StaticLibraryLoader::new(trust(), provider, &[query])?;
    loader.try_load(&static_params(name))
}

/// Asks for a library that is linked into this program.
pub(crate) fn static_params(name: &str) -> ExecutableParams<'static> {
    let data = ExecutableData::copy_of(name.as_bytes());
    ExecutableParams {
        format: "static",
        data,
        constants: &[],
    }
}

/// Dispatches a function by name.
pub(crate) fn dispatch(
    dispatcher: &dyn Dispatcher,
    executable: &dyn Executable,
    function: &str,
    count: [u32; 3],
    constants: &[u32],
    bindings: &[Binding<'_>],
) -> Result<(), DispatchError> {
    let ordinal = executable.lookup(function.as_bytes()).unwrap();
    let dispatch = Dispatch::new(executable, ordinal.into(), count, constants, bindings)?;
    dispatcher.dispatch(executable, &dispatch)
}

/// As [`dispatch`], with bindings in the form of native kernels.
pub(crate) fn dispatch_prepared(
    dispatcher: &dyn Dispatcher,
    executable: &dyn Executable,
    function: &str,
    count: [u32; 3],
    constants: &[u32],
    bindings: &[Binding<'_>],
) -> Result<(), DispatchError> {
    let ordinal = executable.lookup(function.as_bytes()).unwrap();
    let mut prepared = KernelBindings::new(&bindings);
    let given = bindings.iter().copied().map(Ok::<_, Infallible>);
    prepared.try_fill(given).unwrap();
    let export = executable.export(ordinal).unwrap();
    let dispatch = Dispatch::prepared(export, count, constants, &prepared)?;
    let found: Vec<_> = dispatch
        .bindings()
        .map(|binding| binding.as_ptr())
        .collect();
    let expected: Vec<_> = bindings.iter().map(|binding| binding.as_ptr()).collect();
    assert_eq!(found, expected);
    dispatcher.dispatch(executable, &dispatch)
}
