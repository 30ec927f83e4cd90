//! Where `unsafe` may stand.
//!
//! The crates forbid or deny it; this table is the one place that lists every exception, so that a new one is a visible
//! decision. `docs/safety.md` says why each room needs it.

use std::collections::BTreeSet;

use crate::tidy::Finding;
use crate::tidy::lexer::{code_only, holds_word};
use crate::tidy::tree::Tree;

/// Files, and folders ending in `/`, that may hold unsafe code.
const ROOMS: &[&str] = &[
    // Mapping, relocating and calling into images.
    "crates/hal-elf/src/image.rs",
    "crates/hal-elf/src/sys/",
    // The executable libraries, the foreign call, and what both parties share meanwhile.
    "crates/hal-local/src/library/query.rs",
    "crates/hal-local/src/library/query/",
    "crates/hal-local/src/library/tables.rs",
    "crates/hal-local/src/loader/code_image.rs",
    "crates/hal-local/src/loader/embedded.rs",
    "crates/hal-local/src/loader/static_library.rs",
    "crates/hal-local/src/loader/system.rs",
    "crates/hal-local/src/native/call.rs",
    "crates/hal-local/src/native/denormals.rs",
    "crates/hal-local/src/native/environment.rs",
    "crates/hal-local/src/native/site.rs",
    "crates/hal-local/src/pool/gate.rs",
    "crates/hal-local/src/sys.rs",
    "crates/hal-local/src/trust.rs",
    // The plugin handle, where its code comes from, and the slots that it fills.
    "crates/hal-plugin/src/import.rs",
    "crates/hal-plugin/src/plugin/",
    "crates/hal-plugin/src/slots.rs",
    "crates/hal-plugin/src/source/",
    // The exported entry points and what they receive.
    "crates/hal-plugin-sdk/src/call.rs",
    "crates/hal-plugin-sdk/src/export.rs",
    "crates/hal-plugin-sdk/src/freestanding.rs",
    "crates/hal-plugin-sdk/src/host.rs",
    "crates/hal-plugin-sdk/src/load.rs",
    "crates/hal-plugin-sdk/src/plain.rs",
    "crates/hal-plugin-sdk/src/rows.rs",
    // The bytes of buffers.
    "crates/vm/src/buffer/memory.rs",
    // The call of machine code that was made from bytecode.
    "crates/vm-jit/src/code.rs",
    // Where an embedder, and the command on behalf of its user, decide to run native code.
    "crates/halite/src/trust.rs",
    "crates/halite-cli/src/trust.rs",
    // A program that runs native code, the cross-crate tests and the sample plugins.
    "examples/",
    "tests/",
];

/// Folders of a package that no other package can use. Tests stand on both sides of the boundary.
const OUTSIDE_SRC: &[&str] = &["/tests/", "/examples/", "/benches/"];

/// Finds unsafe code outside its rooms, and rooms that need it no more.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (path, text) in tree.texts(".rs") {
        let code = code_only(text);
        let mut lines = code.lines().enumerate();
        let Some((index, _)) =
            lines.find(|(_, line)| holds_word(&without_pointer_types(line), "unsafe"))
        else {
            continue;
        };
        if let Some(room) = ROOMS.iter().find(|room| is_in(path, room)) {
            used.insert(room);
        } else if !OUTSIDE_SRC.iter().any(|folder| path.contains(folder)) {
            let what = "unsafe code outside the rooms listed in xtask/src/tidy/rooms.rs";
            findings.push(Finding::new(path, index + 1, what));
        }
    }
    let stale = ROOMS.iter().filter(|room| !used.contains(room));
    findings.extend(stale.map(|room| {
        Finding::new(
            room,
            0,
            "is listed in xtask/src/tidy/rooms.rs but holds no unsafe code",
        )
    }));
    findings
}

/// Removes the types of foreign function pointers, `unsafe extern "C" fn(..)`: naming one does nothing unsafe. The
/// literal is a blank in `code_only`.
fn without_pointer_types(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").replace("unsafe extern fn(", "fn(")
}

/// Tells whether a file is the room or lies in it.
fn is_in(path: &str, room: &str) -> bool {
    path == room || (room.ends_with('/') && path.starts_with(room))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is found about one file that holds the text.
    fn check_file(path: &str, text: &str) -> Vec<(usize, String)> {
        let findings = check(&Tree::of(&[(path, text)])).into_iter();
        let findings = findings.filter(|finding| finding.path == path);
        findings
            .map(|finding| (finding.line, finding.what))
            .collect()
    }

    #[test]
    fn unsafe_code_is_found_outside_its_rooms_only() {
        let code = "//! unsafe\nfn f() { unsafe { g() } }\n";
        let found = check_file("crates/vm/src/list.rs", code);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 2);
        for room in [
            "crates/vm/src/buffer/memory.rs",
            "crates/hal-elf/src/sys/unix.rs",
            "crates/hal-elf/tests/a.rs",
        ] {
            assert_eq!(check_file(room, code), [], "{room}");
        }
    }

    #[test]
    fn a_room_without_unsafe_code_is_found() {
        let path = "crates/vm/src/buffer/memory.rs";
        let found = check_file(path, "//! A file.\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("holds no unsafe code"));
    }

    #[test]
    fn a_type_of_a_foreign_function_is_no_unsafe_code() {
        let path = "crates/hal-abi/src/plugin.rs";
        assert_eq!(
            check_file(
                path,
                "type Load = unsafe extern \"C\" fn(*mut c_void) -> c_int;"
            ),
            []
        );
        assert_eq!(
            check_file(path, "unsafe extern \"C\" fn load(self_: *mut c_void) {}").len(),
            1
        );
    }
}
