//! How the command fails: what it prints about it and which exit status it has.
#![forbid(unsafe_code)]

use core::fmt;
use std::error::Error;
use std::io;

use clap::builder::Styles;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use halite::StatusCode;

use crate::page::Page;
use crate::{Streams, hints};

/// Why the command does not end with status 0.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong, or it asks for help.
    Arguments(clap::Error),
    /// The command line is wrong in a way that its parser cannot know.
    Usage(String),
    /// The work failed.
    Work(Box<WorkFailure>),
    /// What failed is said already.
    Reported,
    /// A child process said what failed, and ended with this status.
    Passed(u8),
    /// Standard output cannot be written.
    Stdout(io::Error),
}

/// A failure of the work, in parts that are printed line by line.
#[derive(Debug)]
pub(crate) struct WorkFailure {
    code: StatusCode,
    what: String,
    causes: Vec<String>,
    hint: Option<String>,
}

impl Failure {
    /// Returns a failure of the work.
    pub(crate) fn work(code: StatusCode, what: impl Into<String>) -> Self {
        let what = what.into();
        Self::Work(Box::new(WorkFailure {
            code,
            what,
            causes: Vec::new(),
            hint: None,
        }))
    }

    /// Returns the failure with a line about its cause, and one for each cause of that.
    pub(crate) fn caused_by(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let source = source.into();
        self.add_causes(Some(&*source));
        self
    }

    /// Returns the failure with a line about what is wrong.
    pub(crate) fn with_cause(mut self, cause: String) -> Self {
        if let Self::Work(work) = &mut self {
            work.causes.push(cause);
        }
        self
    }

    /// Returns the failure with a line about what to do.
    pub(crate) fn with_hint(mut self, hint: Option<String>) -> Self {
        if let Self::Work(work) = &mut self {
            work.hint = hint;
        }
        self
    }

    /// Returns the failure, saying in other words what failed.
    pub(crate) fn saying(mut self, what: String) -> Self {
        if let Self::Work(work) = &mut self {
            work.what = what;
        }
        self
    }

    /// Returns the failure with a line about what to do, unless it has one.
    pub(crate) fn or_hint(mut self, hint: Option<String>) -> Self {
        if let Self::Work(work) = &mut self {
            work.hint = work.hint.take().or(hint);
        }
        self
    }

    /// Returns the failure that an error of a library stands for.
    pub(crate) fn of(code: StatusCode, error: &(dyn Error + 'static)) -> Self {
        let mut failure = Self::work(code, error.to_string());
        failure.add_causes(error.source());
        failure
    }

    fn add_causes(&mut self, first: Option<&(dyn Error + 'static)>) {
        let Self::Work(work) = self else { return };
        let mut next = first;
        while let Some(cause) = next {
            work.causes.push(format!("caused by: {cause}"));
            if let Some(trap) = cause.downcast_ref::<halite::Trap>() {
                work.causes
                    .extend(trap.frames().iter().map(|frame| format!("  at {frame}")));
            }
            next = cause.source();
        }
    }

    /// Returns the exit status of the process.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Arguments(error) if !error.use_stderr() => 0,
            // A reader that has seen enough is no failure.
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
            Self::Arguments(_) | Self::Usage(_) => 2,
            Self::Passed(status) => *status,
            Self::Work(_) | Self::Reported | Self::Stdout(_) => 1,
        }
    }

    /// Writes what the user should know, help to standard output and all else to standard error.
    pub(crate) fn report(&self, streams: &mut Streams<'_>) -> io::Result<()> {
        match self {
            Self::Reported | Self::Passed(_) => Ok(()),
            Self::Stdout(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            Self::Arguments(error) if !error.use_stderr() => {
                writeln!(streams.stdout, "{}", error.to_string().trim_end())
            }
            Self::Arguments(error) => report_arguments(error, streams),
            _ => self.report_lines(streams),
        }
    }

    /// Writes the lines of a failure, without what a terminal would obey in them.
    fn report_lines(&self, streams: &mut Streams<'_>) -> io::Result<()> {
        let styles = styles(streams.color);
        let hint = styles.get_valid();
        write!(streams.stderr, "{}", label(&styles))?;
        for line in self.to_string().lines() {
            let mut page = Page::default();
            page.line(0, line);
            match page.text().strip_prefix("hint: ") {
                Some(rest) => write!(streams.stderr, "{hint}hint:{hint:#} {rest}")?,
                None => streams.stderr.write_all(page.text().as_bytes())?,
            }
        }
        Ok(())
    }
}

/// Writes what the parser of the command line says, which knows no status names. It may be help instead.
fn report_arguments(error: &clap::Error, streams: &mut Streams<'_>) -> io::Result<()> {
    let rendered = error.render();
    let text = match streams.color {
        true => rendered.ansi().to_string(),
        false => rendered.to_string(),
    };
    let label = label(&styles(streams.color));
    match text.strip_prefix(&label) {
        Some(rest) => write!(streams.stderr, "{label}INVALID_ARGUMENT: {rest}"),
        None => write!(streams.stderr, "{text}"),
    }
}

/// Returns the styles of the parser's messages, which all others share.
fn styles(color: bool) -> Styles {
    match color {
        true => Styles::styled(),
        false => Styles::plain(),
    }
}

/// Returns what errors begin with.
fn label(styles: &Styles) -> String {
    let style = styles.get_error();
    format!("{style}error:{style:#} ")
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Arguments(error) => write!(f, "{error}"),
            Self::Usage(what) => writeln!(f, "INVALID_ARGUMENT: {what}"),
            Self::Reported | Self::Passed(_) => Ok(()),
            Self::Stdout(error) => writeln!(f, "UNKNOWN: cannot write the output: {error}"),
            Self::Work(work) => {
                writeln!(f, "{}: {}", work.code, work.what)?;
                for cause in &work.causes {
                    writeln!(f, "  {cause}")?;
                }
                match &work.hint {
                    Some(hint) => writeln!(f, "hint: {hint}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Returns the failure of a command line, with a tip for a program that is named without its flag.
pub(crate) fn of_arguments(mut error: clap::Error) -> Failure {
    let tip = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(argument)) if argument.ends_with(".vmfb") => {
            Some(format!("name the program with a flag: --module={argument}"))
        }
        _ => None,
    };
    if let Some(tip) = tip
        && error.kind() == ErrorKind::UnknownArgument
    {
        error.insert(
            ContextKind::Suggested,
            ContextValue::StyledStrs(vec![tip.into()]),
        );
    }
    Failure::Arguments(error)
}

/// Reports a failure of one of several things, so that the others get their turn, and returns nothing for it.
///
/// # Errors
/// Fails with what concerns all of them.
pub(crate) fn go_on<T>(
    result: Result<T, Failure>,
    streams: &mut Streams<'_>,
) -> Result<Option<T>, Failure> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(failure @ Failure::Work(_)) => {
            streams.stdout.flush().map_err(Failure::Stdout)?;
            // There is nobody to tell when standard error is gone.
            let _ = failure.report(streams);
            Ok(None)
        }
        Err(failure) => Err(failure),
    }
}

impl From<halite::Error> for Failure {
    fn from(error: halite::Error) -> Self {
        Self::of(error.status_code(), &error).with_hint(hints::of_error(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_hint_follow_the_first_line() {
        let failure = Failure::work(StatusCode::NOT_FOUND, "no such thing")
            .caused_by(io::Error::other("because"))
            .with_hint(Some("look elsewhere".into()));
        assert_eq!(
            failure.to_string(),
            "NOT_FOUND: no such thing\n  caused by: because\nhint: look elsewhere\n"
        );
        assert_eq!(failure.exit_status(), 1);
    }

    #[track_caller]
    fn check_report(color: bool, expected: &str) {
        let failure = Failure::work(StatusCode::NOT_FOUND, "no \u{1b}[2Jthing")
            .with_hint(Some("look elsewhere".into()));
        let mut stderr = Vec::new();
        let mut streams = Streams {
            stdin: &mut io::empty(),
            stdout: &mut io::sink(),
            stderr: &mut stderr,
            color,
        };
        failure.report(&mut streams).unwrap();
        assert_eq!(String::from_utf8(stderr).unwrap(), expected);
    }

    #[test]
    fn only_the_commands_own_colors_reach_a_terminal() {
        check_report(
            false,
            "error: NOT_FOUND: no \\u{1b}[2Jthing\nhint: look elsewhere\n",
        );
        check_report(
            true,
            "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m NOT_FOUND: no \\u{1b}[2Jthing\n\u{1b}[32mhint:\u{1b}[0m look elsewhere\n",
        );
    }

    #[test]
    fn a_closed_pipe_is_silent_success() {
        let failure = Failure::Stdout(io::ErrorKind::BrokenPipe.into());
        assert_eq!(failure.exit_status(), 0);
        let mut stderr = Vec::new();
        let mut streams = Streams {
            stdin: &mut io::empty(),
            stdout: &mut io::sink(),
            stderr: &mut stderr,
            color: false,
        };
        failure.report(&mut streams).unwrap();
        assert!(stderr.is_empty());
    }
}
