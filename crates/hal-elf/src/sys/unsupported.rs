//! The stand-in for systems on which images cannot be mapped: asking for memory is an error.

use std::convert::Infallible;
use std::ffi::c_void;
use std::ptr::NonNull;

use crate::error::ElfError;
use crate::layout::PageRun;

/// Returns the bytes in the smallest page in use; nothing is mapped, so any page size would do.
pub(crate) fn page_size() -> usize {
    4096
}

/// Cannot exist here.
#[derive(Debug)]
pub(crate) struct WritableMapping(Infallible);

impl WritableMapping {
    pub(crate) fn new(
        _byte_length: usize,
        _alignment: usize,
        _start: u64,
    ) -> Result<Self, ElfError> {
        Err(ElfError::UnsupportedHost {
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
        })
    }

    pub(crate) fn address(&self) -> u64 {
        match self.0 {}
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self.0 {}
    }

    pub(crate) fn protect(self, _runs: &[PageRun]) -> Result<Mapping, ElfError> {
        match self.0 {}
    }
}

/// Cannot exist here.
#[derive(Debug)]
pub(crate) struct Mapping(Infallible);

impl Mapping {
    pub(crate) fn byte_length(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn at(&self, _offset: usize) -> NonNull<c_void> {
        match self.0 {}
    }
}
