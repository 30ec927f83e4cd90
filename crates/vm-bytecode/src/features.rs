//! Feature bits and bytecode versions: what a module needs of the runtime that loads it.
//!
//! The numbers are those of `docs/vm.md`, sections "Feature bits" and "Bytecode versions".

use core::fmt;

/// Set of feature bits that a module or function requires. Unknown bits are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Features(u32);

impl Features {
    /// Nothing beyond the core instructions.
    pub const NONE: Self = Self(0);
    /// Instructions on f32 values.
    pub const EXT_F32: Self = Self(0x1);
    /// Instructions on f64 values.
    pub const EXT_F64: Self = Self(0x2);
    /// The function may yield. Since bytecode 17.0.
    pub const YIELD: Self = Self(0x4);
    /// The function may fail while it holds refs, so its frame needs cleaning. Since bytecode 17.0.
    pub const UNWIND: Self = Self(0x8);
    /// Everything this crate can run.
    pub const SUPPORTED: Self = Self(0xF);

    const NAMES: [(Self, &'static str); 4] = [
        (Self::EXT_F32, "EXT_F32"),
        (Self::EXT_F64, "EXT_F64"),
        (Self::YIELD, "YIELD"),
        (Self::UNWIND, "UNWIND"),
    ];

    /// Makes a set of the bits a file holds.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Returns the bits of the set.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// Returns whether every bit of `other` is in the set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        other.0 & !self.0 == 0
    }

    /// Returns the bits of the set that are not in `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl fmt::Display for Features {
    /// Writes the names of the bits joined by `|`, the unknown ones as one number, and `none` for the empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("none");
        }
        let mut separator = "";
        for (feature, name) in Self::NAMES {
            if self.contains(feature) {
                write!(f, "{separator}{name}")?;
                separator = "|";
            }
        }
        let unknown = self.without(Self::SUPPORTED);
        if unknown.0 != 0 {
            write!(f, "{separator}{:#x}", unknown.0)?;
        }
        Ok(())
    }
}

/// Version of the bytecode format of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BytecodeVersion {
    /// Grows when old files can no longer be read.
    pub major: u16,
    /// Grows when a file may hold things an older reader does not know.
    pub minor: u16,
}

/// The known versions, and the IREE releases that wrote them.
const KNOWN: [(BytecodeVersion, &str); 3] = [
    (
        BytecodeVersion {
            major: 15,
            minor: 0,
        },
        "IREE 2.9 to 3.9",
    ),
    (
        BytecodeVersion {
            major: 16,
            minor: 0,
        },
        "IREE 3.10",
    ),
    (
        BytecodeVersion {
            major: 17,
            minor: 0,
        },
        "IREE 3.11 to 3.13",
    ),
];

impl BytecodeVersion {
    /// Reads the version as a module stores it: the major number in the upper half.
    #[must_use]
    pub const fn from_packed(packed: u32) -> Self {
        // Both halves fit 16 bits by construction.
        Self {
            major: (packed >> 16) as u16,
            minor: (packed & 0xFFFF) as u16,
        }
    }

    /// Returns which releases wrote the version, or `None` if this crate does not know it.
    ///
    /// The encoding and meaning of instructions is the same in all known versions; each only adds to the one before.
    #[must_use]
    pub fn releases(self) -> Option<&'static str> {
        KNOWN
            .iter()
            .find(|(version, _)| *version == self)
            .map(|&(_, releases)| releases)
    }

    /// Returns the known versions with the releases that wrote them, as text for an error message.
    pub(crate) fn known() -> String {
        let versions: Vec<_> = KNOWN
            .iter()
            .map(|(version, releases)| format!("{version} ({releases})"))
            .collect();
        versions.join(", ")
    }

    /// Returns a guess at why the version is not known.
    pub(crate) fn age(self) -> &'static str {
        match self {
            version if version > KNOWN[2].0 => "the module was made by a newer compiler",
            version if version < KNOWN[0].0 => "the module was made by a compiler before IREE 2.9",
            _ => "no release wrote this version",
        }
    }
}

impl fmt::Display for BytecodeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_print_their_names_and_keep_unknown_bits() {
        assert_eq!(Features::NONE.to_string(), "none");
        assert_eq!(Features::from_bits(0x9).to_string(), "EXT_F32|UNWIND");
        assert_eq!(Features::from_bits(0x112).to_string(), "EXT_F64|0x110");
        assert!(!Features::SUPPORTED.contains(Features::from_bits(0x10)));
    }

    #[test]
    fn the_packed_version_has_its_major_number_on_top() {
        assert_eq!(
            BytecodeVersion::from_packed(0x0011_0002),
            BytecodeVersion {
                major: 17,
                minor: 2
            }
        );
    }

    #[test]
    fn only_three_versions_are_known() {
        let known = |packed| BytecodeVersion::from_packed(packed).releases().is_some();
        assert!(
            [0x000F_0000, 0x0010_0000, 0x0011_0000]
                .into_iter()
                .all(known)
        );
        assert!(
            ![
                0,
                0x000E_0000,
                0x000F_0001,
                0x0011_0001,
                0x0012_0000,
                u32::MAX
            ]
            .into_iter()
            .any(known)
        );
    }
}
