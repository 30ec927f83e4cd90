//! Flags that watch what a command does: `--profile`, `--trace` and `-v`.
#![forbid(unsafe_code)]

mod timeline;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use halite::{Profiler, Session, StatusCode};

use crate::Streams;
use crate::failure::Failure;
use crate::page::{Human, Page};

/// Flags of all commands that run kernels.
#[derive(Args, Debug)]
pub(crate) struct DiagnosticArgs {
    /// Print what each kernel took and where it comes from, on standard error
    #[arg(long)]
    profile: bool,

    /// Store a timeline of calls, dispatches and workers in the Chrome trace format, to open in Perfetto
    #[arg(long, value_name = "FILE.json")]
    trace: Option<PathBuf>,

    /// Say on standard error what is loaded and how long it takes
    #[arg(short, long)]
    verbose: bool,
}

/// What the flags ask to watch.
#[derive(Debug)]
pub(crate) struct Diagnostics<'a> {
    arguments: &'a DiagnosticArgs,
    profiler: Option<Profiler>,
}

impl DiagnosticArgs {
    /// Begins to watch.
    pub(crate) fn start(&self) -> Diagnostics<'_> {
        let profiler = match (&self.trace, self.profile) {
            (Some(_), _) => Some(Profiler::with_timeline()),
            (None, true) => Some(Profiler::totals_only()),
            (None, false) => None,
        };
        Diagnostics {
            arguments: self,
            profiler,
        }
    }
}

impl Diagnostics<'_> {
    /// Returns what kernels are to be measured with, if they are.
    pub(crate) fn profiler(&self) -> Option<&Profiler> {
        self.profiler.as_ref()
    }

    /// Runs `call`, which is a call of the function `name`.
    pub(crate) fn watch<R>(&self, name: &str, call: impl FnOnce() -> R) -> R {
        match &self.profiler {
            Some(profiler) => profiler.invocation(name, call),
            None => call(),
        }
    }

    /// Forgets what was measured so far.
    pub(crate) fn reset(&self) {
        if let Some(profiler) = &self.profiler {
            profiler.reset();
        }
    }

    /// Says what happened, if the user wants to know.
    pub(crate) fn say(&self, streams: &mut Streams<'_>, what: impl std::fmt::Display) {
        if self.arguments.verbose {
            let mut page = Page::default();
            page.line(0, format_args!("info: {what}"));
            // What cannot be said is no reason to fail.
            let _ = streams.stderr.write_all(page.text().as_bytes());
        }
    }

    /// Says what was loaded.
    pub(crate) fn say_loaded(
        &self,
        session: &Session,
        elapsed: Duration,
        streams: &mut Streams<'_>,
    ) {
        let program = session.program();
        let functions = program.function_names().collect::<Vec<_>>().join(", ");
        self.say(
            streams,
            format_args!("loaded {} in {}", program.origin(), Human(elapsed)),
        );
        self.say(
            streams,
            format_args!("program `{}` has {functions}", program.name()),
        );
        for name in session.plugins().snapshot().names() {
            self.say(streams, format_args!("plugin `{name}` provides imports"));
        }
    }

    /// Prints and stores what was measured.
    pub(crate) fn finish(&self, streams: &mut Streams<'_>) -> Result<(), Failure> {
        let Some(profiler) = &self.profiler else {
            return Ok(());
        };
        if self.arguments.profile {
            // What cannot be said is no reason to fail.
            let _ = streams.stderr.write_all(table(profiler).as_bytes());
        }
        if let Some(path) = &self.arguments.trace {
            store(path, profiler)?;
            self.say(
                streams,
                format_args!("stored the timeline in {}", path.display()),
            );
        }
        Ok(())
    }
}

/// Returns what each kernel took as a table.
fn table(profiler: &Profiler) -> String {
    let kernels = profiler.kernels();
    let sum: Duration = kernels.iter().map(|kernel| kernel.total).sum();
    let has_sources = kernels.iter().any(|kernel| kernel.source.is_some());
    let header = [
        "kernel",
        "calls",
        "workgroups",
        "total",
        "mean",
        "share",
        "source",
    ];
    let columns = header.len() - usize::from(!has_sources);
    let mut rows = vec![header[..columns].iter().map(ToString::to_string).collect()];
    for kernel in &kernels {
        let mean = kernel.total.as_secs_f64() / kernel.calls.max(1) as f64;
        let share = 100.0 * kernel.total.as_secs_f64() / sum.as_secs_f64().max(f64::MIN_POSITIVE);
        let mut row = vec![
            kernel.name.to_string(),
            kernel.calls.to_string(),
            kernel.workgroups.to_string(),
            Human(kernel.total).to_string(),
            Human(Duration::from_secs_f64(mean)).to_string(),
            format!("{share:.1} %"),
        ];
        if has_sources {
            row.push(kernel.source.as_deref().unwrap_or("-").to_owned());
        }
        rows.push(row);
    }
    let mut page = Page::default();
    page.table(0, &rows);
    if kernels.is_empty() {
        page.line(0, "no kernel was dispatched");
    }
    page.text().to_owned()
}

/// Stores the timeline.
fn store(path: &Path, profiler: &Profiler) -> Result<(), Failure> {
    let failure = |source: std::io::Error| {
        let what = format!("cannot write the timeline to `{}`", path.display());
        Failure::work(StatusCode::UNKNOWN, what).caused_by(source)
    };
    let mut file = BufWriter::new(File::create(path).map_err(failure)?);
    timeline::write(&mut file, &profiler.timeline(), &profiler.kernels()).map_err(failure)?;
    file.flush().map_err(failure)
}
