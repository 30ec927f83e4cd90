//! What a profiler puts between a session and the parts that run its kernels.
#![forbid(unsafe_code)]

use core::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use hal_local::{
    Dispatch, DispatchError, Dispatcher, Executable, ExecutableLoader, ExecutableParams,
    ExportInfo, LoadError, LookupError, Worker,
};

use super::{Profiler, SpanKind, with_name};

/// A dispatcher that notes how long each dispatch takes.
pub(super) struct WatchedDispatcher {
    profiler: Profiler,
    dispatcher: Arc<dyn Dispatcher>,
}

impl WatchedDispatcher {
    pub(super) fn new(profiler: Profiler, dispatcher: Arc<dyn Dispatcher>) -> Self {
        Self {
            profiler,
            dispatcher,
        }
    }
}

impl Dispatcher for WatchedDispatcher {
    fn dispatch(
        &self,
        executable: &dyn Executable,
        dispatch: &Dispatch<'_>,
    ) -> Result<(), DispatchError> {
        let begin = Instant::now();
        let result = self.dispatcher.dispatch(executable, dispatch);
        let tiles = dispatch.tiles();
        self.profiler.add(
            dispatch.export(),
            tiles.end - tiles.start,
            begin,
            begin.elapsed(),
        );
        result
    }
}

/// A loader whose executables note what each worker does.
pub(super) struct WatchedLoader {
    profiler: Profiler,
    loader: Arc<dyn ExecutableLoader>,
}

impl WatchedLoader {
    pub(super) fn new(profiler: Profiler, loader: Arc<dyn ExecutableLoader>) -> Self {
        Self { profiler, loader }
    }
}

impl ExecutableLoader for WatchedLoader {
    fn name(&self) -> &str {
        self.loader.name()
    }

    fn supports_format(&self, format: &str) -> bool {
        self.loader.supports_format(format)
    }

    fn infer_format(&self, data: &[u8]) -> Option<String> {
        self.loader.infer_format(data)
    }

    fn try_load(&self, params: &ExecutableParams<'_>) -> Result<Arc<dyn Executable>, LoadError> {
        Ok(Arc::new(WatchedExecutable {
            executable: self.loader.try_load(params)?,
            profiler: self.profiler.clone(),
        }))
    }
}

/// An executable that notes what each worker does.
struct WatchedExecutable {
    profiler: Profiler,
    executable: Arc<dyn Executable>,
}

impl Executable for WatchedExecutable {
    fn exports(&self) -> &[ExportInfo] {
        self.executable.exports()
    }

    fn lookup(&self, name: &[u8]) -> Result<u32, LookupError> {
        self.executable.lookup(name)
    }

    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
        worker: &mut Worker,
    ) -> Result<(), DispatchError> {
        let workgroups = tiles.end.saturating_sub(tiles.start);
        let begin = Instant::now();
        let result = self.executable.run(dispatch, tiles, worker);
        let duration = begin.elapsed();
        let kind = SpanKind::Work {
            worker: worker.id(),
        };
        with_name(dispatch.export(), |name| {
            self.profiler.keep(kind, name, workgroups, begin, duration);
        });
        result
    }
}
