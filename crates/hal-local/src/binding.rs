//! The memory a kernel works on: [`Binding`].

use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicU8;

/// The alignment of the address of a binding that kernels rely on, in bytes.
///
/// Compiled kernels use aligned vector loads and stores on the strength of it (`docs/abi.md`,
/// section 7), so [`Dispatch::new`](crate::Dispatch::new) refuses a binding that breaks it. The
/// compiler gives sub-ranges of a buffer offsets that are multiples of it.
pub const BINDING_ALIGNMENT: usize = 64;

/// A span of memory that a dispatch gives to its kernel.
///
/// It borrows the memory, so it cannot outlive it. It may also name the object that owns the memory,
/// for executables that want more than a pointer.
#[derive(Clone, Copy)]
pub struct Binding<'a> {
    memory: Memory<'a>,
    owner: Option<&'a (dyn Any + Send + Sync)>,
}

/// The memory, by what may be done with it.
#[derive(Clone, Copy)]
enum Memory<'a> {
    Shared(&'a [AtomicU8]),
    ReadOnly(&'a [u8]),
}

/// Memory without bytes at an address that is aligned as kernels want it.
#[repr(align(64))]
struct Nowhere([AtomicU8; 0]);

static NOWHERE: Nowhere = Nowhere([]);

const _: () = assert!(align_of::<Nowhere>() == BINDING_ALIGNMENT);

impl<'a> Binding<'a> {
    /// Returns a binding to memory that the kernel may read and write.
    #[must_use]
    #[inline]
    pub fn shared(bytes: &'a [AtomicU8], owner: Option<&'a (dyn Any + Send + Sync)>) -> Self {
        // An empty slice may be at any address, which a kernel must not be given.
        let bytes = if bytes.is_empty() { &NOWHERE.0 } else { bytes };
        Self {
            memory: Memory::Shared(bytes),
            owner,
        }
    }

    /// Returns a binding to memory that the kernel may only read.
    #[must_use]
    #[inline]
    pub fn read_only(bytes: &'a [u8], owner: Option<&'a (dyn Any + Send + Sync)>) -> Self {
        if bytes.is_empty() {
            return Self {
                memory: Memory::Shared(&NOWHERE.0),
                owner,
            };
        }
        Self {
            memory: Memory::ReadOnly(bytes),
            owner,
        }
    }

    /// Returns the address of the first byte; valid for reads of [`Binding::byte_length`] bytes, and
    /// for writes if the binding [is writable](Binding::is_writable), while the binding lives.
    #[must_use]
    #[inline]
    pub fn as_ptr(&self) -> *mut u8 {
        match self.memory {
            Memory::Shared(bytes) => bytes.as_ptr().cast::<u8>().cast_mut(),
            Memory::ReadOnly(bytes) => bytes.as_ptr().cast_mut(),
        }
    }

    /// Returns the length in bytes.
    #[must_use]
    #[inline]
    pub fn byte_length(&self) -> usize {
        match self.memory {
            Memory::Shared(bytes) => bytes.len(),
            Memory::ReadOnly(bytes) => bytes.len(),
        }
    }

    /// Returns whether the kernel may write.
    #[must_use]
    #[inline]
    pub fn is_writable(&self) -> bool {
        matches!(self.memory, Memory::Shared(_))
    }

    /// Returns the object that owns the memory, if the binding names it.
    #[must_use]
    #[inline]
    pub fn owner(&self) -> Option<&'a (dyn Any + Send + Sync)> {
        self.owner
    }

    /// Returns the memory if it may be written.
    #[must_use]
    #[inline]
    pub fn as_shared(&self) -> Option<&'a [AtomicU8]> {
        match self.memory {
            Memory::Shared(bytes) => Some(bytes),
            Memory::ReadOnly(_) => None,
        }
    }

    /// Returns the memory if it may only be read.
    #[must_use]
    #[inline]
    pub fn as_read_only(&self) -> Option<&'a [u8]> {
        match self.memory {
            Memory::Shared(_) => None,
            Memory::ReadOnly(bytes) => Some(bytes),
        }
    }
}

impl fmt::Debug for Binding<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Binding")
            .field("address", &self.as_ptr())
            .field("byte_length", &self.byte_length())
            .field("is_writable", &self.is_writable())
            .field("has_owner", &self.owner.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_binding_has_an_aligned_address() {
        for binding in [Binding::shared(&[], None), Binding::read_only(&[], None)] {
            assert_eq!(binding.as_ptr().addr() % BINDING_ALIGNMENT, 0);
            assert_eq!(binding.byte_length(), 0);
        }
    }

    #[test]
    fn a_binding_names_its_owner() {
        let owner = String::from("owner");
        let bytes = [1, 2, 3];
        let binding = Binding::read_only(&bytes, Some(&owner));
        let found = binding
            .owner()
            .and_then(|owner| owner.downcast_ref::<String>());
        assert_eq!(found, Some(&owner));
        assert_eq!(binding.as_read_only(), Some(&bytes[..]));
        assert!(!binding.is_writable());
    }

    #[test]
    fn bindings_can_be_shared_between_threads() {
        fn check<T: Send + Sync>() {}
        check::<Binding<'_>>();
    }
}
