//! Lending a job on one thread's stack to other threads: [`Gate`].
//!
//! A dispatch borrows everything it works on, and nothing of it may be allocated. So its job lives
//! on the stack of the thread that dispatches, and the workers get at it through a gate:
//!
//! ```text
//! publisher                               worker
//! ---------                               ------
//! job = address                           if open and not seen: count += 1   (one exchange)
//! open, new epoch   ---- Release/Acquire -->  use the job
//! work on the job itself                  count -= 1   ---- Release/Acquire --> publisher
//! close
//! wait until count is 0
//! ```
//!
//! A worker only touches the job between its two steps, the second of which the publisher waits for
//! before it returns. A worker that comes late finds the gate closed and never sees the job; nobody
//! waits for it.

#![expect(
    unsafe_code,
    reason = "the job is borrowed across threads by raw pointer"
)]

use std::ptr;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;

use super::Job;
use super::primitives::{
    AtomicBool, AtomicPtr, AtomicUsize, Condvar, Mutex, MutexGuard, SPINS, spin_loop,
};

/// Set while workers may enter.
const OPEN: usize = 1 << 0;
/// Set once the pool is being dropped: workers shall end.
const SHUT_DOWN: usize = 1 << 1;
/// Set while the publisher sleeps until the last worker has left.
const AWAITED: usize = 1 << 2;
/// One worker inside.
const INSIDE: usize = 1 << 3;
/// The bits that count the workers inside.
const INSIDE_MASK: usize = 0xFFF * INSIDE;
/// One job; jobs are counted in the bits that are left, wrapping. A worker that sleeps through a
/// whole round of them might take a new job for one it has seen, and then merely does not help.
const EPOCH: usize = INSIDE_MASK + INSIDE;

/// The most workers a gate can count.
pub(super) const MAX_WORKERS: usize = INSIDE_MASK / INSIDE;

/// The place where a job is lent out and awaited.
#[derive(Debug)]
pub(super) struct Gate {
    /// The flags and counts above.
    state: CachePadded<AtomicUsize>,
    /// Set while a thread has the turn to publish.
    taken: AtomicBool,
    /// The job. Meaningful while the gate is open or a worker inside.
    job: AtomicPtr<Job<'static>>,
    /// The number of workers that sleep, or are about to.
    sleepers: CachePadded<AtomicUsize>,
    /// Held to go to sleep and to wake; guards no data.
    sleep: Mutex<()>,
    /// Wakes workers.
    opened: Condvar,
    /// Wakes the publisher.
    left: Condvar,
}

/// A worker's memory of which job it has seen.
#[derive(Debug, Default)]
pub(super) struct Seen(usize);

/// The right to publish jobs, of which there is one at a time; given back when dropped.
pub(super) struct Turn<'a> {
    gate: &'a Gate,
}

/// A worker's stay inside the gate.
pub(super) struct Visit<'a> {
    gate: &'a Gate,
    job: &'a Job<'a>,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            state: CachePadded::new(AtomicUsize::new(0)),
            taken: AtomicBool::new(false),
            job: AtomicPtr::new(ptr::null_mut()),
            sleepers: CachePadded::new(AtomicUsize::new(0)),
            sleep: Mutex::new(()),
            opened: Condvar::new(),
            left: Condvar::new(),
        }
    }

    /// Takes the turn to publish, unless another thread has it, or this one further up its stack.
    pub(super) fn try_turn(&self) -> Option<Turn<'_>> {
        // Acquire: pairs with the Release of the turn before, so that turns are ordered.
        if self.taken.swap(true, Ordering::Acquire) {
            return None;
        }
        Some(Turn { gate: self })
    }

    #[cold]
    fn wake(&self, helpers: usize) {
        // A worker counts itself while it holds the lock and gives the lock up only by sleeping.
        drop(self.lock());
        for _ in 0..helpers.min(self.sleepers.load(Ordering::Relaxed)) {
            self.opened.notify_one();
        }
    }

    /// Lets no more workers in and waits for those inside.
    fn close(&self) {
        self.state.fetch_and(!OPEN, Ordering::Relaxed);
        for _ in 0..SPINS {
            if self.is_empty() {
                return;
            }
            spin_loop();
        }
        let mut lock = self.lock();
        self.state.fetch_or(AWAITED, Ordering::Relaxed);
        while !self.is_empty() {
            lock = self.left.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.state.fetch_and(!AWAITED, Ordering::Relaxed);
    }

    /// Returns whether no worker is inside. If so, everything that workers did is visible.
    fn is_empty(&self) -> bool {
        // Acquire: pairs with the Release of a worker that left.
        self.state.load(Ordering::Acquire) & INSIDE_MASK == 0
    }

    /// Waits for a job that this worker has not seen and enters. Returns `None` when the pool shuts
    /// down.
    pub(super) fn enter(&self, seen: &mut Seen) -> Option<Visit<'_>> {
        loop {
            for _ in 0..SPINS {
                let state = self.state.load(Ordering::Relaxed);
                if state & SHUT_DOWN != 0 {
                    return None;
                }
                if let Some(visit) = self.try_enter(state, seen) {
                    return Some(visit);
                }
                spin_loop();
            }
            self.sleep(seen);
        }
    }

    /// Enters if the gate, which was in this state, is open for a job not seen.
    fn try_enter(&self, state: usize, seen: &mut Seen) -> Option<Visit<'_>> {
        if !is_news(state, seen) {
            return None;
        }
        // Acquire: pairs with the Release in `publish`, so that the job is seen whole.
        self.state
            .compare_exchange(state, state + INSIDE, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        *seen = Seen(state & !(EPOCH - 1));
        let job = self.job.load(Ordering::Relaxed);
        // SAFETY: the exchange found the gate open and counted this worker in, so the one
        // publisher is in `publish` with this job and will not return, by `close`, before `Visit` is
        // dropped. The job's true lifetime is at least that of the borrow in `publish`, and the
        // lifetime of the reference ends with the visit. `Job` is `Sync`.
        let job = unsafe { &*job };
        Some(Visit { gate: self, job })
    }

    #[cold]
    fn sleep(&self, seen: &Seen) {
        let lock = self.lock();
        // Sequentially consistent: see `publish`.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let state = self.state.load(Ordering::SeqCst);
        if state & SHUT_DOWN == 0 && !is_news(state, seen) {
            // An early wake-up is harmless: the caller looks again.
            drop(
                self.opened
                    .wait(lock)
                    .unwrap_or_else(PoisonError::into_inner),
            );
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Tells all workers to end.
    pub(super) fn shut_down(&self) {
        self.state.fetch_or(SHUT_DOWN, Ordering::SeqCst);
        drop(self.lock());
        self.opened.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a gate in this state is open for a job not seen.
fn is_news(state: usize, seen: &Seen) -> bool {
    state & OPEN != 0 && state & !(EPOCH - 1) != seen.0
}

impl Turn<'_> {
    /// Lends `job` to workers while `work` runs, waking up to `helpers` of those that sleep, and
    /// returns when no worker uses it any more.
    pub(super) fn publish(&mut self, job: &Job<'_>, helpers: usize, work: impl FnOnce()) {
        /// Ends the loan, also if `work` should panic.
        struct Loan<'a>(&'a Gate);

        impl Drop for Loan<'_> {
            fn drop(&mut self) {
                self.0.close();
            }
        }

        let gate = self.gate;
        let job = ptr::from_ref(job).cast::<Job<'static>>().cast_mut();
        gate.job.store(job, Ordering::Relaxed);
        // Publishes the job to the workers that enter. Sequentially consistent with `sleepers`:
        // either a worker that goes to sleep sees the gate open, or it is counted here.
        gate.state.fetch_add(EPOCH | OPEN, Ordering::SeqCst);
        let _loan = Loan(gate);
        if gate.sleepers.load(Ordering::SeqCst) != 0 {
            gate.wake(helpers);
        }
        work();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire of the next turn.
        self.gate.taken.store(false, Ordering::Release);
    }
}

impl Visit<'_> {
    /// Returns the job, for as long as the visit lasts.
    pub(super) fn job(&self) -> &Job<'_> {
        self.job
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        // Release: pairs with the Acquire in `is_empty`.
        let state = self.gate.state.fetch_sub(INSIDE, Ordering::Release);
        if state & INSIDE_MASK == INSIDE && state & AWAITED != 0 {
            // The publisher sets `AWAITED` and looks while it holds the lock, so it sleeps by now.
            drop(self.gate.lock());
            self.gate.left.notify_one();
        }
    }
}
