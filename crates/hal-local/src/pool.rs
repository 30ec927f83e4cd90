//! Running the workgroups of a dispatch on several threads: [`PoolDispatcher`].

mod gate;
mod job;
#[cfg(test)]
mod model;
mod primitives;

use std::io;
use std::num::NonZero;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use gate::{Gate, Seen};
use job::Job;

use crate::dispatcher::Callers;
use crate::{Denormals, Dispatch, DispatchError, Dispatcher, Executable, Worker};

/// The estimated time below which a dispatch is not worth a second thread, in nanoseconds.
///
/// Waking a thread that sleeps costs several microseconds on the caller and more until the thread
/// runs.
const WORTHWHILE_NANOSECONDS: u64 = 20_000;

/// Runs the workgroups of a dispatch on several threads, of which the caller is one.
///
/// The workgroups are handed out in chunks of neighbors, in order. A dispatch runs on its caller
/// alone when that is as good: it has one workgroup, or little work by what its function took
/// before, or its function asks for order. It does, too, when the pool is busy with a dispatch of
/// another thread, or of this one (a kernel whose import dispatches), so calls never wait for each
/// other and never deadlock.
///
/// Chunks that were begun are finished when another fails. As they are begun in order, the error
/// that is reported is that of the first workgroup that fails, as if one thread had run them all.
///
/// # Panics
///
/// A panic in an executable becomes [`DispatchError::Panicked`], on any thread.
#[derive(Debug)]
pub struct PoolDispatcher {
    gate: Arc<Gate>,
    callers: Callers,
    threads: Vec<JoinHandle<()>>,
}

impl PoolDispatcher {
    /// Starts a pool of `threads` threads in total: the callers count as one of them.
    ///
    /// # Errors
    ///
    /// Fails if the operating system refuses a thread.
    pub fn new(threads: NonZero<usize>) -> io::Result<Self> {
        Self::with_denormals(threads, Denormals::KEEP)
    }

    /// Starts a pool whose kernels treat denormal numbers this way.
    ///
    /// # Errors
    ///
    /// Fails if the operating system refuses a thread, or if there are more than 4096 of them.
    pub fn with_denormals(threads: NonZero<usize>, denormals: Denormals) -> io::Result<Self> {
        let count = threads.get();
        if count - 1 > gate::MAX_WORKERS {
            let message = format!(
                "a pool has at most {} threads, not {count}",
                gate::MAX_WORKERS + 1
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let callers = Callers::new(count, denormals);
        // Owned by the result from the start, so that the threads end if one cannot be started.
        let mut pool = Self {
            gate: Arc::new(Gate::new()),
            callers,
            threads: Vec::with_capacity(count - 1),
        };
        for id in (1..).take(count - 1) {
            let gate = pool.gate.clone();
            let thread = std::thread::Builder::new()
                .name(format!("halite-worker-{id}"))
                .spawn(move || work(&gate, Worker::new(id, count, denormals)))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    /// Returns the number of threads, the caller included.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len() + 1
    }

    /// Runs a dispatch of several workgroups, on as many threads as are worth it.
    fn dispatch_tiles(
        &self,
        executable: &dyn Executable,
        dispatch: &Dispatch<'_>,
        worker: &mut Worker,
    ) -> Result<(), DispatchError> {
        let mut tiles = dispatch.tiles();
        let cost = dispatch.export().cost();
        if cost.is_due() {
            tiles.start = measure(executable, dispatch, worker)?;
        }
        if cost.nanoseconds(tiles.end - tiles.start) < WORTHWHILE_NANOSECONDS {
            return job::run_guarded(executable, dispatch, tiles, worker);
        }
        let Some(mut turn) = self.gate.try_turn() else {
            return job::run_guarded(executable, dispatch, tiles, worker);
        };
        let job = Job::new(executable, dispatch, tiles, self.threads());
        turn.publish(&job, job.chunk_count() - 1, || job.help(worker));
        drop(turn);
        job.into_result()
    }
}

/// Runs the first workgroups of a dispatch, notes what they cost, and returns how many they were.
///
/// Takes more of them until they took long enough for the clock to be of no account.
fn measure(
    executable: &dyn Executable,
    dispatch: &Dispatch<'_>,
    worker: &mut Worker,
) -> Result<u64, DispatchError> {
    const LONG_ENOUGH: Duration = Duration::from_micros(2);
    let total = dispatch.grid().total();
    let (mut done, mut batch) = (0_u64, 1_u64);
    loop {
        let end = total.min(done.saturating_add(batch));
        let start = Instant::now();
        job::run_guarded(executable, dispatch, done..end, worker)?;
        let elapsed = start.elapsed();
        dispatch.export().cost().observe(end - done, elapsed);
        if end == total || elapsed >= LONG_ENOUGH {
            return Ok(end);
        }
        done = end;
        batch = batch.saturating_mul(8);
    }
}

impl Dispatcher for PoolDispatcher {
    fn dispatch(
        &self,
        executable: &dyn Executable,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), DispatchError> {
        dispatch.in_span(|| {
            let mut lent = self.callers.lend();
            let worker = lent.worker(dispatch);
            let alone = self.threads.is_empty() || dispatch.export().attributes().is_sequential;
            if alone || dispatch.tiles().end <= 1 {
                return job::run_guarded(executable, dispatch, dispatch.tiles(), worker);
            }
            self.dispatch_tiles(executable, dispatch, worker)
        })
    }

    fn caller(&self) -> Option<Worker> {
        Some(self.callers.fresh())
    }
}

impl Drop for PoolDispatcher {
    fn drop(&mut self) {
        self.gate.shut_down();
        for thread in self.threads.drain(..) {
            // Workers catch the panics of what they run, so there is none to pass on.
            drop(thread.join());
        }
    }
}

/// The life of a worker thread.
fn work(gate: &Gate, mut worker: Worker) {
    let mut seen = Seen::default();
    while let Some(visit) = gate.enter(&mut seen) {
        visit.job().help(&mut worker);
    }
}
