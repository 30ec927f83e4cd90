//! Tests of the profiler on an executable that counts its workgroups.

use core::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use hal_local::{
    Dispatch, DispatchError, Executable, ExecutableParams, ExportAttributes, InlineDispatcher,
    LoadError, LookupError, SourceLocation, Worker,
};

use super::*;

/// An executable with a named and a nameless function that only count.
struct Counting {
    exports: Box<[ExportInfo]>,
    run: Arc<AtomicU64>,
}

impl Counting {
    fn new() -> Self {
        let attributes = ExportAttributes::default();
        Self {
            exports: Box::new([
                ExportInfo::new(0, Some(b"count".as_slice().into()), attributes).with_source(Some(
                    SourceLocation {
                        path: "count.mlir".into(),
                        line: 3,
                    },
                )),
                ExportInfo::new(1, None, attributes),
            ]),
            run: Arc::default(),
        }
    }
}

impl Executable for Counting {
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
        _worker: &mut Worker,
    ) -> Result<(), DispatchError> {
        self.run
            .fetch_add(tiles.end - tiles.start, Ordering::Relaxed);
        Ok(())
    }
}

struct CountingLoader;

impl ExecutableLoader for CountingLoader {
    fn name(&self) -> &str {
        "counting"
    }

    fn supports_format(&self, format: &str) -> bool {
        format == "counting"
    }

    fn infer_format(&self, _data: &[u8]) -> Option<String> {
        None
    }

    fn try_load(&self, _params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        Ok(Arc::new(Counting::new()))
    }
}

/// Dispatches the functions with these ids, 2 by 3 workgroups each.
fn dispatch(profiler: &Profiler, ids: &[u64]) {
    let loaders = profiler.watch_loaders(LoaderRegistry::new().with(Arc::new(CountingLoader)));
    let params = ExecutableParams {
        format: "counting",
        data: Vec::new().into(),
        constants: &[],
    };
    let executable = loaders.load(&params).unwrap();
    let dispatcher = profiler.watch_dispatcher(Arc::new(InlineDispatcher::new()));
    for id in ids {
        let dispatch = Dispatch::new(&*executable, *id, [2, 3, 1], &[], &[]).unwrap();
        dispatcher.dispatch(&*executable, &dispatch).unwrap();
    }
}

#[test]
fn dispatches_of_a_kernel_are_added_up_under_its_name() {
    let profiler = Profiler::totals_only();
    dispatch(&profiler, &[0, 1, 0]);
    let mut kernels = profiler.kernels();
    kernels.sort_by(|left, right| left.name.cmp(&right.name));
    let counts: Vec<_> = kernels
        .iter()
        .map(|kernel| (&*kernel.name, kernel.calls, kernel.workgroups))
        .collect();
    assert_eq!(counts, [("#1", 1, 6), ("count", 2, 12)]);
    let sources: Vec<_> = kernels
        .iter()
        .map(|kernel| kernel.source.as_deref())
        .collect();
    assert_eq!(sources, [None, Some("count.mlir:3")]);
    assert_eq!(profiler.timeline(), Timeline::default());
    profiler.reset();
    assert_eq!(profiler.kernels(), []);
}

#[test]
fn a_timeline_has_calls_dispatches_and_work() {
    let profiler = Profiler::with_timeline();
    let result = profiler.invocation("main", || {
        dispatch(&profiler, &[0]);
        7
    });
    assert_eq!(result, 7);
    let spans = profiler.timeline().spans;
    let kinds: Vec<_> = spans
        .iter()
        .map(|span| (span.kind, &*span.name, span.workgroups))
        .collect();
    assert_eq!(
        kinds,
        [
            (SpanKind::Work { worker: 0 }, "count", 6),
            (SpanKind::Dispatch, "count", 6),
            (SpanKind::Invocation, "main", 0),
        ]
    );
    for pair in spans.windows(2) {
        assert!(
            pair[0].start >= pair[1].start && pair[0].duration <= pair[1].duration,
            "{pair:?}"
        );
    }
}

#[test]
fn a_profiler_moves_between_threads() {
    fn check<T: Send + Sync + Clone>() {}
    check::<Profiler>();
}
