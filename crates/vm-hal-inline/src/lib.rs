//! The hal_inline VM module: buffers and buffer views.
