//! Who runs the workgroups of a dispatch: [`Dispatcher`], and the one that uses no other thread.

use std::any::Any;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::worker::Identity;
use crate::{Denormals, Dispatch, DispatchError, Executable, Worker};

/// Runs dispatches to completion.
///
/// A dispatcher may be shared by any number of threads. All give the same results: the error of a
/// failing dispatch is that of its first failing workgroup, in order.
pub trait Dispatcher: Send + Sync + Any {
    /// Runs all workgroups of `dispatch`, which was made for `executable`, and returns when none
    /// runs any more.
    ///
    /// # Errors
    ///
    /// Returns the error of the first workgroup that failed, after which no more are begun than
    /// other threads had already taken on.
    fn dispatch(
        &self,
        executable: &dyn Executable,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), DispatchError>;

    /// Returns the worker that runs a dispatch of one workgroup, if that is always the calling thread and nothing else is
    /// done: such a dispatch may then be run without this dispatcher. `None`, which is always right, unless a dispatcher
    /// says so.
    fn caller(&self) -> Option<Worker> {
        None
    }
}

/// Runs workgroups one after another on the calling thread.
#[derive(Debug, Default)]
pub struct InlineDispatcher {
    callers: Callers,
}

impl InlineDispatcher {
    /// Returns a dispatcher.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a dispatcher whose kernels treat denormal numbers this way.
    #[must_use]
    pub fn with_denormals(denormals: Denormals) -> Self {
        Self {
            callers: Callers::new(1, denormals),
        }
    }
}

impl Dispatcher for InlineDispatcher {
    fn dispatch(
        &self,
        executable: &dyn Executable,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), DispatchError> {
        dispatch.in_span(|| {
            let mut lent = self.callers.lend();
            executable.run(dispatch, dispatch.tiles(), lent.worker(dispatch))
        })
    }

    fn caller(&self) -> Option<Worker> {
        Some(self.callers.fresh())
    }
}

/// The workers of threads that call a dispatcher, all with id 0.
///
/// Several threads may call at once, and a kernel's import may call again, so there is no one
/// worker to lend. A dispatch without local memory gets a fresh one, which costs nothing; the others
/// share a stack of them to keep the memory.
#[derive(Debug)]
pub(crate) struct Callers {
    identity: Identity,
    /// Workers that have local memory and are not in use.
    idle: Mutex<Vec<Worker>>,
}

impl Callers {
    pub(crate) fn new(max_concurrency: usize, denormals: Denormals) -> Self {
        Self {
            identity: Identity::new(0, max_concurrency, denormals),
            idle: Mutex::default(),
        }
    }

    /// Lends a worker that nobody else uses.
    #[inline]
    pub(crate) fn lend(&self) -> Lent<'_> {
        Lent {
            callers: self,
            worker: self.fresh(),
        }
    }

    /// Returns a worker without memory.
    #[inline]
    pub(crate) fn fresh(&self) -> Worker {
        Worker::with_identity(self.identity)
    }

    #[cold]
    fn keep(&self, worker: Worker) {
        self.idle().push(worker);
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A worker for one dispatch, which is kept afterwards if it has memory.
#[derive(Debug)]
pub(crate) struct Lent<'a> {
    callers: &'a Callers,
    worker: Worker,
}

impl Lent<'_> {
    /// Returns the worker, with memory if `dispatch` needs it and there is one that has.
    #[inline]
    pub(crate) fn worker(&mut self, dispatch: &Dispatch<'_>) -> &mut Worker {
        if dispatch.export().attributes().local_memory_byte_length != 0 {
            self.take_kept();
        }
        &mut self.worker
    }

    /// Takes a worker that has memory, if there is one. Out of line, to keep the common case small.
    #[cold]
    fn take_kept(&mut self) {
        if let Some(kept) = self.callers.idle().pop() {
            self.worker = kept;
        }
    }
}

impl Drop for Lent<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.worker.has_memory() {
            self.callers.keep(core::mem::take(&mut self.worker));
        }
    }
}

impl Default for Callers {
    fn default() -> Self {
        Self::new(1, Denormals::KEEP)
    }
}
