//! Sample plugin.
