//! A loaded executable, whatever its format: [`Executable`].

use std::any::Any;
use std::ops::Range;

use hal_abi::StatusCode;

use crate::{Dispatch, DispatchError, ExportInfo, Worker};

/// A loaded executable: functions that can be looked up and dispatched.
///
/// Implementations keep alive everything their functions need. They may be shared by any number of
/// threads; [`Executable::run`] is called concurrently, also for one and the same dispatch.
pub trait Executable: Send + Sync + Any {
    /// Returns the descriptions of its functions, by ordinal; always the same ones, as a dispatch is recognized by the
    /// description that it was checked against.
    fn exports(&self) -> &[ExportInfo];

    /// Returns the number of functions; their ordinals count from 0.
    fn export_count(&self) -> usize {
        self.exports().len()
    }

    /// Returns the description of a function, or `None` if the ordinal is out of range.
    fn export(&self, ordinal: u32) -> Option<&ExportInfo> {
        self.exports().get(usize::try_from(ordinal).ok()?)
    }

    /// Returns the ordinal of the function with this exact name; the first one if several have it.
    ///
    /// # Errors
    ///
    /// Fails if no function has the name, or if the file holds no names at all.
    fn lookup(&self, name: &[u8]) -> Result<u32, LookupError>;

    /// Runs the workgroups of `dispatch` numbered in `tiles` on the calling thread, in order (x
    /// innermost, then y, then z), and stops at the first that fails.
    ///
    /// `worker` is what the thread has to itself.
    ///
    /// # Errors
    ///
    /// Returns the error of the workgroup that failed, and refuses a dispatch that was made for
    /// another executable.
    fn run(
        &self,
        dispatch: &Dispatch<'_>,
        tiles: Range<u64>,
        worker: &mut Worker,
    ) -> Result<(), DispatchError>;
}

/// Why a function was not found by name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// The file holds no names. Its functions can be dispatched by ordinal.
    #[error(
        "cannot look up function `{name}`: the executable was compiled without debug data and holds no names"
    )]
    NoNames {
        /// The name that was looked for.
        name: String,
    },
    /// No function has the name.
    #[error("function `{name}` not found in the executable, which has {export_count} functions")]
    NotFound {
        /// The name that was looked for.
        name: String,
        /// The number of functions.
        export_count: usize,
    },
}

impl LookupError {
    /// Returns the status code that stands for this error.
    #[must_use]
    pub fn status_code(&self) -> StatusCode {
        match self {
            Self::NoNames { .. } => StatusCode::UNAVAILABLE,
            Self::NotFound { .. } => StatusCode::NOT_FOUND,
        }
    }
}
