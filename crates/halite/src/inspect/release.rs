//! Which compiler releases write such a module.
//!
//! A module names no release, but what it holds changed over time (`docs/vm.md`, section "Releases"). Each sign narrows
//! the range of releases down.
#![forbid(unsafe_code)]

use core::fmt;

#[cfg(feature = "serde")]
use serde::{Serialize, Serializer};
use vm_bytecode::{BytecodeVersion, ModuleDef};

/// The compiler releases whose modules are known, oldest first.
const RELEASES: [&str; 15] = [
    "2.9", "3.0", "3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "3.7", "3.8", "3.9", "3.10", "3.11",
    "3.12", "3.13",
];

/// The calling convention of `hal_loader.executable.dispatch` since functions have ids.
const DISPATCH_BY_ID: &str = "0rIiiiCiDCrIID_v";

/// A range of compiler releases. Displays as `3.12 to 3.13`, or as one release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleaseRange {
    first: usize,
    last: usize,
}

impl ReleaseRange {
    const ALL: Self = Self {
        first: 0,
        last: RELEASES.len() - 1,
    };

    /// Returns the oldest release.
    #[must_use]
    pub fn first(self) -> &'static str {
        RELEASES[self.first]
    }

    /// Returns the newest release.
    #[must_use]
    pub fn last(self) -> &'static str {
        RELEASES[self.last]
    }

    /// Returns the releases from `first` to `last`.
    fn between(first: &str, last: &str) -> Self {
        let index = |release| RELEASES.iter().position(|known| *known == release);
        Self {
            first: index(first).unwrap_or(Self::ALL.first),
            last: index(last).unwrap_or(Self::ALL.last),
        }
    }

    /// Returns the releases that are in both ranges, or `None` if there are none.
    fn intersect(self, other: Self) -> Option<Self> {
        let common = Self {
            first: self.first.max(other.first),
            last: self.last.min(other.last),
        };
        (common.first <= common.last).then_some(common)
    }
}

impl fmt::Display for ReleaseRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.first == self.last {
            return f.write_str(self.first());
        }
        write!(f, "{} to {}", self.first(), self.last())
    }
}

#[cfg(feature = "serde")]
impl Serialize for ReleaseRange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([("first", self.first()), ("last", self.last())])
    }
}

/// Returns the releases that may have written a module whose executables have these library versions, or `None` if no
/// known release fits all signs.
pub(super) fn of_module(def: &ModuleDef, library_versions: &[&str]) -> Option<ReleaseRange> {
    let mut range = of_bytecode(def.bytecode_version)?;
    let mut narrow = |other: ReleaseRange| {
        range = range.intersect(other)?;
        Some(())
    };
    for version in library_versions {
        narrow(match *version {
            "0.5" => ReleaseRange::between("2.9", "3.7"),
            _ => ReleaseRange::between("3.8", "3.13"),
        })?;
    }
    for dependency in &def.dependencies {
        narrow(of_dependency(&dependency.name, dependency.minimum_version)?)?;
    }
    for import in &def.imports {
        if import.full_name == "hal_loader.executable.dispatch" {
            narrow(
                match import.signature.calling_convention == DISPATCH_BY_ID {
                    true => ReleaseRange::between("3.12", "3.13"),
                    false => ReleaseRange::between("2.9", "3.11"),
                },
            )?;
        }
    }
    Some(range)
}

fn of_bytecode(version: BytecodeVersion) -> Option<ReleaseRange> {
    Some(match (version.major, version.minor) {
        (15, 0) => ReleaseRange::between("2.9", "3.9"),
        (16, 0) => ReleaseRange::between("3.10", "3.10"),
        (17, 0) => ReleaseRange::between("3.11", "3.13"),
        _ => return None,
    })
}

/// Returns the releases that require this version of a module, or `None` if none does.
fn of_dependency(name: &str, minimum_version: u32) -> Option<ReleaseRange> {
    Some(match (name, minimum_version) {
        ("hal_loader", 0) => ReleaseRange::between("2.9", "3.11"),
        ("hal_loader", 1) => ReleaseRange::between("3.12", "3.13"),
        ("hal", 5) => ReleaseRange::between("2.9", "3.3"),
        ("hal", 6) => ReleaseRange::between("3.4", "3.11"),
        ("hal", 7) => ReleaseRange::between("3.12", "3.13"),
        ("hal_loader" | "hal", _) => return None,
        _ => ReleaseRange::ALL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_narrow_the_range_down() {
        let bytecode = of_bytecode(BytecodeVersion {
            major: 17,
            minor: 0,
        })
        .unwrap();
        assert_eq!(bytecode.to_string(), "3.11 to 3.13");
        let old = of_dependency("hal_loader", 0).unwrap();
        assert_eq!(bytecode.intersect(old).unwrap().to_string(), "3.11");
        let new = of_dependency("hal_loader", 1).unwrap();
        assert_eq!(bytecode.intersect(new).unwrap().to_string(), "3.12 to 3.13");
        assert_eq!(new.intersect(old), None);
    }

    #[test]
    fn a_version_that_no_release_requires_has_no_range() {
        assert_eq!(of_dependency("hal_loader", 2), None);
        assert_eq!(of_dependency("mine", 99), Some(ReleaseRange::ALL));
    }
}
