//! The catalogue of known faults in `docs/testing.md` names tests that exist.

use std::collections::BTreeSet;

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// The document with the catalogue.
const PATH: &str = "docs/testing.md";
/// Opens the catalogue.
const HEADING: &str = "## Known faults of the field";

/// Finds rows of the catalogue that name a test which no source defines.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let functions: BTreeSet<&str> = tree
        .texts(".rs")
        .flat_map(|(_, text)| functions(text))
        .collect();
    let mut findings = Vec::new();
    let mut lines = tree.text(PATH).unwrap_or_default().lines().enumerate();
    if !lines.any(|(_, line)| line == HEADING) {
        return vec![Finding::new(PATH, 0, format!("has no heading `{HEADING}`"))];
    }
    for (index, line) in lines.filter(|(_, line)| line.starts_with('|')) {
        let tests = line
            .trim_end_matches('|')
            .rsplit('|')
            .next()
            .unwrap_or_default();
        for test in tests.split('`').skip(1).step_by(2) {
            if !functions.contains(test) {
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

/// Returns the names of all functions that begin a line of a source.
fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix("fn ")?;
        rest.find(['(', '<']).map(|end| &rest[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_must_name_a_test_of_the_tree() {
        let document = format!(
            "{HEADING}\n\n| id | fault | tests |\n|---|---|---|\n| A1 | `x` | `a_b`, `c_d` |\n| A2 | y | |\n"
        );
        let source = "//! x\n    fn a_b() {}\n";
        let findings = check(&Tree::of(&[(PATH, &document), ("a.rs", source)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(
            (findings[0].line, findings[0].what.as_str()),
            (5, "names the test `c_d`, which does not exist")
        );
    }

    #[test]
    fn a_missing_catalogue_is_found() {
        assert_eq!(check(&Tree::of(&[(PATH, "# Testing\n")])).len(), 1);
    }
}
