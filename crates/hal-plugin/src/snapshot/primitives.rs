//! The primitives under a snapshot cell: `arc-swap` and the standard mutex.
//!
//! Unit tests get stand-ins of the same interface, so that a model checker can run the cell and all
//! that stands on it through the orders in which threads may take turns. `arc-swap` itself is not
//! modeled: its stand-in does each of its operations at one moment.

#[cfg(not(test))]
pub(super) use arc_swap::{ArcSwap, Cache, Guard};
#[cfg(not(test))]
pub(super) use std::sync::Mutex;

#[cfg(test)]
pub(super) use self::stand_in::{ArcSwap, Cache, Guard};
#[cfg(test)]
pub(super) use shuttle::sync::Mutex;

#[cfg(test)]
mod stand_in {
    use std::ops::Deref;
    use std::sync::Arc;

    use shuttle::sync::Mutex;

    /// Stands for `arc_swap::ArcSwap`.
    pub(in crate::snapshot) struct ArcSwap<T>(Mutex<Arc<T>>);

    impl<T> ArcSwap<T> {
        pub(in crate::snapshot) fn new(value: Arc<T>) -> Self {
            Self(Mutex::new(value))
        }

        pub(in crate::snapshot) fn load(&self) -> Guard<Arc<T>> {
            Guard(self.load_full())
        }

        pub(in crate::snapshot) fn load_full(&self) -> Arc<T> {
            Arc::clone(&self.0.lock().unwrap())
        }

        pub(in crate::snapshot) fn swap(&self, next: Arc<T>) -> Arc<T> {
            std::mem::replace(&mut *self.0.lock().unwrap(), next)
        }
    }

    /// Stands for `arc_swap::Guard`.
    #[derive(Debug)]
    pub(crate) struct Guard<P>(P);

    impl<P> Deref for Guard<P> {
        type Target = P;

        fn deref(&self) -> &P {
            &self.0
        }
    }

    /// Stands for `arc_swap::Cache`: it compares first and loads later, as the original does.
    pub(in crate::snapshot) struct Cache<A, P> {
        cell: A,
        seen: P,
    }

    impl<'a, T> Cache<&'a ArcSwap<T>, Arc<T>> {
        pub(in crate::snapshot) fn new(cell: &'a ArcSwap<T>) -> Self {
            let seen = cell.load_full();
            Self { cell, seen }
        }

        pub(in crate::snapshot) fn load(&mut self) -> &Arc<T> {
            let is_current = Arc::ptr_eq(&self.seen, &self.cell.0.lock().unwrap());
            if !is_current {
                self.seen = self.cell.load_full();
            }
            &self.seen
        }
    }
}
