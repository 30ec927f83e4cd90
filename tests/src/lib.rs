//! Helpers of the cross-crate tests.
