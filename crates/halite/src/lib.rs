//! Runs programs compiled by IREE on the CPU: sessions, tensors, text and npy input and output.
