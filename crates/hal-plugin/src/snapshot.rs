//! A value that is replaced as a whole: readers never wait, writers never lose.
//!
//! This is the only place that knows `arc-swap`. Version 1.9.5 or newer is required: older ones can
//! hand a reader a value that was stored in another cell.

use std::fmt;
use std::sync::{Arc, PoisonError};

use crossbeam_utils::CachePadded;

mod primitives;

use self::primitives::{ArcSwap, Cache, Guard, Mutex};

/// A cell that publishes immutable snapshots of a `T`.
pub(crate) struct SnapshotCell<T> {
    /// What readers see.
    current: ArcSwap<T>,
    /// The same snapshot, as writers know it. Locked while a writer derives the next one from it, so
    /// that two writers never start from the same. Nothing but the derivation happens under it.
    ///
    /// Padded, so that taking the lock does not slow down readers of `current`.
    writer: CachePadded<Mutex<Arc<T>>>,
}

impl<T> SnapshotCell<T> {
    /// Creates a cell that holds `value`.
    pub(crate) fn new(value: T) -> Self {
        let value = Arc::new(value);
        Self {
            current: ArcSwap::new(Arc::clone(&value)),
            writer: CachePadded::new(Mutex::new(value)),
        }
    }

    /// Returns the current snapshot for the length of a call.
    pub(crate) fn load(&self) -> Guard<Arc<T>> {
        self.current.load()
    }

    /// Returns the current snapshot to keep.
    pub(crate) fn load_full(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Returns a reader that remembers the snapshot it saw last.
    pub(crate) fn reader(&self) -> SnapshotReader<'_, T> {
        SnapshotReader(Cache::new(&self.current))
    }

    /// Replaces the snapshot by the one that `derive` makes from it, and returns what else `derive`
    /// returns. If `derive` fails nothing changes.
    ///
    /// `derive` runs under the writer's lock: it must not call into foreign code, and what it
    /// captures by value is dropped under the lock if it fails, so it borrows whatever has a drop
    /// that runs foreign code. The previous snapshot is dropped after the lock is released, because
    /// that may unload plugins, and those may do anything.
    pub(crate) fn update<R, E>(
        &self,
        derive: impl FnOnce(&T) -> Result<(T, R), E>,
    ) -> Result<R, E> {
        let mut known = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, result) = derive(&known)?;
        let next = Arc::new(next);
        let unpublished = self.current.swap(Arc::clone(&next));
        let previous = std::mem::replace(&mut *known, next);
        drop(known);
        drop(unpublished);
        drop(previous);
        Ok(result)
    }
}

/// A reader of one cell that remembers the snapshot it saw last, and keeps it alive. As long as that
/// is the current one, looking costs a comparison.
pub(crate) struct SnapshotReader<'a, T>(Cache<&'a ArcSwap<T>, Arc<T>>);

impl<T> SnapshotReader<'_, T> {
    /// Returns the current snapshot.
    pub(crate) fn load(&mut self) -> &T {
        self.0.load()
    }
}

impl<T: fmt::Debug> fmt::Debug for SnapshotCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SnapshotCell").field(&self.load()).finish()
    }
}
