//! Write an IREE executable plugin in safe Rust and export it.
