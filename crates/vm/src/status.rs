//! Status codes: the numbers that VM programs, modules and tools use to class a failure.
//!
//! Holds the code only; the error that carries it is [`crate::Trap`].

use core::fmt;

/// Class of a failure, as IREE numbers it (`docs/vm.md`, section "Status codes").
///
/// Codes are open: a program may fail with any 5-bit number, named or not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct StatusCode(u8);

/// Names of the codes, indexed by their number.
const NAMES: [&str; 19] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
    "DEFERRED",
    "INCOMPATIBLE",
];

impl StatusCode {
    /// Success.
    pub const OK: Self = Self(0);
    /// The operation was canceled, for example by an interrupt.
    pub const CANCELLED: Self = Self(1);
    /// The failure has no better class.
    pub const UNKNOWN: Self = Self(2);
    /// The caller passed a value that can never be accepted.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// A time or instruction budget ran out.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// A named thing does not exist.
    pub const NOT_FOUND: Self = Self(5);
    /// A thing exists that must not.
    pub const ALREADY_EXISTS: Self = Self(6);
    /// The thing may not be used that way, for example a write to read-only memory.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// Memory, stack or another limited resource ran out.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The state does not allow the operation.
    pub const FAILED_PRECONDITION: Self = Self(9);
    /// The operation was given up by its peer.
    pub const ABORTED: Self = Self(10);
    /// An index or range lies outside what exists.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// The operation is not supported.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// An invariant of the runtime or of a kernel is broken.
    pub const INTERNAL: Self = Self(13);
    /// The machine or the environment cannot do it.
    pub const UNAVAILABLE: Self = Self(14);
    /// Data is lost or damaged.
    pub const DATA_LOSS: Self = Self(15);
    /// The caller is not known.
    pub const UNAUTHENTICATED: Self = Self(16);
    /// Not an error: the callee yielded and must be resumed.
    pub const DEFERRED: Self = Self(17);
    /// Two things do not fit each other.
    pub const INCOMPATIBLE: Self = Self(18);

    /// Returns the code in the low 5 bits of `value`, as `vm.fail` defines it.
    #[must_use]
    pub const fn from_low_bits(value: u32) -> Self {
        // The mask keeps the value below 32.
        Self((value & 0x1F) as u8)
    }

    /// Returns the number of the code, 0 to 31.
    #[must_use]
    pub const fn value(self) -> u8 {
        self.0
    }

    /// Returns IREE's name of the code, or `None` for a number without a name.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "STATUS_{}", self.0),
        }
    }
}

impl fmt::Debug for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_the_low_five_bits() {
        assert_eq!(
            StatusCode::from_low_bits(100),
            StatusCode::DEADLINE_EXCEEDED
        );
        assert_eq!(StatusCode::from_low_bits(u32::MAX).value(), 31);
    }

    #[test]
    fn a_code_without_a_name_prints_its_number() {
        assert_eq!(StatusCode::from_low_bits(31).to_string(), "STATUS_31");
        assert_eq!(StatusCode::INCOMPATIBLE.to_string(), "INCOMPATIBLE");
    }
}
