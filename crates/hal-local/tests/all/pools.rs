//! Dispatches on several threads.

use std::num::NonZero;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use hal_abi::StatusCode;
use hal_local::{
    Dispatch, DispatchError, Dispatcher, Executable, ExportAttributes, ExportInfo,
    InlineDispatcher, LookupError, PoolDispatcher, Worker,
};
use proptest::prelude::*;

use crate::support::{Memory, dispatch, test_kernels};

fn pool(threads: usize) -> PoolDispatcher {
    PoolDispatcher::new(NonZero::new(threads).unwrap()).unwrap()
}

/// An executable with one function, in Rust: called for each workgroup with its number.
struct InRust<F> {
    exports: Box<[ExportInfo]>,
    body: F,
}

impl<F: Fn(u64, &mut Worker) -> Result<(), DispatchError> + Send + Sync + 'static> InRust<F> {
    fn new(body: F) -> Self {
        let export = ExportInfo::new(
            0,
            Some(b"in_rust".as_slice().into()),
            ExportAttributes::default(),
        );
        Self {
            exports: Box::new([export]),
            body,
        }
    }
}

impl<F: Fn(u64, &mut Worker) -> Result<(), DispatchError> + Send + Sync + 'static> Executable
    for InRust<F>
{
    fn exports(&self) -> &[ExportInfo] {
        &self.exports
    }

    fn lookup(&self, _name: &[u8]) -> Result<u32, LookupError> {
        Ok(0)
    }

    fn run(
        &self,
        _dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
        worker: &mut Worker,
    ) -> Result<(), DispatchError> {
        tiles
            .into_iter()
            .try_for_each(|tile| (self.body)(tile, worker))
    }
}

fn run(
    dispatcher: &dyn Dispatcher,
    executable: &dyn Executable,
    count: [u32; 3],
) -> Result<(), DispatchError> {
    let dispatch = Dispatch::new(executable, 0, count, &[], &[])?;
    dispatcher.dispatch(executable, &dispatch)
}

/// Long enough for a dispatch of a few to be worth several threads.
fn take_time() {
    std::thread::sleep(Duration::from_micros(200));
}

#[test]
fn every_workgroup_runs_once_on_a_pool() {
    let executable = test_kernels();
    for threads in [1, 2, 5] {
        let pool = pool(threads);
        assert_eq!(pool.threads(), threads);
        for count in [[1, 1, 1], [7, 1, 1], [3, 5, 7], [64, 1, 1]] {
            for _ in 0..3 {
                let memory = Memory::zeroed(4 * count.iter().product::<u32>() as usize);
                dispatch(&pool, &*executable, "spin", count, &[], &[memory.binding()]).unwrap();
                assert!(
                    memory.to_u32().iter().all(|&count| count == 1),
                    "{count:?} on {threads}"
                );
            }
        }
    }
}

/// Nothing here orders memory but the pool. Miri runs it for many seeds: see `xtask/src/miri.rs`.
#[test]
fn a_dispatch_sees_what_was_written_before_it_and_shows_what_it_wrote() {
    const COUNT: usize = 6;
    for _ in 0..if cfg!(miri) { 1 } else { 100 } {
        let cells = Arc::new([const { AtomicU32::new(0) }; COUNT]);
        let in_kernel = cells.clone();
        let pool = pool(3);
        let executable = InRust::new(move |tile, _| {
            take_time();
            let cell = &in_kernel[usize::try_from(tile).unwrap()];
            cell.store(cell.load(Ordering::Relaxed) * 10 + 1, Ordering::Relaxed);
            Ok(())
        });
        for round in 1..4 {
            for cell in &*cells {
                cell.store(round, Ordering::Relaxed);
            }
            run(&pool, &executable, [6, 1, 1]).unwrap();
            for cell in &*cells {
                assert_eq!(cell.load(Ordering::Relaxed), round * 10 + 1);
            }
        }
        // The workers must not touch what is gone with this turn.
        drop(executable);
    }
}

#[test]
fn a_dispatch_that_takes_long_is_spread_over_the_workers() {
    let workers = Arc::new([const { AtomicU32::new(0) }; 3]);
    let seen = workers.clone();
    let executable = InRust::new(move |_, worker| {
        assert_eq!(worker.max_concurrency(), 3);
        seen[worker.id() as usize].fetch_add(1, Ordering::Relaxed);
        take_time();
        Ok(())
    });
    let pool = pool(3);
    // Whether a worker wakes in time for one dispatch is up to the system; for one of many it does.
    for _ in 0..1_000 {
        run(&pool, &executable, [24, 1, 1]).unwrap();
        if workers
            .iter()
            .all(|count| count.load(Ordering::Relaxed) > 0)
        {
            return;
        }
    }
    panic!("workgroups by worker: {workers:?}");
}

#[test]
fn a_kernel_that_asks_for_order_runs_in_order() {
    let executable = test_kernels();
    let pool = pool(4);
    for _ in 0..20 {
        let memory = Memory::zeroed(4 * 65);
        dispatch(
            &pool,
            &*executable,
            "append",
            [4, 4, 4],
            &[],
            &[memory.binding()],
        )
        .unwrap();
        assert_eq!(memory.to_u32()[1..], Vec::from_iter(0..64));
    }
}

#[test]
fn a_failing_workgroup_stops_the_others() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let executable = InRust::new(move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        take_time();
        Err(DispatchError::KernelFailed {
            export: String::new(),
            workgroup_id: [0; 3],
            code: 1,
        })
    });
    let pool = pool(2);
    for _ in 0..20 {
        run(&pool, &executable, [1_000_000, 1, 1]).unwrap_err();
    }
    // The first workgroup alone in each dispatch, as it is the one that is timed, or one per thread.
    assert!(calls.load(Ordering::Relaxed) <= 40);
}

#[test]
fn the_error_is_that_of_the_first_workgroup_that_fails() {
    let failing = [3, 17, 18, 40, 63];
    let executable = InRust::new(move |tile, _| {
        take_time();
        if failing.contains(&tile) {
            let code = tile.try_into().unwrap();
            return Err(DispatchError::KernelFailed {
                export: String::new(),
                workgroup_id: [0; 3],
                code,
            });
        }
        Ok(())
    });
    let pool = pool(4);
    for _ in 0..20 {
        let error = run(&pool, &executable, [64, 1, 1]).unwrap_err();
        assert!(
            matches!(error, DispatchError::KernelFailed { code: 3, .. }),
            "{error}"
        );
    }
}

#[test]
fn a_panic_becomes_an_error_and_the_pool_lives_on() {
    let executable = InRust::new(|tile, _| {
        take_time();
        assert!(!tile.is_multiple_of(5), "workgroup {tile} panics");
        Ok(())
    });
    let healthy = test_kernels();
    for threads in [1, 2, 4] {
        let pool = pool(threads);
        for count in [1, 2, 50] {
            let error = run(&pool, &executable, [count, 1, 1]).unwrap_err();
            assert_eq!(error.status_code(), StatusCode::INTERNAL);
            assert_eq!(
                error.to_string(),
                "function `in_rust` panicked: workgroup 0 panics"
            );
            let memory = Memory::zeroed(4 * 64);
            dispatch(
                &pool,
                &*healthy,
                "spin",
                [64, 1, 1],
                &[],
                &[memory.binding()],
            )
            .unwrap();
            assert!(memory.to_u32().iter().all(|&count| count == 1));
        }
    }
}

#[test]
fn a_kernel_may_dispatch_on_the_pool_it_runs_on() {
    let pool = Arc::new(pool(3));
    let calls = Arc::new(AtomicUsize::new(0));
    let (inner_pool, counter) = (pool.clone(), calls.clone());
    let inner = InRust::new(move |_, _| {
        counter.fetch_add(1, Ordering::Relaxed);
        take_time();
        Ok(())
    });
    let outer = InRust::new(move |_, _| run(&*inner_pool, &inner, [8, 1, 1]));
    for _ in 0..5 {
        run(&*pool, &outer, [16, 1, 1]).unwrap();
    }
    assert_eq!(calls.load(Ordering::Relaxed), 5 * 16 * 8);
}

#[test]
fn many_sessions_share_a_pool() {
    let pool = pool(3);
    let executable = test_kernels();
    let failing = InRust::new(|tile, _| {
        take_time();
        if tile == 9 {
            panic!("the tenth")
        } else {
            Ok(())
        }
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let memory = Memory::zeroed(4 * 40);
                    dispatch(
                        &pool,
                        &*executable,
                        "spin",
                        [40, 1, 1],
                        &[],
                        &[memory.binding()],
                    )
                    .unwrap();
                    assert!(memory.to_u32().iter().all(|&count| count == 1));
                }
            });
            scope.spawn(|| {
                for _ in 0..10 {
                    run(&pool, &failing, [12, 1, 1]).unwrap_err();
                }
            });
        }
    });
}

#[test]
fn local_memory_is_not_shared_between_threads() {
    let executable = InRust::new(|tile, worker| {
        let memory = worker.local_memory(4096).unwrap();
        let mark = u8::try_from(tile).unwrap();
        memory.fill(mark);
        take_time();
        assert!(memory.iter().all(|&byte| byte == mark));
        Ok(())
    });
    let pool = pool(4);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..20).for_each(|_| run(&pool, &executable, [16, 1, 1]).unwrap()));
        }
    });
}

#[test]
fn a_pool_can_be_dropped_at_any_time() {
    for threads in [1, 2, 3] {
        for _ in 0..50 {
            drop(pool(threads));
            let pool = pool(threads);
            let executable = InRust::new(|_, _| {
                take_time();
                Ok(())
            });
            run(&pool, &executable, [6, 1, 1]).unwrap();
        }
    }
}

#[test]
fn more_threads_than_a_pool_can_count_are_refused() {
    let error = PoolDispatcher::new(NonZero::new(5000).unwrap()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a pool has at most 4096 threads, not 5000"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_pool_gives_the_results_of_one_thread(
        count in [1u32..6, 1u32..6, 1u32..6],
        threads in 2usize..5,
        fail in proptest::option::of([0u32..6, 0u32..6, 0u32..6]),
    ) {
        let executable = test_kernels();
        let pool = pool(threads);
        let [x, y, z] = fail.unwrap_or([99; 3]);
        let outcome = |dispatcher: &dyn Dispatcher| {
            let memory = Memory::zeroed(4);
            dispatch(dispatcher, &*executable, "fail_at", count, &[x, y, z, 3], &[memory.binding()])
                .map_err(|error| error.to_string())
        };
        for _ in 0..3 {
            prop_assert_eq!(outcome(&pool), outcome(&InlineDispatcher::new()));
        }
    }
}
