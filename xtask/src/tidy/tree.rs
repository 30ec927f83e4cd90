//! The files of the checkout, read once.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};

/// Folders that are not part of the sources, by name.
const SKIPPED_FOLDERS: &[&str] = &[".git", "target"];

/// All files of a checkout by their path, relative to the root and with `/` between the parts.
pub(super) struct Tree {
    files: BTreeMap<String, File>,
}

/// One file.
pub(super) struct File {
    /// The size in bytes.
    pub(super) size: u64,
    /// The contents, `None` when they are no text.
    pub(super) text: Option<String>,
}

impl Tree {
    /// Reads all files below a folder.
    ///
    /// # Errors
    ///
    /// When a file or folder cannot be read; the error names it.
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut folders = vec![(root.to_path_buf(), String::new())];
        while let Some((folder, prefix)) = folders.pop() {
            for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
                let entry = entry.with_context(|| folder.display().to_string())?;
                let name = entry.file_name().to_string_lossy().into_owned();
                // In a worktree of git the folder `.git` is a file.
                if SKIPPED_FOLDERS.contains(&name.as_str()) {
                    continue;
                }
                let path = entry.path();
                if entry.file_type()?.is_dir() {
                    folders.push((path, format!("{prefix}{name}/")));
                    continue;
                }
                let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
                let size = bytes.len() as u64;
                let text = String::from_utf8(bytes).ok();
                files.insert(format!("{prefix}{name}"), File { size, text });
            }
        }
        Ok(Self { files })
    }

    /// Returns a tree of the given texts, for tests of the rules.
    #[cfg(test)]
    pub(super) fn of(files: &[(&str, &str)]) -> Self {
        let file = |text: &str| File {
            size: text.len() as u64,
            text: Some(text.to_owned()),
        };
        Self {
            files: files
                .iter()
                .map(|(path, text)| ((*path).to_owned(), file(text)))
                .collect(),
        }
    }

    /// Returns all files by path.
    pub(super) fn files(&self) -> &BTreeMap<String, File> {
        &self.files
    }

    /// Returns the text of one file.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.text.as_deref()
    }

    /// Returns the path and text of every text file whose name ends so.
    pub(super) fn texts<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.ends_with(ending))
            .filter_map(|(path, file)| Some((path.as_str(), file.text.as_deref()?)))
    }

    /// Tells whether a path is a file or a folder of the tree.
    pub(super) fn holds(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self
                .files
                .range(folder.clone()..)
                .next()
                .is_some_and(|(found, _)| found.starts_with(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_held_by_its_files() {
        let tree = Tree::of(&[("docs/abi.md", ""), ("docs-old.md", "")]);
        for path in ["docs", "docs/", "docs/abi.md", ""] {
            assert!(tree.holds(path), "{path:?}");
        }
        for path in ["doc", "docs/ab", "abi.md"] {
            assert!(!tree.holds(path), "{path:?}");
        }
    }
}
