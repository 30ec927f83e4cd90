//! Spans of the libraries on standard error, for who looks for time or for the cause of a failure.
#![forbid(unsafe_code)]

use std::io;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::fmt::time::uptime;
use tracing_subscriber::layer::SubscriberExt;

/// Writes each span that `filter` lets through to the standard error of the process, as it ends, from any thread.
///
/// The filter is a level, such as `debug`, or a list for each crate, such as `hal_local=debug,vm=off`. Once called, it
/// holds until the process ends; later calls change nothing.
///
/// # Errors
/// Fails with what is wrong with the filter.
pub fn log_spans(filter: &str) -> Result<(), String> {
    let targets: Targets = filter.parse().map_err(|error| format!("{error}"))?;
    let lines = fmt::layer()
        .with_writer(io::stderr)
        .with_timer(uptime())
        .with_span_events(FmtSpan::CLOSE);
    let subscriber = tracing_subscriber::registry().with(lines).with(targets);
    // Whoever came first goes on.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}
