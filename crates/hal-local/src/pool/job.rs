//! One dispatch while several threads work on it: [`Job`].

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;

use super::primitives::{AtomicBool, AtomicUsize, Mutex};
use crate::{Dispatch, DispatchError, Executable, Worker};

/// Chunks per thread. More of them spread uneven work better; fewer of them cost less to hand out.
const CHUNKS_PER_THREAD: usize = 8;

/// A dispatch in chunks of workgroups that threads take one by one.
pub(super) struct Job<'a> {
    executable: &'a dyn Executable,
    dispatch: &'a Dispatch<'a>,
    /// The workgroups to run.
    tiles: Range<u64>,
    /// The workgroups of a chunk; the last one may have fewer.
    chunk: u64,
    chunk_count: usize,
    /// The next chunk to be taken; may run past `chunk_count`, by at most one per thread.
    next: CachePadded<AtomicUsize>,
    /// Set once a chunk failed: no more chunks are taken.
    stopped: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// The failure of a chunk.
struct Failure {
    chunk: usize,
    error: DispatchError,
}

impl<'a> Job<'a> {
    /// Divides the workgroups numbered in `tiles`, which is not empty, among `threads` threads.
    pub(super) fn new(
        executable: &'a dyn Executable,
        dispatch: &'a Dispatch<'a>,
        tiles: Range<u64>,
        threads: usize,
    ) -> Self {
        let total = tiles.end - tiles.start;
        let wanted = threads.saturating_mul(CHUNKS_PER_THREAD);
        let chunk = total.div_ceil(wanted as u64);
        let chunk_count = usize::try_from(total.div_ceil(chunk))
            .expect("there are at most as many chunks as were wanted");
        Self {
            executable,
            dispatch,
            tiles,
            chunk,
            chunk_count,
            next: CachePadded::new(AtomicUsize::new(0)),
            stopped: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    /// Returns the number of chunks.
    pub(super) fn chunk_count(&self) -> usize {
        self.chunk_count
    }

    /// Takes and runs chunks until there are none left or one failed.
    ///
    /// Chunks are taken in order and always finished, except where they fail. So all chunks before
    /// one that failed were run, and the failure with the lowest number is that of the first
    /// workgroup that fails at all, whatever the timing.
    pub(super) fn help(&self, worker: &mut Worker) {
        #[cfg(feature = "tracing")]
        let _span = tracing::debug_span!(
            "work",
            kernel = %self.dispatch.export(),
            worker = worker.id()
        )
        .entered();
        // Relaxed: that a chunk is taken once needs no order, and what threads wrote becomes
        // visible through the gate.
        while !self.stopped.load(Ordering::Relaxed) {
            let chunk = self.next.fetch_add(1, Ordering::Relaxed);
            if chunk >= self.chunk_count {
                return;
            }
            // Within the tiles, as `chunk` is below the count; the sum may pass the end.
            let start = self.tiles.start + chunk as u64 * self.chunk;
            let end = start.saturating_add(self.chunk).min(self.tiles.end);
            if let Err(error) = run_guarded(self.executable, self.dispatch, start..end, worker) {
                self.fail(Failure { chunk, error });
            }
        }
    }

    #[cold]
    fn fail(&self, failure: Failure) {
        self.stopped.store(true, Ordering::Relaxed);
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if first
            .as_ref()
            .is_none_or(|first| failure.chunk < first.chunk)
        {
            *first = Some(failure);
        }
    }

    /// Returns how the dispatch ended, once no thread works on it.
    pub(super) fn into_result(self) -> Result<(), DispatchError> {
        match self
            .failure
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
        {
            Some(failure) => Err(failure.error),
            None => Ok(()),
        }
    }
}

/// Runs workgroups and turns a panic into an error.
pub(super) fn run_guarded(
    executable: &dyn Executable,
    dispatch: &Dispatch<'_>,
    tiles: Range<u64>,
    worker: &mut Worker,
) -> Result<(), DispatchError> {
    // A worker holds nothing that a panic could leave half-done, and executables that are shared
    // between threads guard their own state.
    catch_unwind(AssertUnwindSafe(|| executable.run(dispatch, tiles, worker)))
        .unwrap_or_else(|payload| Err(DispatchError::panicked(dispatch.export(), &*payload)))
}
