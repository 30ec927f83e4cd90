//! Measuring where the time of programs goes: [`Profiler`].
//!
//! A profiler is put between a session and its dispatcher and loaders when the session is built; a session without one
//! has nothing in between and pays nothing.
#![forbid(unsafe_code)]

mod watch;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use hal_local::{Dispatcher, ExecutableLoader, ExportInfo, LoaderRegistry};

use watch::{WatchedDispatcher, WatchedLoader};

/// Most spans that a timeline keeps: about 50 MB.
const MAX_SPANS: usize = 1 << 20;

/// Measures dispatches, and calls that it is told of. Clones are one and the same.
///
/// # Examples
/// ```no_run
/// use halite::{Profiler, Program, Session};
///
/// let profiler = Profiler::totals_only();
/// let session = Session::builder()
///     .program(Program::open("mul.vmfb")?)
///     .profiler(profiler.clone())
///     .build()?;
/// session.invoke("mul", &[])?;
/// for kernel in profiler.kernels() {
///     println!("{}: {} calls, {:?}", kernel.name, kernel.calls, kernel.total);
/// }
/// # Ok::<(), halite::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Profiler(Arc<Recorder>);

/// What was measured, and when measuring began.
#[derive(Debug)]
struct Recorder {
    start: Instant,
    keeps_timeline: bool,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    kernels: HashMap<Arc<str>, Totals>,
    spans: Vec<Span>,
    dropped_spans: u64,
}

#[derive(Clone, Debug, Default)]
struct Totals {
    source: Option<Arc<str>>,
    calls: u64,
    workgroups: u64,
    total: Duration,
}

/// What all dispatches of a function of an executable took. Functions of the same name count together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelProfile {
    /// Its name, or `#` and its ordinal if the executable holds no names.
    pub name: Arc<str>,
    /// Where it comes from, as `file:line`, if its executable says.
    pub source: Option<Arc<str>>,
    /// How often it was dispatched.
    pub calls: u64,
    /// How many workgroups these dispatches had.
    pub workgroups: u64,
    /// How long they took, on the clock of whoever waited for them.
    pub total: Duration,
}

/// Something that took time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Span {
    /// What it was.
    pub kind: SpanKind,
    /// The function's name.
    pub name: Arc<str>,
    /// When it began, since measuring began.
    pub start: Duration,
    /// How long it took.
    pub duration: Duration,
    /// How many workgroups it ran; 0 for a call.
    pub workgroups: u64,
}

/// What took time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanKind {
    /// A call of a program's function.
    Invocation,
    /// A dispatch of a kernel, as whoever waited for it saw it.
    Dispatch,
    /// Workgroups of a dispatch that one worker ran in a row.
    Work {
        /// The worker.
        worker: u32,
    },
}

/// A timeline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeline {
    /// What took time, in the order in which it ended.
    pub spans: Vec<Span>,
    /// How many spans were not kept, since there were too many.
    pub dropped: u64,
}

impl Profiler {
    /// Returns a profiler that adds up what each kernel takes.
    #[must_use]
    pub fn totals_only() -> Self {
        Self::new(false)
    }

    /// Returns a profiler that keeps a timeline as well: every call, every dispatch, and what each worker did.
    #[must_use]
    pub fn with_timeline() -> Self {
        Self::new(true)
    }

    fn new(keeps_timeline: bool) -> Self {
        Self(Arc::new(Recorder {
            start: Instant::now(),
            keeps_timeline,
            record: Mutex::default(),
        }))
    }

    /// Runs `call` and notes it as a call of the function `name`.
    pub fn invocation<R>(&self, name: &str, call: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let result = call();
        self.keep(SpanKind::Invocation, name, 0, begin, begin.elapsed());
        result
    }

    /// Forgets everything measured so far, such as what a warm-up took. The clock goes on.
    pub fn reset(&self) {
        self.0.with_record(|record| *record = Record::default());
    }

    /// Returns what was measured of each kernel, the one that took most first.
    #[must_use]
    pub fn kernels(&self) -> Vec<KernelProfile> {
        let mut kernels: Vec<KernelProfile> = self.0.with_record(|record| {
            let profiles = record.kernels.iter().map(|(name, totals)| KernelProfile {
                name: Arc::clone(name),
                source: totals.source.clone(),
                calls: totals.calls,
                workgroups: totals.workgroups,
                total: totals.total,
            });
            profiles.collect()
        });
        kernels.sort_by(|left, right| {
            right
                .total
                .cmp(&left.total)
                .then_with(|| left.name.cmp(&right.name))
        });
        kernels
    }

    /// Returns the timeline so far; it is empty if none is kept.
    #[must_use]
    pub fn timeline(&self) -> Timeline {
        self.0.with_record(|record| Timeline {
            spans: record.spans.clone(),
            dropped: record.dropped_spans,
        })
    }

    /// Returns `dispatcher`, measured.
    pub(crate) fn watch_dispatcher(&self, dispatcher: Arc<dyn Dispatcher>) -> Arc<dyn Dispatcher> {
        Arc::new(WatchedDispatcher::new(self.clone(), dispatcher))
    }

    /// Returns `loaders`, whose executables note what workers do if there is a timeline.
    pub(crate) fn watch_loaders(&self, loaders: LoaderRegistry) -> LoaderRegistry {
        if !self.0.keeps_timeline {
            return loaders;
        }
        let watched = loaders.loaders().iter().map(|loader| {
            Arc::new(WatchedLoader::new(self.clone(), Arc::clone(loader)))
                as Arc<dyn ExecutableLoader>
        });
        watched.fold(LoaderRegistry::new(), LoaderRegistry::with)
    }

    /// Adds a dispatch to what its kernel took.
    fn add(&self, export: &ExportInfo, workgroups: u64, begin: Instant, duration: Duration) {
        with_name(export, |name| {
            self.0.with_record(|record| {
                let totals = match record.kernels.get_mut(name) {
                    Some(totals) => totals,
                    None => record.kernels.entry(name.into()).or_insert_with(|| Totals {
                        source: export.source().map(|source| source.to_string().into()),
                        ..Totals::default()
                    }),
                };
                totals.calls += 1;
                totals.workgroups = totals.workgroups.saturating_add(workgroups);
                totals.total = totals.total.saturating_add(duration);
            });
            self.keep(SpanKind::Dispatch, name, workgroups, begin, duration);
        });
    }

    /// Adds a span to the timeline, if there is one.
    fn keep(
        &self,
        kind: SpanKind,
        name: &str,
        workgroups: u64,
        begin: Instant,
        duration: Duration,
    ) {
        if !self.0.keeps_timeline {
            return;
        }
        let start = begin.saturating_duration_since(self.0.start);
        self.0.with_record(|record| {
            if record.spans.len() >= MAX_SPANS {
                record.dropped_spans += 1;
                return;
            }
            let known = record
                .kernels
                .get_key_value(name)
                .map(|(name, _)| Arc::clone(name));
            record.spans.push(Span {
                kind,
                name: known.unwrap_or_else(|| name.into()),
                start,
                duration,
                workgroups,
            });
        });
    }
}

impl Recorder {
    fn with_record<R>(&self, use_record: impl FnOnce(&mut Record) -> R) -> R {
        // Nothing that runs with the lock held leaves the record half changed.
        use_record(&mut self.record.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Calls `use_name` with the name of a kernel.
fn with_name<R>(export: &ExportInfo, use_name: impl FnOnce(&str) -> R) -> R {
    match export.name() {
        Some(name) => use_name(&String::from_utf8_lossy(name)),
        None => use_name(&format!("#{}", export.ordinal())),
    }
}

#[cfg(test)]
mod tests;
