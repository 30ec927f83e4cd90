//! The catalogue of known faults in `docs/testing.md` names, for each fault, tests that exist.

use std::collections::BTreeSet;

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// The document with the catalogue.
const PATH: &str = "docs/testing.md";
/// Opens the catalogue.
const HEADING: &str = "## Known faults of the field";

/// Finds rows of the catalogue that name no test, or one that no source defines.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let known: BTreeSet<&str> = tree
        .texts(".rs")
        .flat_map(|(_, text)| tests(text))
        .collect();
    let mut findings = Vec::new();
    let mut lines = tree.text(PATH).unwrap_or_default().lines().enumerate();
    if !lines.any(|(_, line)| line == HEADING) {
        return vec![Finding::new(PATH, 0, format!("has no heading `{HEADING}`"))];
    }
    // Behind the head of the table and the line under it.
    for (index, line) in lines.filter(|(_, line)| line.starts_with('|')).skip(2) {
        let row = line.trim_end_matches('|');
        let named = row.rsplit('|').next().unwrap_or_default();
        if !named.contains('`') {
            findings.push(Finding::new(PATH, index + 1, "names no test"));
        }
        for test in named.split('`').skip(1).step_by(2) {
            if !known.contains(test) {
                findings.push(Finding::new(
                    PATH,
                    index + 1,
                    format!("names the test `{test}`, which does not exist"),
                ));
            }
        }
    }
    findings
}

/// Returns the names of all tests of a source: functions below an attribute that says so.
fn tests(text: &str) -> impl Iterator<Item = &str> {
    let mut is_test = false;
    text.lines().filter_map(move |line| {
        let line = line.trim_start();
        if line.starts_with("#[") || line.starts_with("//") {
            is_test |= line == "#[test]";
            return None;
        }
        let was_test = std::mem::take(&mut is_test);
        let rest = line.strip_prefix("fn ").filter(|_| was_test)?;
        rest.find(['(', '<']).map(|end| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_must_name_a_test_of_the_tree() {
        let document = format!(
            "{HEADING}\n\n| id | fault | tests |\n|---|---|---|\n| A1 | `x` | `a_b`, `c_d` |\n| A2 | y | |\n| A3 | z | `no_test` |\n"
        );
        let source = "//! x\n    #[test]\n    #[cfg(unix)]\n    fn a_b() {}\nfn no_test() {}\n";
        let findings = check(&Tree::of(&[(PATH, &document), ("a.rs", source)]));
        let found = findings.iter().map(|it| (it.line, it.what.as_str()));
        assert!(found.eq([
            (5, "names the test `c_d`, which does not exist"),
            (6, "names no test"),
            (7, "names the test `no_test`, which does not exist"),
        ]));
    }

    #[test]
    fn a_missing_catalogue_is_found() {
        assert_eq!(check(&Tree::of(&[(PATH, "# Testing\n")])).len(), 1);
    }
}
