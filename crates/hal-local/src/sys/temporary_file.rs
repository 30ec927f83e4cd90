//! A private temporary file that the dynamic linker can open: for systems without memory files.

use std::ffi::OsStr;
use std::fs;

use tempfile::TempPath;

use crate::LoadError;

/// A file that is removed when dropped.
#[derive(Debug)]
pub(super) struct LibraryFile {
    path: TempPath,
}

impl LibraryFile {
    /// Writes a file that only this user may read, in the directory for temporary files.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, LoadError> {
        let failed = |operation| move |source| LoadError::Store { operation, source };
        // Closed before it is opened as a library: Windows demands it.
        let path = tempfile::Builder::new()
            .prefix("halite-")
            .suffix(std::env::consts::DLL_SUFFIX)
            .tempfile()
            .map_err(failed("creation of a temporary file"))?
            .into_temp_path();
        fs::write(&path, bytes).map_err(failed("write to the temporary file"))?;
        Ok(Self { path })
    }

    /// Returns the name to open.
    pub(super) fn path(&self) -> &OsStr {
        self.path.as_os_str()
    }

    /// Returns what must be kept while a library from this file is open: the file where an open one
    /// cannot be removed, which is Windows. Elsewhere it is removed at once.
    pub(super) fn keep_while_open(self) -> Option<Self> {
        cfg!(windows).then_some(self)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_file_is_removed_when_dropped() {
        let file = LibraryFile::new(b"content").unwrap();
        let path = Path::new(file.path()).to_owned();
        assert_eq!(fs::read(&path).unwrap(), b"content");
        drop(file);
        assert!(!path.exists());
    }
}
