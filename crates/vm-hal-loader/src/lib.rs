//! The hal_loader VM module: loading executables and dispatching their functions.
