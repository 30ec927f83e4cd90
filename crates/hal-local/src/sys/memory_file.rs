//! A file in memory that the dynamic linker can open: for Linux.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;

use std::os::fd::AsRawFd;

use rustix::fs::MemfdFlags;

use crate::LoadError;

/// A file that exists in memory only, under a name in `/proc`.
#[derive(Debug)]
pub(super) struct LibraryFile {
    /// Open for as long as the name is used.
    _file: File,
    path: String,
}

impl LibraryFile {
    /// Writes a file.
    pub(super) fn new(bytes: &[u8]) -> Result<Self, LoadError> {
        let failed = |operation| move |source| LoadError::Store { operation, source };
        let file = rustix::fs::memfd_create(c"halite-executable", MemfdFlags::CLOEXEC)
            .map_err(|errno| failed("memfd_create")(errno.into()))?;
        let mut file = File::from(file);
        file.write_all(bytes)
            .map_err(failed("write to the memory file"))?;
        let inode = file
            .metadata()
            .map_err(failed("fstat of the memory file"))?
            .ino();
        let path = path_of(file.as_raw_fd(), inode);
        Ok(Self { _file: file, path })
    }

    /// Returns the name to open.
    pub(super) fn path(&self) -> &OsStr {
        OsStr::new(&self.path)
    }

    /// Returns what must be kept while a library from this file is open: nothing, as the library's
    /// mappings keep the file.
    pub(super) fn keep_while_open(self) -> Option<Self> {
        None
    }
}

/// Returns a name of a descriptor that no other file has had while this one exists.
///
/// Dynamic linkers take a library whose name they have seen for one that is open already. Numbers of
/// descriptors are reused while libraries stay open, so `/proc/self/fd/3` may well have been seen.
/// The number of the inode is unique while the file exists, and a library keeps its file; so the
/// name spells that number too, in steps (`./` and `.//`) that lead nowhere.
fn path_of(descriptor: i32, inode: u64) -> String {
    let mut path = String::from("/proc/self/");
    for bit in (0..u64::BITS - inode.leading_zeros()).rev() {
        path.push_str(if inode >> bit & 1 == 0 { "./" } else { ".//" });
    }
    // Writing to a string cannot fail.
    let _ = write!(path, "fd/{descriptor}");
    path
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn the_file_can_be_read_under_its_name() {
        let file = LibraryFile::new(b"content").unwrap();
        assert_eq!(fs::read(Path::new(file.path())).unwrap(), b"content");
    }

    #[test]
    fn a_descriptor_that_is_reused_has_another_name() {
        let names = [(3, 5), (3, 6), (3, 7), (3, 1), (4, 5)].map(|(fd, inode)| path_of(fd, inode));
        assert_eq!(names[0], "/proc/self/.//././/fd/3");
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name), "{name}");
        }
    }
}
