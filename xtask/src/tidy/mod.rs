//! The `tidy` task: the rules of the repository that no compiler checks.
//!
//! Each rule is a function from the [`Tree`] (all files, read once) to findings, in the file named after what it looks
//! at. A rule that needs a list (arrows, rooms of unsafe code) keeps it as a table at the top of its file.

mod catalogue;
mod lexer;
mod lockfile;
mod manifests;
mod markdown;
mod rooms;
mod sources;
mod toolchain;
mod tree;

use anyhow::{Result, bail};

use crate::tidy::tree::Tree;
use crate::workspace::Workspace;

/// One violation of a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    path: String,
    /// The line, counted from 1; 0 for the whole file.
    line: usize,
    what: String,
}

impl Finding {
    /// Returns a finding at a line; line 0 stands for the whole file.
    fn new(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            what: what.into(),
        }
    }
}

/// Applies every rule to the whole checkout and prints what it finds.
///
/// # Errors
///
/// When a rule finds something, or a file cannot be read.
pub(crate) fn tidy(workspace: &Workspace, arguments: &[String]) -> Result<()> {
    if let Some(argument) = arguments.first() {
        bail!("unexpected argument `{argument}`");
    }
    let tree = Tree::read(workspace.root())?;
    let mut findings = manifests::check(workspace, &tree)?;
    findings.extend(lockfile::check(&tree));
    findings.extend(sources::check(&tree));
    findings.extend(toolchain::check(&tree));
    findings.extend(rooms::check(&tree));
    findings.extend(markdown::check(&tree));
    findings.extend(catalogue::check(&tree));
    findings.sort();
    for finding in &findings {
        println!("{}:{}: {}", finding.path, finding.line, finding.what);
    }
    if findings.is_empty() {
        println!("tidy: {} files, nothing found", tree.files().len());
        Ok(())
    } else {
        bail!("{} findings", findings.len())
    }
}
