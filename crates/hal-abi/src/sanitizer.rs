//! The sanitizer that code was built with, as plugins and libraries declare it.

/// The sanitizer a plugin or library was compiled with. An open set.
///
/// Instrumented code needs the sanitizer's runtime in the host. A host that has none accepts only
/// [`SanitizerKind::NONE`] and answers UNAVAILABLE to anything else (`docs/abi.md`, section 4.2).
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SanitizerKind(pub i32);

impl SanitizerKind {
    /// Not instrumented.
    pub const NONE: Self = Self(0);
    /// Address sanitizer.
    pub const ADDRESS: Self = Self(1);
    /// Memory sanitizer.
    pub const MEMORY: Self = Self(2);
    /// Thread sanitizer.
    pub const THREAD: Self = Self(3);
    /// Undefined behavior sanitizer.
    pub const UNDEFINED: Self = Self(4);

    /// Returns the name of the sanitizer, or `None` for a kind without a name.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NONE => "none",
            Self::ADDRESS => "address",
            Self::MEMORY => "memory",
            Self::THREAD => "thread",
            Self::UNDEFINED => "undefined",
            _ => return None,
        })
    }
}

const _: () = assert!(size_of::<SanitizerKind>() == 4);
