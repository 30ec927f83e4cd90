//! The one door through which native code becomes callable: [`Trust`].
//!
//! Holds no code beyond the token; the loaders that demand it are in [`crate::loader`].

#![expect(unsafe_code, reason = "this is where the promise is made")]

/// The embedder's promise that the native code it will load may be run.
///
/// A kernel is machine code in this process: it can do whatever the process can, and nothing checks
/// what it reads or writes. That cannot be made safe by inspection, so it is promised once, here,
/// and everything after (loading, lookup, dispatch) is safe to call. Loaders that interpret their
/// executables need no `Trust`.
///
/// # Examples
///
/// ```
/// use hal_local::{EmbeddedElfLoader, ExecutableLoader, Trust};
///
/// // SAFETY: this process only loads executables that its own build compiled.
/// let trust = unsafe { Trust::native_code() };
/// let loader = EmbeddedElfLoader::new(trust, None);
/// assert_eq!(loader.name(), "embedded-elf");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Trust(());

impl Trust {
    /// Makes the promise.
    ///
    /// # Safety
    ///
    /// For every loader that is given this value or a copy of it, and for as long as what it loaded
    /// can be called:
    ///
    /// * the executables and libraries it is asked to load come from a compiler, follow the
    ///   executable library ABI (`docs/abi.md`, sections 7 and 8) and have not been tampered with:
    ///   their tables are as long as they say, and their names end in a NUL byte;
    /// * the functions its import provider supplies are what the executables expect;
    /// * dispatches fit the kernels they name. Kernels do not check the lengths of their bindings,
    ///   so whoever dispatches passes constants and bindings of the sizes the program was compiled
    ///   for, writes through no binding made of read-only memory, and lets no other thread touch
    ///   the memory of a dispatch that is running, except to read what all of them only read.
    #[must_use]
    pub const unsafe fn native_code() -> Self {
        Self(())
    }
}
