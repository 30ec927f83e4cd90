//! The toolchain: what the manifests promise to build with is what is pinned, so that every build tests it.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Finds a `rust-version` that is not that of the pinned toolchain.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let value = |path: &str, key: &str| {
        let lines = tree.text(path)?.lines();
        let mut values = lines.filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = \""));
        values.next()?.strip_suffix('"')
    };
    let promised = value("Cargo.toml", "rust-version").unwrap_or_default();
    let pinned = value("rust-toolchain.toml", "channel").unwrap_or_default();
    let is_pinned = pinned == promised || pinned.strip_suffix(".0") == Some(promised);
    if is_pinned && !promised.is_empty() {
        return Vec::new();
    }
    let what = format!("`rust-version` is `{promised}` but the pinned toolchain is `{pinned}`");
    vec![Finding::new("Cargo.toml", 0, what)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolchain_other_than_the_promised_one_is_found() {
        let count = |promised: &str, pinned: &str| {
            let manifest = format!("[workspace.package]\nrust-version = \"{promised}\"\n");
            let toolchain = format!("[toolchain]\nchannel = \"{pinned}\"\n");
            check(&Tree::of(&[
                ("Cargo.toml", &manifest),
                ("rust-toolchain.toml", &toolchain),
            ]))
            .len()
        };
        assert_eq!(count("1.95", "1.95.0"), 0);
        assert_eq!(count("1.95.1", "1.95.1"), 0);
        assert_eq!(count("1.94", "1.95.0"), 1);
        assert_eq!(count("1.95", "1.95.1"), 1);
        assert_eq!(count("1.95", "stable"), 1);
    }
}
