//! Lists of names from files, of which only the first are kept.
#![forbid(unsafe_code)]

#[cfg(feature = "serde")]
use serde::Serialize;

/// Most names of a list that are kept: many names of a file may share their bytes, so all of them could take far more
/// memory than the file.
const MAX_NAMES: usize = 256;

/// How many names there are, and the first of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(Serialize))]
#[non_exhaustive]
pub struct NameList {
    /// How many there are.
    pub count: usize,
    /// The first 256 of them; bytes that are not UTF-8 are replaced.
    pub names: Vec<String>,
}

impl<'a> FromIterator<&'a [u8]> for NameList {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(iterator: I) -> Self {
        let mut list = Self::default();
        for name in iterator {
            list.count += 1;
            if list.names.len() < MAX_NAMES {
                list.names.push(lossy(name));
            }
        }
        list
    }
}

/// Returns bytes as text; those that are not UTF-8 are replaced.
pub(super) fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_counted_and_the_first_kept() {
        let list: NameList = (0..1000).map(|_| &b"a"[..]).collect();
        assert_eq!((list.count, list.names.len()), (1000, MAX_NAMES));
    }
}
