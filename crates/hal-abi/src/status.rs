//! Status codes and the pointer-sized status that foreign functions return.
//!
//! Facts: `docs/abi.md`, section 2.

use core::fmt;

/// A status code: why a call failed, in IREE's numbering.
///
/// An open set. Codes 19 to 31 are legal on the wire and have no name.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatusCode(pub u32);

impl StatusCode {
    /// The bits of a status that hold its code.
    pub const MASK: u32 = 0x1F;

    /// Success.
    pub const OK: Self = Self(0);
    /// The caller cancelled; from a loader it means "not mine, try the next".
    pub const CANCELLED: Self = Self(1);
    /// An error of unknown kind.
    pub const UNKNOWN: Self = Self(2);
    /// An argument is wrong whatever the state; retrying never helps.
    pub const INVALID_ARGUMENT: Self = Self(3);
    /// A deadline passed.
    pub const DEADLINE_EXCEEDED: Self = Self(4);
    /// Something named does not exist, such as a required import.
    pub const NOT_FOUND: Self = Self(5);
    /// Something named exists already.
    pub const ALREADY_EXISTS: Self = Self(6);
    /// The caller may not do this.
    pub const PERMISSION_DENIED: Self = Self(7);
    /// Memory or another finite resource is used up.
    pub const RESOURCE_EXHAUSTED: Self = Self(8);
    /// The state must change before the call can work.
    pub const FAILED_PRECONDITION: Self = Self(9);
    /// The operation was aborted, usually by a concurrent one.
    pub const ABORTED: Self = Self(10);
    /// An index or size is past its limit.
    pub const OUT_OF_RANGE: Self = Self(11);
    /// The operation does not exist here.
    pub const UNIMPLEMENTED: Self = Self(12);
    /// A broken invariant.
    pub const INTERNAL: Self = Self(13);
    /// The operation cannot be had on this host.
    pub const UNAVAILABLE: Self = Self(14);
    /// Data is lost or corrupted.
    pub const DATA_LOSS: Self = Self(15);
    /// The caller is not known.
    pub const UNAUTHENTICATED: Self = Self(16);
    /// The operation will complete later; inside IREE's VM it asks for a yield.
    pub const DEFERRED: Self = Self(17);
    /// The data is of a kind that this consumer does not understand. Used inside runtimes only:
    /// the plugin ABI does not name it.
    pub const INCOMPATIBLE: Self = Self(18);

    /// Returns the name of the code, or `None` for a code without a name.
    #[must_use]
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::OK => "OK",
            Self::CANCELLED => "CANCELLED",
            Self::UNKNOWN => "UNKNOWN",
            Self::INVALID_ARGUMENT => "INVALID_ARGUMENT",
            Self::DEADLINE_EXCEEDED => "DEADLINE_EXCEEDED",
            Self::NOT_FOUND => "NOT_FOUND",
            Self::ALREADY_EXISTS => "ALREADY_EXISTS",
            Self::PERMISSION_DENIED => "PERMISSION_DENIED",
            Self::RESOURCE_EXHAUSTED => "RESOURCE_EXHAUSTED",
            Self::FAILED_PRECONDITION => "FAILED_PRECONDITION",
            Self::ABORTED => "ABORTED",
            Self::OUT_OF_RANGE => "OUT_OF_RANGE",
            Self::UNIMPLEMENTED => "UNIMPLEMENTED",
            Self::INTERNAL => "INTERNAL",
            Self::UNAVAILABLE => "UNAVAILABLE",
            Self::DATA_LOSS => "DATA_LOSS",
            Self::UNAUTHENTICATED => "UNAUTHENTICATED",
            Self::DEFERRED => "DEFERRED",
            Self::INCOMPATIBLE => "INCOMPATIBLE",
            _ => return None,
        })
    }
}

/// Writes the name of the code, or its number if it has none.
impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => fmt::Display::fmt(&self.0, f),
        }
    }
}

/// The status a foreign function returns: a pointer-sized value whose low five bits are the code.
///
/// * `0` is OK, and nothing else is.
/// * `1..0x20` is a bare code.
/// * `0x20` and above is the address of a record in the producer's heap, with the code in the low
///   five bits. The record's layout is private to the producer; nobody else can read or free it.
///
/// The value carries no ownership here: dropping a `Status` that points at a record leaks it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Status(pub usize);

impl Status {
    /// Success.
    pub const OK: Self = Self(0);

    /// Returns the bare status of a code.
    ///
    /// A number above [`StatusCode::MASK`] is not a code; it becomes [`StatusCode::UNKNOWN`], so
    /// that an error never turns into OK or into an address.
    pub const fn from_code(code: StatusCode) -> Self {
        if code.0 > StatusCode::MASK {
            return Self(StatusCode::UNKNOWN.0 as usize);
        }
        Self(code.0 as usize)
    }

    /// Returns whether this is OK: the whole value is zero.
    #[must_use]
    pub const fn is_ok(self) -> bool {
        self.0 == 0
    }

    /// Returns the code in the low five bits.
    ///
    /// A malformed status (an address whose low bits are zero) has code [`StatusCode::OK`] although
    /// it is not OK: test [`Status::is_ok`] first.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the mask leaves five bits, which fit any integer"
    )]
    pub const fn code(self) -> StatusCode {
        StatusCode((self.0 & StatusCode::MASK as usize) as u32)
    }

    /// Returns whether the value is an address, not a bare code.
    #[must_use]
    pub const fn is_payload(self) -> bool {
        self.0 > StatusCode::MASK as usize
    }
}

const _: () = assert!(size_of::<Status>() == size_of::<*const ()>());

#[cfg(test)]
mod tests {
    use std::string::ToString;

    use super::*;

    #[test]
    fn the_named_codes_are_0_to_18() {
        for code in 0..19 {
            assert!(StatusCode(code).name().is_some(), "{code}");
        }
        for code in 19..64 {
            assert_eq!(StatusCode(code).name(), None);
            assert_eq!(StatusCode(code).to_string(), code.to_string());
        }
    }

    #[test]
    fn every_bare_code_survives_the_round_trip() {
        for code in 0..32 {
            let status = Status::from_code(StatusCode(code));
            assert_eq!(status.code(), StatusCode(code));
            assert_eq!(status.is_ok(), code == 0);
            assert!(!status.is_payload());
        }
    }

    #[test]
    fn a_number_that_is_no_code_becomes_unknown() {
        for number in [0x20, 0x40, 0x45, u32::MAX] {
            let status = Status::from_code(StatusCode(number));
            assert_eq!(status.code(), StatusCode::UNKNOWN, "{number:#x}");
            assert!(!status.is_payload());
        }
    }

    #[test]
    fn an_address_with_no_code_is_not_ok() {
        let status = Status(0x20);
        assert!(!status.is_ok());
        assert!(status.is_payload());
        assert_eq!(status.code(), StatusCode::OK);
    }

    #[test]
    fn the_code_of_a_record_is_in_the_low_bits_of_its_address() {
        let status = Status(0x1230_0040 | 3);
        assert!(status.is_payload());
        assert_eq!(status.code(), StatusCode::INVALID_ARGUMENT);
    }
}
