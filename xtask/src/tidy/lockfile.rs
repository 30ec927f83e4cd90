//! Versions that the lockfile must not fall below.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// A package, the oldest version allowed, and why.
const OLDEST: &[(&str, [u64; 3], &str)] = &[(
    "arc-swap",
    [1, 9, 5],
    "older versions can load a value that was stored in another ArcSwap",
)];

/// Finds packages that are locked below their oldest allowed version.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    const PATH: &str = "Cargo.lock";
    let Some(text) = tree.text(PATH) else {
        return vec![Finding::new(PATH, 0, "is missing")];
    };
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (name, oldest, why) in OLDEST {
            if line != format!("name = \"{name}\"") {
                continue;
            }
            let version = text.lines().nth(index + 1).unwrap_or_default();
            if parse(version).is_none_or(|version| version < *oldest) {
                let [major, minor, patch] = oldest;
                let what = format!("{name} must be {major}.{minor}.{patch} or newer: {why}");
                findings.push(Finding::new(PATH, index + 2, what));
            }
        }
    }
    findings
}

/// Parses the line `version = "1.2.3"`.
fn parse(line: &str) -> Option<[u64; 3]> {
    let version = line.strip_prefix("version = \"")?.strip_suffix('"')?;
    let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
    Some([parts.next()??, parts.next()??, parts.next()??])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_version_is_found() {
        let lock = |version| format!("[[package]]\nname = \"arc-swap\"\nversion = \"{version}\"\n");
        for (version, count) in [
            ("1.9.5", 0),
            ("1.10.0", 0),
            ("2.0.0", 0),
            ("1.9.4", 1),
            ("1.9", 1),
        ] {
            assert_eq!(
                check(&Tree::of(&[("Cargo.lock", &lock(version))])).len(),
                count,
                "{version}"
            );
        }
    }
}
