//! The bytes of an executable, shared with whoever holds them: [`ExecutableData`].

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// Memory that can be read as bytes and shared between threads.
type Owner = dyn AsRef<[u8]> + Send + Sync;

/// The bytes of an executable file and a share in the memory they are in.
///
/// Cloning is cheap and copies no bytes, so that a loader may keep the data for as long as its
/// executable lives, whatever happens to the module it came from. Bytes that are only borrowed have
/// to be copied first ([`ExecutableData::copy_of`]): who frees them is never a question.
///
/// # Examples
///
/// ```
/// use hal_local::ExecutableData;
///
/// let kept = {
///     let file = vec![1, 2, 3, 4];
///     ExecutableData::copy_of(&file)
/// };
/// assert_eq!(&*kept, [1, 2, 3, 4]);
/// ```
#[derive(Clone)]
pub struct ExecutableData {
    owner: Arc<Owner>,
    /// Invariant: within the bytes of `owner`.
    range: Range<usize>,
}

impl ExecutableData {
    /// Returns data that shares all bytes of `owner`.
    ///
    /// `owner` must return the same bytes each time it is asked.
    #[must_use]
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        let range = 0..(*owner).as_ref().len();
        Self { owner, range }
    }

    /// Returns data that shares the bytes of `owner` in `range`, or `None` if they are not all
    /// there.
    #[must_use]
    pub fn within(owner: Arc<dyn AsRef<[u8]> + Send + Sync>, range: Range<usize>) -> Option<Self> {
        (*owner).as_ref().get(range.clone())?;
        Some(Self { owner, range })
    }

    /// Returns data with a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        Self::new(Arc::new(bytes.to_vec()))
    }
}

/// Reads the bytes. Panics if the owner returns fewer bytes than when the data was made, which its
/// contract excludes.
impl Deref for ExecutableData {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl From<Vec<u8>> for ExecutableData {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Arc::new(bytes))
    }
}

impl fmt::Debug for ExecutableData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ExecutableData({} bytes)", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_owner_keeps_the_owner_alive() {
        let owner: Arc<Vec<u8>> = Arc::new(vec![1, 2, 3, 4]);
        let data = ExecutableData::within(owner.clone(), 1..3).unwrap();
        assert_eq!(Arc::strong_count(&owner), 2);
        drop(owner);
        assert_eq!(&*data, [2, 3]);
        assert_eq!(&*data.clone(), [2, 3]);
    }

    #[test]
    fn a_range_past_the_owner_is_refused() {
        let owner = Arc::new(vec![1, 2, 3, 4]);
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "a hostile range is what is tested"
        )]
        for range in [0..5, 4..5, 3..2, usize::MAX..usize::MAX] {
            assert!(ExecutableData::within(owner.clone(), range).is_none());
        }
        assert!(ExecutableData::within(owner, 4..4).is_some());
    }
}
