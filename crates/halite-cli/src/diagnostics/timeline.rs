//! Timelines in the Chrome trace format (the JSON object form, with complete events), which Perfetto opens.
//!
//! Times are microseconds. Calls and dispatches are on the track of the caller, each worker has one of its own.
#![forbid(unsafe_code)]

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Write};
use std::time::Duration;

use halite::{KernelProfile, Span, SpanKind, Timeline};
use serde::Serialize;

/// The track of the caller; worker `n` has the track after it and `n` more.
const CALLER: u64 = 0;

/// An event of the format.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    /// `X` is something that took time, `M` tells the name of a track.
    ph: &'static str,
    pid: u32,
    tid: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Arguments<'a>>,
}

/// What is shown for an event that is selected.
#[derive(Serialize)]
#[serde(untagged)]
enum Arguments<'a> {
    Track {
        name: String,
    },
    Work {
        workgroups: u64,
        /// Where the kernel comes from.
        #[serde(skip_serializing_if = "Option::is_none")]
        source: Option<&'a str>,
    },
}

/// Writes a timeline of these kernels.
pub(super) fn write(
    out: &mut dyn Write,
    timeline: &Timeline,
    kernels: &[KernelProfile],
) -> io::Result<()> {
    let sources = kernels
        .iter()
        .filter_map(|kernel| Some((&*kernel.name, kernel.source.as_deref()?)));
    let sources: HashMap<&str, &str> = sources.collect();
    write!(
        out,
        "{{\"displayTimeUnit\":\"ns\",\"droppedSpans\":{},\"traceEvents\":[",
        timeline.dropped
    )?;
    let tracks: BTreeSet<u64> = timeline.spans.iter().map(track).chain([CALLER]).collect();
    let mut separator = "\n";
    let names = tracks.into_iter().map(|tid| Event {
        name: "thread_name",
        ph: "M",
        pid: 1,
        tid,
        cat: None,
        ts: None,
        dur: None,
        args: Some(Arguments::Track {
            name: match tid {
                CALLER => "caller".to_owned(),
                tid => format!("worker {}", tid - 1),
            },
        }),
    });
    let spans = timeline.spans.iter();
    for event in names.chain(spans.map(|span| complete(span, &sources))) {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, &event)?;
        separator = ",\n";
    }
    out.write_all(b"\n]}\n")
}

fn track(span: &Span) -> u64 {
    match span.kind {
        SpanKind::Work { worker } => 1 + u64::from(worker),
        _ => CALLER,
    }
}

fn complete<'a>(span: &'a Span, sources: &HashMap<&str, &'a str>) -> Event<'a> {
    let microseconds = |duration: Duration| duration.as_nanos() as f64 / 1e3;
    let (category, args) = match span.kind {
        SpanKind::Invocation => ("call", None),
        SpanKind::Dispatch => ("dispatch", Some(span.workgroups)),
        _ => ("work", Some(span.workgroups)),
    };
    Event {
        name: &span.name,
        ph: "X",
        pid: 1,
        tid: track(span),
        cat: Some(category),
        ts: Some(microseconds(span.start)),
        dur: Some(microseconds(span.duration)),
        args: args.map(|workgroups| Arguments::Work {
            workgroups,
            source: sources.get(&*span.name).copied(),
        }),
    }
}
