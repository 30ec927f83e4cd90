//! What the exports of the `vmvx` module compute.

pub(crate) mod elementwise;
pub(crate) mod mmt4d;
pub(crate) mod pack;
