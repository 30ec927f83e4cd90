//! The loader of portable bytecode kernels and the vmvx VM module they import.
