//! The error of the VM: a status code, a message, and the frames it passed through.
//!
//! Holds no policy on how a trap is printed for people; the command decides that.

use core::fmt;
use std::error::Error;
use std::sync::Arc;

use crate::StatusCode;

/// Result of a VM operation.
pub type Result<T> = core::result::Result<T, Trap>;

/// A failure inside the VM: of an instruction, of a native function, or of a program that failed on purpose.
///
/// One pointer in size, so that a hot path returns it in a register.
#[derive(Clone)]
pub struct Trap(Box<Content>);

#[derive(Clone)]
struct Content {
    code: StatusCode,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
    frames: Vec<TrapFrame>,
}

/// A frame a trap passed through, innermost first in [`Trap::frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapFrame {
    /// Name of the module.
    pub module: Arc<str>,
    /// Name of the function, or `@` and its ordinal when it has none.
    pub function: String,
    /// Byte offset of the instruction in the function body; `None` in a native function.
    pub offset: Option<u32>,
    /// Source location of the instruction, when the module records it.
    pub location: Option<String>,
}

impl Trap {
    /// Returns a trap with a code and a message. A trap is a failure: `OK` becomes `INTERNAL`.
    #[cold]
    #[must_use]
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self(Box::new(Content {
            code: failure_code(code),
            message: message.into(),
            source: None,
            frames: Vec::new(),
        }))
    }

    /// Returns a trap with a code, as for [`Trap::new`], a message and a cause, which stays reachable through
    /// [`Error::source`].
    ///
    /// Use it where an error of another layer crosses into the VM: the chain of causes of `source` is kept.
    #[cold]
    #[must_use]
    pub fn from_error(
        code: StatusCode,
        message: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self(Box::new(Content {
            code: failure_code(code),
            message: message.into(),
            source: Some(Arc::from(source.into())),
            frames: Vec::new(),
        }))
    }

    /// Returns an `INVALID_ARGUMENT` trap.
    #[cold]
    #[must_use]
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INVALID_ARGUMENT, message)
    }

    /// Returns an `OUT_OF_RANGE` trap.
    #[cold]
    #[must_use]
    pub fn out_of_range(message: impl Into<String>) -> Self {
        Self::new(StatusCode::OUT_OF_RANGE, message)
    }

    /// Returns the trap with one more frame, outside those it has.
    #[cold]
    #[must_use]
    pub fn in_frame(mut self, frame: TrapFrame) -> Self {
        self.0.frames.push(frame);
        self
    }

    /// Returns the class of the failure.
    #[must_use]
    pub fn code(&self) -> StatusCode {
        self.0.code
    }

    /// Returns what failed, without its frames and causes.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns the frames the trap passed through, innermost first.
    #[must_use]
    pub fn frames(&self) -> &[TrapFrame] {
        &self.0.frames
    }
}

/// Returns the code of a failure whose maker gave it this one.
fn failure_code(code: StatusCode) -> StatusCode {
    match code {
        StatusCode::OK => StatusCode::INTERNAL,
        code => code,
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trap")
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .field("frames", &self.0.frames)
            .finish()
    }
}

impl Error for Trap {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

impl fmt::Display for TrapFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.module, self.function)?;
        match self.offset {
            Some(offset) => write!(f, ":{offset}")?,
            None => f.write_str(" (native)")?,
        }
        match &self.location {
            Some(location) => write!(f, " at {location}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trap_is_one_pointer() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }

    #[test]
    fn a_cause_is_kept_boxed_or_not() {
        let cause = || Trap::invalid_argument("inner");
        let boxed: Box<dyn Error + Send + Sync> = Box::new(cause());
        for trap in [
            Trap::from_error(StatusCode::INTERNAL, "outer", cause()),
            Trap::from_error(StatusCode::INTERNAL, "outer", boxed),
        ] {
            let found = trap.source().and_then(|cause| cause.downcast_ref::<Trap>());
            assert_eq!(found.map(Trap::message), Some("inner"));
        }
    }

    #[test]
    fn frames_are_kept_innermost_first() {
        let frame = |function: &str| TrapFrame {
            module: "m".into(),
            function: function.into(),
            offset: Some(3),
            location: None,
        };
        let trap = Trap::invalid_argument("bad")
            .in_frame(frame("inner"))
            .in_frame(frame("outer"));
        assert_eq!(trap.frames()[0].to_string(), "m.inner:3");
        assert_eq!(trap.frames()[1].to_string(), "m.outer:3");
    }

    #[test]
    fn a_trap_is_never_ok() {
        let trap = Trap::new(StatusCode::OK, "made by mistake");
        assert_eq!(trap.code(), StatusCode::INTERNAL);
        let trap = Trap::from_error(StatusCode::OK, "made by mistake", trap);
        assert_eq!(trap.code(), StatusCode::INTERNAL);
    }
}
