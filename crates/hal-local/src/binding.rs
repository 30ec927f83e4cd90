//! The memory a kernel works on: [`Binding`], and [`KernelBindings`], several of them as kernels are given them.

use std::any::Any;
use std::convert::Infallible;
use std::ffi::c_void;
use std::fmt;
use std::hint::cold_path;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicPtr, AtomicU8};

use hal_abi::MAX_BINDINGS;

use crate::{DispatchError, ExportInfo};

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
        if bytes.is_empty() {
            return Self::nowhere(owner);
        }
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
            return Self::nowhere(owner);
        }
        Self {
            memory: Memory::ReadOnly(bytes),
            owner,
        }
    }

    /// Returns a binding without bytes, which few are.
    #[inline]
    fn nowhere(owner: Option<&'a (dyn Any + Send + Sync)>) -> Self {
        cold_path();
        Self {
            memory: Memory::Shared(&NOWHERE.0),
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

/// Where the bindings of a dispatch come from, for executables that want more than addresses and lengths: those that are
/// not native code.
pub(crate) trait BindingSource: Sync {
    /// Returns the binding with this index, or `None` past the last one.
    fn binding(&self, index: usize) -> Option<Binding<'_>>;
}

/// The bindings of a dispatch as native kernels are given them: all addresses, and all lengths.
///
/// It takes no memory but its own, which is on the stack.
///
/// Invariant: the first `count` addresses and lengths, but at most [`MAX_BINDINGS`], were written; each two are those of
/// a [`Binding`] that lives as long as `'a`. `address_bits` has the bits of those addresses.
pub(crate) struct KernelBindings<'a> {
    source: &'a dyn BindingSource,
    count: usize,
    /// All bits that are set in an address.
    address_bits: usize,
    /// Atomic, as that is a pointer that threads may share; never written again.
    addresses: [MaybeUninit<AtomicPtr<c_void>>; MAX_BINDINGS],
    lengths: [MaybeUninit<usize>; MAX_BINDINGS],
}

impl<'a> KernelBindings<'a> {
    /// Returns no bindings; those it will be filled with are the ones of `source`.
    pub(crate) fn new(source: &'a dyn BindingSource) -> Self {
        Self {
            source,
            count: 0,
            address_bits: 0,
            addresses: [const { MaybeUninit::uninit() }; MAX_BINDINGS],
            lengths: [const { MaybeUninit::uninit() }; MAX_BINDINGS],
        }
    }

    /// Makes these the bindings, up to the first error. More than [`MAX_BINDINGS`] are counted and not kept: no dispatch
    /// takes them. An error comes with the index of its binding.
    pub(crate) fn try_fill<'b: 'a, E>(
        &mut self,
        bindings: impl ExactSizeIterator<Item = Result<Binding<'b>, E>>,
    ) -> Result<(), (usize, E)> {
        // Until all are there, there are none: a call that fails half way leaves slots of two.
        (self.count, self.address_bits) = (0, 0);
        let given = bindings.len();
        let (Some(addresses), Some(lengths)) = (
            self.addresses.get_mut(..given),
            self.lengths.get_mut(..given),
        ) else {
            self.count = given;
            return Ok(());
        };
        // Counted as they come: what an iterator says of its length is only believed for the room it needs.
        let (mut count, mut address_bits) = (0, 0);
        for ((slot, length), binding) in addresses.iter_mut().zip(lengths).zip(bindings) {
            let binding = binding.map_err(|error| (count, error))?;
            let address = binding.as_ptr();
            slot.write(AtomicPtr::new(address.cast()));
            length.write(binding.byte_length());
            address_bits |= address.addr();
            count += 1;
        }
        (self.count, self.address_bits) = (count, address_bits);
        Ok(())
    }

    /// Returns the number of bindings.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the addresses, as many as there are bindings.
    pub(crate) fn addresses(&self) -> *const *mut c_void {
        self.addresses.as_ptr().cast()
    }

    /// Returns the lengths, as many as there are bindings.
    pub(crate) fn lengths(&self) -> *const usize {
        self.lengths.as_ptr().cast()
    }
}

impl fmt::Debug for KernelBindings<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries((0..self.count).map_while(|index| self.source.binding(index)))
            .finish()
    }
}

/// The bindings of a dispatch, in the form that its maker had them in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bindings<'a> {
    /// Unless this is `None`, `listed` is empty.
    prepared: Option<&'a KernelBindings<'a>>,
    listed: &'a [Binding<'a>],
}

impl<'a> Bindings<'a> {
    #[inline]
    pub(crate) fn listed(listed: &'a [Binding<'a>]) -> Self {
        Self {
            prepared: None,
            listed,
        }
    }

    #[inline]
    pub(crate) fn prepared(prepared: &'a KernelBindings<'a>) -> Self {
        Self {
            prepared: Some(prepared),
            listed: &[],
        }
    }

    /// Returns the number of bindings.
    #[inline]
    pub(crate) fn count(self) -> usize {
        match self.prepared {
            Some(bindings) => bindings.count,
            None => self.listed.len(),
        }
    }

    /// Returns the binding with this index.
    pub(crate) fn get(self, index: usize) -> Option<Binding<'a>> {
        match self.prepared {
            Some(bindings) => bindings.source.binding(index),
            None => self.listed.get(index).copied(),
        }
    }

    /// Returns all bits that are set in an address.
    #[inline]
    pub(crate) fn address_bits(self) -> usize {
        match self.prepared {
            Some(bindings) => bindings.address_bits,
            None => {
                let addresses = self.listed.iter().map(|binding| binding.as_ptr().addr());
                addresses.fold(0, |bits, address| bits | address)
            }
        }
    }

    /// Returns the error that names the first misaligned binding; there is one.
    #[inline(always)]
    pub(crate) fn misaligned(self, export: &ExportInfo) -> DispatchError {
        // In parts, so that the whole need not be in memory for this.
        Self::misaligned_of(self.prepared, self.listed, export)
    }

    #[cold]
    fn misaligned_of(
        prepared: Option<&KernelBindings<'_>>,
        listed: &[Binding<'_>],
        export: &ExportInfo,
    ) -> DispatchError {
        let bindings = Bindings { prepared, listed };
        let addresses = (0..bindings.count())
            .map_while(|index| bindings.get(index))
            .map(|binding| binding.as_ptr().addr());
        DispatchError::misaligned(export, addresses)
    }

    /// Returns the bindings as kernels are given them; `memory` is for those that are not so yet.
    pub(crate) fn for_kernel<'b>(
        &'b self,
        memory: &'b mut MaybeUninit<KernelBindings<'b>>,
    ) -> &'b KernelBindings<'b> {
        if let Some(prepared) = self.prepared {
            return prepared;
        }
        let copied = memory.write(KernelBindings::new(&self.listed));
        let listed = self.listed.iter().copied();
        match copied.try_fill(listed.map(Ok::<_, Infallible>)) {
            Ok(()) => copied,
            Err((_, never)) => match never {},
        }
    }
}

impl BindingSource for &[Binding<'_>] {
    fn binding(&self, index: usize) -> Option<Binding<'_>> {
        self.get(index).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iterator_that_gives_fewer_bindings_than_it_says_is_not_believed() {
        struct Liar;

        impl Iterator for Liar {
            type Item = Result<Binding<'static>, ()>;

            fn next(&mut self) -> Option<Self::Item> {
                None
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (1, Some(1))
            }
        }

        impl ExactSizeIterator for Liar {}

        let none: &[Binding<'_>] = &[];
        let mut bindings = KernelBindings::new(&none);
        bindings.try_fill(Liar).unwrap();
        assert_eq!(bindings.count(), 0);
    }

    #[test]
    fn nothing_is_left_of_bindings_that_could_not_all_be_had() {
        let binding = Binding::read_only(&[1, 2], None);
        let none: &[Binding<'_>] = &[];
        let mut bindings = KernelBindings::new(&none);
        let given = [Ok(binding), Err("no"), Err("neither")];
        assert_eq!(bindings.try_fill(given.into_iter()), Err((1, "no")));
        assert_eq!(bindings.count(), 0);
        let given = [Ok::<_, &str>(binding)];
        assert_eq!(bindings.try_fill(given.into_iter()), Ok(()));
        assert_eq!(bindings.count(), 1);
        let given = [Ok(binding), Err("no")];
        assert_eq!(bindings.try_fill(given.into_iter()), Err((1, "no")));
        assert_eq!(bindings.count(), 0);
    }

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
