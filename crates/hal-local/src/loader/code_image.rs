//! From code that is mapped to an executable, whatever mapped it: [`CodeImage`].

#![expect(unsafe_code, reason = "the library is behind a foreign function")]

use std::any::Any;
use std::ffi::c_void;
use std::mem;
use std::ptr::NonNull;
use std::sync::Arc;

use hal_abi::Processor;
use hal_abi::library::LibraryQueryFn;
use hal_plugin::ImportProvider;

use super::LoadError;
use crate::Executable;
use crate::library::query_library;
use crate::native::{NativeExecutable, QueryEnvironment};

/// The code of an executable, mapped.
pub(super) struct CodeImage {
    /// The address of the query function; `None` if it is not exported.
    pub(super) query: Option<NonNull<c_void>>,
    /// What keeps the code mapped.
    pub(super) keep_alive: Box<dyn Any + Send + Sync>,
}

impl CodeImage {
    /// Queries the library in the code and makes it an executable.
    ///
    /// # Safety
    ///
    /// `query` must be the query function of a library that follows the executable library ABI
    /// (`docs/abi.md`, section 8), in code that `keep_alive` keeps mapped.
    pub(super) unsafe fn load(
        self,
        processor: Processor,
        constants: &[u32],
        provider: Option<&dyn ImportProvider>,
    ) -> Result<Arc<dyn Executable>, LoadError> {
        let Self { query, keep_alive } = self;
        let query = query.ok_or(LoadError::NoQuery)?;
        // SAFETY: the caller vouches that the address is that of a query function.
        let query = unsafe { mem::transmute::<NonNull<c_void>, LibraryQueryFn>(query) };
        let environment = QueryEnvironment::new(processor, constants);
        // SAFETY: the caller vouches for the function. The executable keeps the code mapped for as
        // long as it has the library.
        let library = unsafe { query_library(query, environment.as_ptr()) }?;
        let executable =
            NativeExecutable::new(Arc::new(library), keep_alive, environment, provider)?;
        Ok(Arc::new(executable))
    }
}
