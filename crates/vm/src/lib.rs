//! The IREE VM's values, refs, buffers, lists, calling conventions, native modules and contexts.
