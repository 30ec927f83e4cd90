//! Running programs in a process of their own: limits that a process sets itself, and how it ended.
//!
//! Native kernels can end the process that runs them: they may divide by zero, read a wild pointer, or never return.
//! Whoever must run kernels that they did not build starts a child for it, usually the own program with other
//! arguments, and stays usable whatever becomes of the child. This is no sandbox: the child may do all that its user
//! may do.
//!
//! ```no_run
//! use std::process::Command;
//! use halite::isolate::{Crash, Limits};
//!
//! // In the child, before anything is loaded.
//! let limits = Limits { memory_bytes: Some(1 << 30), cpu_seconds: Some(10) };
//! limits.apply_to_this_process()?;
//!
//! // In the parent.
//! let status = Command::new(std::env::current_exe()?).arg("worker").status()?;
//! if let Some(crash) = Crash::of(status) {
//!     println!("{crash}");
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
#![forbid(unsafe_code)]

use std::io;
use std::process::ExitStatus;

use vm::StatusCode;

/// What a process may take. The default is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of address space. Buffers beyond it fail with `RESOURCE_EXHAUSTED`; small allocations end the process.
    pub memory_bytes: Option<u64>,
    /// Seconds of processor time, of all threads together. The process is ended when they are used up.
    pub cpu_seconds: Option<u64>,
}

impl Limits {
    /// Sets the limits for the calling process, which cannot take them back, and lets it leave no core file behind.
    /// On Linux the process also ends when the thread of its parent that started it ends.
    ///
    /// # Errors
    /// As the system says; `Unsupported` where there are no such limits.
    #[cfg(unix)]
    pub fn apply_to_this_process(&self) -> io::Result<()> {
        use rustix::process::{Resource, Rlimit, setrlimit};
        let set = |resource, current: Option<u64>, maximum| {
            setrlimit(resource, Rlimit { current, maximum })
        };
        set(Resource::Core, Some(0), Some(0))?;
        if let Some(bytes) = self.memory_bytes {
            set(Resource::As, Some(bytes), Some(bytes))?;
        }
        if let Some(seconds) = self.cpu_seconds {
            // The first is told by SIGXCPU, which code may ignore, the second by SIGKILL.
            set(
                Resource::Cpu,
                Some(seconds),
                Some(seconds.saturating_add(1)),
            )?;
        }
        #[cfg(target_os = "linux")]
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        Ok(())
    }

    /// Sets the limits for the calling process.
    ///
    /// # Errors
    /// Always: there are none on this system.
    #[cfg(not(unix))]
    pub fn apply_to_this_process(&self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The end of a process that a signal made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the process was ended by {} ({})", self.name(), self.meaning())]
pub struct Crash {
    /// The number of the signal.
    pub signal: i32,
}

/// Signals that end programs: number, name, and what they say of the program.
#[cfg(unix)]
const SIGNALS: &[(rustix::process::Signal, &str, &str)] = {
    use rustix::process::Signal;
    &[
        (
            Signal::FPE,
            "SIGFPE",
            "an arithmetic fault, such as an integer division by zero",
        ),
        (
            Signal::SEGV,
            "SIGSEGV",
            "an access to memory that is not there or not to be touched",
        ),
        (
            Signal::BUS,
            "SIGBUS",
            "an access to memory that cannot be had",
        ),
        (
            Signal::ILL,
            "SIGILL",
            "an instruction that the processor does not have, or a trap",
        ),
        (Signal::TRAP, "SIGTRAP", "a trap"),
        (Signal::SYS, "SIGSYS", "a system call that is not allowed"),
        (
            Signal::ABORT,
            "SIGABRT",
            "it gave up, as when memory runs out",
        ),
        (Signal::XCPU, "SIGXCPU", "its processor time is used up"),
        (
            Signal::KILL,
            "SIGKILL",
            "it was stopped from outside, as when a limit is reached",
        ),
        (Signal::TERM, "SIGTERM", "it was asked to stop"),
        (Signal::INT, "SIGINT", "it was interrupted"),
    ]
};

impl Crash {
    /// Returns the crash that a child ended with, `None` when it ended by itself.
    #[must_use]
    pub fn of(status: ExitStatus) -> Option<Self> {
        #[cfg(unix)]
        {
            use std::os::unix::process::ExitStatusExt;
            status.signal().map(|signal| Self { signal })
        }
        #[cfg(not(unix))]
        {
            let _ = status;
            None
        }
    }

    /// Returns the name of the signal, for example `SIGSEGV`, or its number.
    #[must_use]
    pub fn name(&self) -> String {
        self.row().map_or_else(
            || format!("signal {}", self.signal),
            |(name, _)| name.into(),
        )
    }

    /// Returns the status code to report: `DEADLINE_EXCEEDED` when the time was used up, else `INTERNAL`.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self.row() {
            Some(("SIGXCPU", _)) => StatusCode::DEADLINE_EXCEEDED,
            _ => StatusCode::INTERNAL,
        }
    }

    fn meaning(&self) -> &'static str {
        self.row().map_or("a signal", |(_, meaning)| meaning)
    }

    fn row(&self) -> Option<(&'static str, &'static str)> {
        #[cfg(unix)]
        {
            let mut rows = SIGNALS.iter();
            let row = rows.find(|(signal, ..)| signal.as_raw() == self.signal);
            row.map(|(_, name, meaning)| (*name, *meaning))
        }
        #[cfg(not(unix))]
        None
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Runs a shell that ends itself so.
    #[track_caller]
    fn check(script: &str, expected: Option<(&str, StatusCode)>) {
        let status = Command::new("/bin/sh")
            .args(["-c", script])
            .status()
            .unwrap();
        let crash = Crash::of(status);
        let found = crash.map(|crash| (crash.name(), crash.status_code()));
        let expected = expected.map(|(name, code)| (name.to_owned(), code));
        assert_eq!(found, expected, "{script}");
    }

    #[test]
    fn the_signal_that_ended_a_process_is_named() {
        check("kill -SEGV $$", Some(("SIGSEGV", StatusCode::INTERNAL)));
        check("kill -FPE $$", Some(("SIGFPE", StatusCode::INTERNAL)));
        check(
            "kill -XCPU $$",
            Some(("SIGXCPU", StatusCode::DEADLINE_EXCEEDED)),
        );
        check("exit 3", None);
        check("exit 0", None);
    }

    #[test]
    fn a_signal_without_a_name_is_told_by_its_number() {
        let crash = Crash { signal: 40 };
        assert_eq!(
            crash.to_string(),
            "the process was ended by signal 40 (a signal)"
        );
        let crash = Crash { signal: 11 };
        assert!(
            crash
                .to_string()
                .starts_with("the process was ended by SIGSEGV (an access")
        );
    }
}
