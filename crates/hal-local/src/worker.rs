//! What a thread that runs workgroups has to itself: [`Worker`].

use std::collections::TryReserveError;

use crate::Denormals;

/// The alignment of scratch memory in bytes: that of bindings, and a cache line.
const LOCAL_MEMORY_ALIGNMENT: usize = 64;

/// The identity and the scratch memory of a thread that runs workgroups.
///
/// A dispatcher has one for each of its threads; a worker is used by one thread at a time.
#[derive(Debug, Default)]
pub struct Worker {
    identity: Identity,
    /// Longer than what it serves for, by the most that alignment can cost.
    local_memory: Option<Box<[u8]>>,
}

/// What a worker is besides its memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identity {
    id: u32,
    max_concurrency: u8,
    denormals: Denormals,
}

impl Identity {
    pub(crate) fn new(id: u32, max_concurrency: usize, denormals: Denormals) -> Self {
        let max_concurrency = u8::try_from(max_concurrency).unwrap_or(u8::MAX);
        Self {
            id,
            max_concurrency,
            denormals,
        }
    }
}

impl Worker {
    /// Returns worker `id` of a dispatcher that runs at most `max_concurrency` workgroups at once.
    ///
    /// Kernels see the id as their processor, and the concurrency saturated to 8 bits.
    #[must_use]
    pub fn new(id: u32, max_concurrency: usize, denormals: Denormals) -> Self {
        Self::with_identity(Identity::new(id, max_concurrency, denormals))
    }

    /// Returns a worker without memory.
    #[inline]
    pub(crate) fn with_identity(identity: Identity) -> Self {
        Self {
            identity,
            local_memory: None,
        }
    }

    /// Returns whether the worker has scratch memory.
    #[inline]
    pub(crate) fn has_memory(&self) -> bool {
        self.local_memory.is_some()
    }

    /// Returns the number of this worker in its dispatcher, from 0.
    #[must_use]
    #[inline]
    pub fn id(&self) -> u32 {
        self.identity.id
    }

    /// Returns an estimate of how many workgroups run at once, at least 1 for a worker in use.
    #[must_use]
    #[inline]
    pub fn max_concurrency(&self) -> u8 {
        self.identity.max_concurrency
    }

    /// Returns what native kernels shall do with denormal numbers.
    #[must_use]
    #[inline]
    pub fn denormals(&self) -> Denormals {
        self.identity.denormals
    }

    /// Returns scratch memory of exactly `byte_length` bytes, aligned to 64, of unspecified content.
    ///
    /// The memory is kept and grows to the largest size ever asked for.
    ///
    /// # Errors
    ///
    /// Fails if the memory cannot be had.
    pub fn local_memory(&mut self, byte_length: usize) -> Result<&mut [u8], TryReserveError> {
        let padded = byte_length.saturating_add(LOCAL_MEMORY_ALIGNMENT);
        let kept = self.local_memory.take();
        let memory = match kept.filter(|kept| kept.len() >= padded) {
            Some(kept) => kept,
            // The content need not survive, so the old block is gone before the new one comes.
            None => allocate(padded)?,
        };
        let memory = self.local_memory.insert(memory);
        // Below the alignment, as bytes can be at any address.
        let start = memory.as_ptr().align_offset(LOCAL_MEMORY_ALIGNMENT);
        Ok(&mut memory[start..][..byte_length])
    }
}

#[cold]
fn allocate(byte_length: usize) -> Result<Box<[u8]>, TryReserveError> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(byte_length)?;
    memory.resize(byte_length, 0);
    Ok(memory.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_memory_is_aligned_exact_and_kept() {
        let mut worker = Worker::new(0, 1, Denormals::default());
        for byte_length in [4096, 1, 8192, 0, 4096 * 65535] {
            let memory = worker.local_memory(byte_length).unwrap();
            assert_eq!(memory.len(), byte_length);
            assert_eq!(memory.as_ptr().addr() % LOCAL_MEMORY_ALIGNMENT, 0);
        }
        let large = worker.local_memory(8192).unwrap().as_ptr();
        assert_eq!(worker.local_memory(16).unwrap().as_ptr(), large);
    }

    #[test]
    fn too_much_scratch_memory_is_an_error() {
        let mut worker = Worker::new(0, 1, Denormals::default());
        assert!(worker.local_memory(usize::MAX).is_err());
        assert!(worker.local_memory(64).is_ok());
    }

    #[test]
    fn the_concurrency_saturates() {
        assert_eq!(
            Worker::new(0, 256, Denormals::default()).max_concurrency(),
            255
        );
    }
}
