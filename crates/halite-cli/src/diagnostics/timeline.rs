//! Timelines in the Chrome trace format (the JSON object form, with complete events), which Perfetto opens.
//!
//! Times are microseconds. Calls and dispatches are on the track of the caller, each worker has one of its own.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use halite::{Span, SpanKind, Timeline};
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
    args: Option<Arguments>,
}

/// What is shown for an event that is selected.
#[derive(Serialize)]
#[serde(untagged)]
enum Arguments {
    Track { name: String },
    Work { workgroups: u64 },
}

/// Writes a timeline.
pub(super) fn write(out: &mut dyn Write, timeline: &Timeline) -> io::Result<()> {
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
    for event in names.chain(timeline.spans.iter().map(complete)) {
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

fn complete(span: &Span) -> Event<'_> {
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
        args: args.map(|workgroups| Arguments::Work { workgroups }),
    }
}
