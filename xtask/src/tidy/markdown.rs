//! Links between the documents, and the documents that sources cite.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Finds links and citations that lead nowhere.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.texts(".md") {
        for (line, target) in links(text) {
            if let Some(what) = broken(tree, path, target) {
                findings.push(Finding::new(path, line, what));
            }
        }
    }
    for (path, text) in tree.texts(".rs") {
        for (index, line) in text.lines().enumerate() {
            let missing = citations(line).filter(|document| !tree.holds(document));
            findings.extend(missing.map(|document| {
                Finding::new(
                    path,
                    index + 1,
                    format!("cites `{document}`, which does not exist"),
                )
            }));
        }
    }
    findings
}

/// Returns the targets of all inline links outside code, with their line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    let mut fenced = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        if fenced {
            continue;
        }
        // Every second part between backticks is code.
        for prose in line.split('`').step_by(2) {
            let targets = prose
                .split("](")
                .skip(1)
                .filter_map(|rest| Some(rest.split_once(')')?.0));
            links.extend(targets.map(|target| (index + 1, target)));
        }
    }
    links
}

/// Says why a link is broken, `None` when it is not.
fn broken(tree: &Tree, from: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = if file.is_empty() {
        Some(from.to_owned())
    } else {
        resolve(from, file)
    };
    let Some(path) = path.filter(|path| tree.holds(path)) else {
        return Some(format!("links to `{target}`, which does not exist"));
    };
    let anchor = anchor?;
    let text = tree.text(&path)?;
    let found = headings(text).any(|heading| slug(heading) == anchor);
    (!found).then(|| format!("links to `{target}`, but there is no such heading"))
}

/// Resolves a path relative to the folder of a file; `None` when it leaves the tree.
fn resolve(from: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the headings of a document.
fn headings(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim())
}

/// Returns the anchor that a renderer gives a heading.
fn slug(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Returns the documents under `docs/` that a line names in backticks.
fn citations(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter(|code| {
        let path = code
            .strip_prefix("docs/")
            .and_then(|rest| rest.strip_suffix(".md"));
        path.is_some_and(|path| {
            path.chars()
                .all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '/'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_files(files: &[(&str, &str)], expected: &[&str]) {
        let findings = check(&Tree::of(files));
        let found: Vec<&str> = findings
            .iter()
            .map(|finding| finding.what.as_str())
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_link_must_lead_to_a_file_of_the_tree() {
        let docs = ("docs/abi.md", "# The ABI\n");
        check_files(
            &[
                docs,
                (
                    "a.md",
                    "[x](docs/abi.md) [y](https://e.org/z) [`docs/abi.md`](docs) [z](#up)\n# Up\n",
                ),
            ],
            &[],
        );
        check_files(
            &[
                docs,
                ("docs/b.md", "[x](../docs/abi.md#the-abi) [y](abi.md)"),
            ],
            &[],
        );
        check_files(
            &[docs, ("a.md", "[x](abi.md)")],
            &["links to `abi.md`, which does not exist"],
        );
        check_files(
            &[docs, ("a.md", "[x](../../abi.md)")],
            &["links to `../../abi.md`, which does not exist"],
        );
        check_files(
            &[docs, ("a.md", "[x](docs/abi.md#no)")],
            &["links to `docs/abi.md#no`, but there is no such heading"],
        );
    }

    #[test]
    fn a_link_with_code_as_its_text_is_checked() {
        check_files(
            &[("a.md", "[`x`](x.md)")],
            &["links to `x.md`, which does not exist"],
        );
    }

    #[test]
    fn code_holds_no_links() {
        check_files(&[("a.md", "```\n[x](y.md)\n```\n`a[0](y)`\n")], &[]);
    }

    #[test]
    fn a_cited_document_must_exist() {
        check_files(
            &[("a.rs", "// See `docs/abi.md`, section 3.")],
            &["cites `docs/abi.md`, which does not exist"],
        );
        check_files(
            &[("a.rs", "// See `docs/abi.md`."), ("docs/abi.md", "")],
            &[],
        );
    }
}
