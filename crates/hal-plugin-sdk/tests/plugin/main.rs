//! A plugin made with the SDK, driven by hand through the raw ABI as a host would.
//!
//! `host` is the host's side; the other modules are the claims.

#![expect(unsafe_code, reason = "plays the host on the raw ABI")]
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of a test fail as the test does"
)]

mod calls;
mod host;
mod lifecycle;
mod resolution;
