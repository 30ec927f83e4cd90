//! Rules for single files: headers, leftovers, sizes, names of machines.

use crate::tidy::Finding;
use crate::tidy::lexer::{code_only, holds_word};
use crate::tidy::tree::Tree;

/// The most lines a source file may have.
const MAX_LINES: usize = 900;
/// The most bytes any file may have.
const MAX_BYTES: u64 = 1 << 20;
/// What no code may hold.
const UNFINISHED: &[&str] = &["#[ignore", "todo!(", "unimplemented!("];
/// What neither code nor comments may hold. Written in two parts, so that this file passes.
const LEFT_OVER: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X")];
/// Folders that exist on somebody's machine only.
const MACHINE_FOLDERS: &[&str] = &["work", "farm", "root", "home", "tmp/halite"];

/// Checks every file on its own.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, file) in tree.files() {
        if file.size > MAX_BYTES {
            findings.push(Finding::new(
                path,
                0,
                format!("{} bytes, more than {MAX_BYTES}", file.size),
            ));
        }
        if let Some(text) = &file.text {
            findings.extend(machine_folders(path, text));
        }
    }
    for (path, text) in tree.texts(".rs") {
        findings.extend(source(path, text));
    }
    findings
}

/// Checks one Rust source.
fn source(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(Finding::new(path, 1, "does not open with a `//!` header"));
    }
    let count = text.lines().count();
    if count > MAX_LINES {
        findings.push(Finding::new(
            path,
            0,
            format!("{count} lines, more than {MAX_LINES}"),
        ));
    }
    for (index, line) in code_only(text).lines().enumerate() {
        let found = UNFINISHED.iter().filter(|word| line.contains(**word));
        findings.extend(found.map(|word| Finding::new(path, index + 1, format!("holds `{word}`"))));
    }
    for (index, line) in text.lines().enumerate() {
        let found = LEFT_OVER.iter().filter(|word| holds_word(line, word));
        findings.extend(found.map(|word| Finding::new(path, index + 1, format!("holds `{word}`"))));
    }
    findings
}

/// Finds paths of one machine.
fn machine_folders(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for folder in MACHINE_FOLDERS.iter().map(|name| format!("/{name}/")) {
            if line.contains(&folder) {
                findings.push(Finding::new(
                    path,
                    index + 1,
                    format!("names the folder `{folder}` of some machine"),
                ));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_text(text: &str, expected: &[(usize, &str)]) {
        let findings = check(&Tree::of(&[("a.rs", text)]));
        let found: Vec<(usize, &str)> = findings
            .iter()
            .map(|finding| (finding.line, finding.what.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_clean_file_passes() {
        check_text("//! A file.\nfn f() -> &'static str { \"todo!()\" }\n", &[]);
    }

    #[test]
    fn a_missing_header_is_found() {
        check_text("fn f() {}\n", &[(1, "does not open with a `//!` header")]);
    }

    #[test]
    fn unfinished_code_is_found() {
        check_text(
            "//! A file.\nfn f() { todo!() }\n",
            &[(2, "holds `todo!(`")],
        );
        check_text(
            "//! A file.\n#[test]\n#[ignore = \"slow\"]\nfn f() {}\n",
            &[(3, "holds `#[ignore`")],
        );
        let mark = LEFT_OVER[0];
        check_text(
            &format!("//! A file.\n// {mark}: later\n"),
            &[(2, &format!("holds `{mark}`"))],
        );
    }

    #[test]
    fn a_long_file_is_found() {
        let text = format!("//! A file.\n{}", "\n".repeat(MAX_LINES));
        check_text(&text, &[(0, "901 lines, more than 900")]);
    }

    #[test]
    fn a_path_of_one_machine_is_found() {
        let folder = format!("/{}/", MACHINE_FOLDERS[0]);
        let what = format!("names the folder `{folder}` of some machine");
        check_text(&format!("//! See {folder}x.\n"), &[(1, &what)]);
    }
}
