//! What several tests need: aligned memory, trust, and executables of the kernels in this program.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use hal_local::{
    Binding, Dispatch, DispatchError, DispatchRequest, DispatchRequestError, DispatchSite,
    Dispatcher, Executable, ExecutableData, ExecutableHandle, ExecutableLoader, ExecutableParams,
    StaticLibraryLoader, Trust,
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

/// Dispatches a function by name from a place of its own.
pub(crate) fn dispatch_from_site(
    dispatcher: Arc<dyn Dispatcher>,
    executable: &ExecutableHandle,
    function: &str,
    count: [u32; 3],
    constants: &[u32],
    bindings: &[Binding<'_>],
) -> Result<(), DispatchError> {
    let request = request(executable, function, count, constants);
    let outcome = DispatchSite::new(dispatcher).dispatch(request, given(bindings));
    outcome.map_err(dispatch_error)
}

/// Returns the request to run a function by name.
pub(crate) fn request<'a>(
    executable: &'a ExecutableHandle,
    function: &str,
    workgroup_count: [u32; 3],
    constants: &'a [u32],
) -> DispatchRequest<'a> {
    let ordinal = executable.executable().lookup(function.as_bytes()).unwrap();
    DispatchRequest {
        executable,
        function: ordinal.into(),
        workgroup_count,
        constants,
    }
}

/// Returns bindings that are all there.
pub(crate) fn given<'a>(
    bindings: &[Binding<'a>],
) -> impl ExactSizeIterator<Item = Result<Binding<'a>, Infallible>> + Clone + Sync {
    bindings.iter().copied().map(Ok)
}

/// Returns the error of a dispatch whose bindings were all there.
pub(crate) fn dispatch_error(error: DispatchRequestError<Infallible>) -> DispatchError {
    match error {
        DispatchRequestError::Dispatch(error) => error,
        DispatchRequestError::Binding { error, .. } => match error {},
    }
}
