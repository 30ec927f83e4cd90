//! Imports: what a kernel asks for by name, and what a provider answers with.
//!
//! The one rule to know: an [`Import`] is a promise. Making one is `unsafe`; carrying, storing and
//! handing it on is safe, because nothing in this crate calls the function.

use std::any::Any;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::sync::Arc;

use hal_abi::ImportFn;

/// The first byte of the name of an import that may stay unresolved.
const OPTIONAL_PREFIX: u8 = b'?';

/// Whatever must outlive the imports that a provider handed out: a plugin, a table of contexts, a
/// code buffer.
pub type KeepAlive = Arc<dyn Any + Send + Sync>;

/// A resolved import: a function in the import calling convention, and the context passed to it.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    function: ImportFn,
    context: *mut c_void,
}

impl Import {
    /// Creates an import.
    ///
    /// # Safety
    ///
    /// For as long as the keep-alives live that the provider attaches with
    /// [`ResolveRequest::keep_alive`](crate::ResolveRequest::keep_alive) to each request it answers
    /// with this import (forever, if it attaches none):
    ///
    /// * `function` may be called from any thread, concurrently with itself, with `context` as its
    ///   second argument, NULL as its third, and as its first a parameter struct laid out as the
    ///   import convention says (`docs/abi.md`, section 6) for the signature under which the
    ///   compiler declared the import's name;
    /// * it does not unwind.
    #[must_use]
    pub const unsafe fn new(function: ImportFn, context: *mut c_void) -> Self {
        Self { function, context }
    }

    /// Returns the function.
    #[must_use]
    pub const fn function(&self) -> ImportFn {
        self.function
    }

    /// Returns the context, which may be NULL.
    #[must_use]
    pub const fn context(&self) -> *mut c_void {
        self.context
    }

    /// Pairs a function with its context when both come from a slot that was filled before.
    pub(crate) const fn from_slot(function: ImportFn, context: *mut c_void) -> Self {
        Self { function, context }
    }
}

// SAFETY: `context` blocks the automatic impl. It is only ever passed to `function`, and whoever
// made the import promised that this works from any thread.
unsafe impl Send for Import {}
// SAFETY: as for `Send`; a shared `Import` gives out copies of two plain values.
unsafe impl Sync for Import {}

/// The name under which a kernel imports a function.
///
/// A leading `?` marks the import as optional and is not part of the symbol. Any bytes but NUL may
/// occur, the empty name included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImportName<'a>(&'a CStr);

impl<'a> ImportName<'a> {
    /// Wraps a name as it stands in an import table.
    #[must_use]
    pub const fn new(name: &'a CStr) -> Self {
        Self(name)
    }

    /// Returns the name as it stands in the import table, the `?` included.
    #[must_use]
    pub const fn raw(self) -> &'a CStr {
        self.0
    }

    /// Returns whether the import may stay unresolved.
    #[must_use]
    pub fn is_optional(self) -> bool {
        self.0.to_bytes().first() == Some(&OPTIONAL_PREFIX)
    }

    /// Returns the symbol to look up: the name without the `?` and without the NUL.
    #[must_use]
    pub fn symbol(self) -> &'a [u8] {
        let bytes = self.0.to_bytes();
        bytes.strip_prefix(&[OPTIONAL_PREFIX]).unwrap_or(bytes)
    }
}

/// Writes the name as it stands in the import table, with a replacement for what is not UTF-8.
impl fmt::Display for ImportName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string_lossy())
    }
}

impl fmt::Debug for ImportName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &CStr, optional: bool, symbol: &[u8]) {
        let name = ImportName::new(name);
        assert_eq!(name.is_optional(), optional);
        assert_eq!(name.symbol(), symbol);
    }

    #[test]
    fn only_the_first_byte_marks_an_optional_import() {
        check(c"a", false, b"a");
        check(c"?a", true, b"a");
        check(c"??a", true, b"?a");
        check(c"a?", false, b"a?");
        check(c" ?a", false, b" ?a");
    }

    #[test]
    fn an_empty_name_is_required_and_a_lone_mark_is_optional() {
        check(c"", false, b"");
        check(c"?", true, b"");
    }

    #[test]
    fn a_name_that_is_not_utf8_can_be_shown() {
        assert_eq!(ImportName::new(c"\xff!").to_string(), "\u{fffd}!");
    }
}
