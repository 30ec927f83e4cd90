//! The guard that every exported function runs in, so that a panic becomes an error.

use crate::StatusCode;

/// Runs `body`; a panic in it is INTERNAL.
#[cfg(feature = "std")]
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T, StatusCode>) -> Result<T, StatusCode> {
    extern crate std;
    use core::mem::ManuallyDrop;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Panics that are dropped before one is left alone.
    const DROPPED: u32 = 4;

    // What the panic leaves behind in the plugin's own state is guarded by that state's own types:
    // nothing of the SDK is half-written when `body` unwinds.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|mut payload| {
        // The payload may panic when dropped, and what that panic throws may do so too.
        for _ in 0..DROPPED {
            match catch_unwind(AssertUnwindSafe(|| drop(payload))) {
                Ok(()) => return Err(StatusCode::INTERNAL),
                Err(thrown) => payload = thrown,
            }
        }
        let _leaked = ManuallyDrop::new(payload);
        Err(StatusCode::INTERNAL)
    })
}

/// Runs `body`. Without `std` nothing unwinds: what a panic does is up to the panic handler.
#[cfg(not(feature = "std"))]
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T, StatusCode>) -> Result<T, StatusCode> {
    body()
}
