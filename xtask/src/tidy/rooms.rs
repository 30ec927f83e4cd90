//! Where `unsafe` may stand.
//!
//! The crates forbid or deny it; this table is the one place that lists every exception, so that a new one is a visible
//! decision. `docs/safety.md` says why each room needs it.

use crate::tidy::Finding;
use crate::tidy::lexer::{code_only, holds_word};
use crate::tidy::tree::Tree;

/// Files, and folders ending in `/`, that may hold unsafe code.
const ROOMS: &[&str] = &[
    // Mapping, relocating and calling into images.
    "crates/hal-elf/src/image/",
    "crates/hal-elf/src/image.rs",
    "crates/hal-elf/src/sys/",
    // The plugin handle, its sources, and import slots that foreign code fills.
    "crates/hal-plugin/src/plugin.rs",
    "crates/hal-plugin/src/provider.rs",
    "crates/hal-plugin/src/source/",
    // The exported entry points and what they receive.
    "crates/hal-plugin-sdk/src/",
    // The views of foreign libraries, the foreign call, and the pool that shares it.
    "crates/hal-local/src/library.rs",
    "crates/hal-local/src/library/",
    "crates/hal-local/src/call.rs",
    "crates/hal-local/src/dispatch/pool.rs",
    "crates/hal-local/src/loader/",
    // The bytes of buffers.
    "crates/vm/src/buffer.rs",
    "crates/vm/src/buffer/",
    // The facade's door to native code.
    "crates/halite/src/trust.rs",
    // Tests and sample plugins stand on both sides of the boundary.
    "tests/",
];

/// Finds unsafe code outside its rooms.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| !is_room(path)) {
        for (index, line) in code_only(text).lines().enumerate() {
            if holds_word(line, "unsafe") {
                findings.push(Finding::new(
                    path,
                    index + 1,
                    "unsafe code outside the rooms listed in xtask/src/tidy/rooms.rs",
                ));
            }
        }
    }
    findings
}

/// Tells whether a file may hold unsafe code.
fn is_room(path: &str) -> bool {
    ROOMS
        .iter()
        .any(|room| path == *room || (room.ends_with('/') && path.starts_with(room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsafe_code_is_found_outside_its_rooms_only() {
        let code = "//! unsafe\nfn f() { unsafe { g() } }\n";
        let tree = Tree::of(&[
            ("crates/vm/src/list.rs", code),
            ("crates/vm/src/buffer/storage.rs", code),
        ]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].path.as_str(), findings[0].line),
            ("crates/vm/src/list.rs", 2)
        );
    }
}
