//! The workspace tasks.
fn main() {}
