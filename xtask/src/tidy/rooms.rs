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
    // The cross-crate tests and the sample plugins.
    "tests/",
];

/// Folders of a package that no other package can use. Tests stand on both sides of the boundary.
const OUTSIDE_SRC: &[&str] = &["/tests/", "/examples/", "/benches/"];

/// Finds unsafe code outside its rooms.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".rs").filter(|(path, _)| !is_room(path)) {
        for (index, line) in code_only(text).lines().enumerate() {
            if holds_word(&without_pointer_types(line), "unsafe") {
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

/// Removes the types of foreign function pointers, `unsafe extern "C" fn(..)`: naming one does nothing unsafe. The
/// literal is a blank in `code_only`.
fn without_pointer_types(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").replace("unsafe extern fn(", "fn(")
}

/// Tells whether a file may hold unsafe code.
fn is_room(path: &str) -> bool {
    let outside_src = OUTSIDE_SRC.iter().any(|folder| path.contains(folder));
    outside_src
        || ROOMS
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

    #[test]
    fn a_type_of_a_foreign_function_is_no_unsafe_code() {
        let check_line =
            |line: &str| check(&Tree::of(&[("crates/hal-abi/src/plugin.rs", line)])).len();
        assert_eq!(
            check_line("type Load = unsafe extern \"C\" fn(*mut c_void) -> c_int;"),
            0
        );
        assert_eq!(
            check_line("unsafe extern \"C\" fn load(self_: *mut c_void) {}"),
            1
        );
    }

    #[test]
    fn tests_may_hold_unsafe_code() {
        let path = "crates/hal-elf/tests/all/image.rs";
        assert_eq!(check(&Tree::of(&[(path, "unsafe fn f() {}")])), []);
    }
}
