//! The gate under a model checker: that a job is used only while it is lent, in many thousand orders of its threads'
//! turns.
//!
//! The code is the pool's own; only its primitives are stand-ins.

use std::ops::Range;
use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use shuttle::thread;

use super::gate::{Gate, Seen};
use super::{Job, work};
use crate::{
    Denormals, Dispatch, DispatchError, Executable, ExportAttributes, ExportInfo, LookupError,
    Worker,
};

/// Runs `scenario` in orders that differ in few places from running thread after thread, and in random ones.
fn in_many_orders(scenario: impl Fn() + Send + Sync + Clone + 'static) {
    shuttle::check_pct(scenario.clone(), 1500, 3);
    shuttle::check_random(scenario, 1500);
}

/// Workgroups of a dispatch.
const TILES: usize = 3;

/// An executable that counts how often each workgroup ran.
struct Counting {
    exports: Box<[ExportInfo]>,
    runs: [AtomicUsize; TILES],
    /// Workgroups that fail, by bit.
    failing: u8,
    /// Whether the dispatch is still there.
    is_lent: AtomicBool,
}

impl Counting {
    fn new(failing: u8) -> Arc<Self> {
        Arc::new(Self {
            exports: Box::new([ExportInfo::new(0, None, ExportAttributes::default())]),
            runs: [(); TILES].map(|()| AtomicUsize::new(0)),
            failing,
            is_lent: AtomicBool::new(true),
        })
    }

    fn runs(&self) -> [usize; TILES] {
        self.runs
            .each_ref()
            .map(|count| count.load(Ordering::SeqCst))
    }
}

impl Executable for Counting {
    fn exports(&self) -> &[ExportInfo] {
        &self.exports
    }

    fn lookup(&self, name: &[u8]) -> Result<u32, LookupError> {
        let name = String::from_utf8_lossy(name).into_owned();
        Err(LookupError::NoNames { name })
    }

    fn run(
        &self,
        _: &Dispatch<'_>,
        tiles: Range<u64>,
        _: &mut Worker,
    ) -> Result<(), DispatchError> {
        for tile in tiles {
            assert!(self.is_lent.load(Ordering::SeqCst), "the dispatch is over");
            self.runs[usize::try_from(tile).unwrap()].fetch_add(1, Ordering::SeqCst);
            if self.failing & 1 << tile != 0 {
                let code = hal_abi::StatusCode::INTERNAL;
                return Err(DispatchError::executable(
                    &self.exports[0],
                    code,
                    tile.to_string(),
                ));
            }
        }
        Ok(())
    }
}

/// Dispatches through a gate as a pool of three threads does, on this one when another has the turn; tells whether it
/// had the turn.
fn dispatch(gate: &Gate, executable: &Arc<Counting>) -> (bool, Result<(), DispatchError>) {
    let count = [u32::try_from(TILES).unwrap(), 1, 1];
    let dispatch = Dispatch::new(&**executable, 0, count, &[], &[]).unwrap();
    let mut worker = Worker::new(0, 3, Denormals::KEEP);
    let Some(mut turn) = gate.try_turn() else {
        let result = executable.run(&dispatch, dispatch.tiles(), &mut worker);
        return (false, result);
    };
    let job = Job::new(&**executable, &dispatch, dispatch.tiles(), 3);
    turn.publish(&job, 2, || job.help(&mut worker));
    drop(turn);
    executable.is_lent.store(false, Ordering::SeqCst);
    (true, job.into_result())
}

/// Runs `scenario` beside two workers, which end when it has.
fn with_workers(scenario: impl FnOnce(&Arc<Gate>)) {
    let gate = Arc::new(Gate::new());
    let workers = [1, 2].map(|id| {
        let gate = Arc::clone(&gate);
        thread::spawn(move || work(&gate, Worker::new(id, 3, Denormals::KEEP)))
    });
    scenario(&gate);
    gate.shut_down();
    for worker in workers {
        worker.join().unwrap();
    }
}

#[test]
fn every_workgroup_runs_once_and_while_its_dispatch_lasts() {
    in_many_orders(|| {
        with_workers(|gate| {
            for _ in 0..2 {
                let executable = Counting::new(0);
                let (had_turn, result) = dispatch(gate, &executable);
                assert!(had_turn && result.is_ok());
                assert_eq!(executable.runs(), [1; TILES]);
            }
        });
    });
}

#[test]
fn the_error_is_that_of_the_first_workgroup_that_fails() {
    in_many_orders(|| {
        with_workers(|gate| {
            let executable = Counting::new(0b110);
            let (_, result) = dispatch(gate, &executable);
            let Err(DispatchError::Executable { source, .. }) = result else {
                panic!("a workgroup fails");
            };
            assert_eq!(source.to_string(), "1");
            // Those before it ran.
            assert_eq!(executable.runs()[..2], [1, 1]);
        });
    });
}

#[test]
fn two_threads_dispatch_at_once_and_neither_waits_for_the_other() {
    in_many_orders(|| {
        with_workers(|gate| {
            let other = Arc::clone(gate);
            let second = thread::spawn(move || {
                let executable = Counting::new(0);
                dispatch(&other, &executable).1.unwrap();
                assert_eq!(executable.runs(), [1; TILES]);
            });
            let executable = Counting::new(0);
            dispatch(gate, &executable).1.unwrap();
            assert_eq!(executable.runs(), [1; TILES]);
            second.join().unwrap();
        });
    });
}

#[test]
fn workers_that_sleep_end_with_the_pool() {
    in_many_orders(|| with_workers(|_| ()));
}

#[test]
fn a_worker_sees_a_job_once() {
    in_many_orders(|| {
        let gate = Arc::new(Gate::new());
        let visits = Arc::new(AtomicUsize::new(0));
        let (worker_gate, counted) = (Arc::clone(&gate), Arc::clone(&visits));
        let worker = thread::spawn(move || {
            let mut seen = Seen::default();
            while let Some(visit) = worker_gate.enter(&mut seen) {
                counted.fetch_add(1, Ordering::SeqCst);
                drop(visit);
            }
        });
        dispatch(&gate, &Counting::new(0)).1.unwrap();
        gate.shut_down();
        worker.join().unwrap();
        assert!(visits.load(Ordering::SeqCst) <= 1);
    });
}
