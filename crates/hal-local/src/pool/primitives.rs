//! The primitives under the gate and its jobs: those of the standard library.
//!
//! Unit tests get those of a model checker, which runs the gate through the orders in which threads may take turns. It
//! does each operation at one moment: what a weak memory order does is not shown.

#[cfg(not(test))]
pub(super) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard},
};

#[cfg(test)]
pub(super) use shuttle::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize},
    sync::{Condvar, Mutex, MutexGuard},
};

/// How often a thread looks again before it goes to sleep: some tens of microseconds, which is the
/// time from one dispatch of a program to the next. Once is enough where time does not count.
pub(super) const SPINS: u32 = if cfg!(test) { 1 } else { 1 << 10 };
