//! Reads, verifies, runs and disassembles IREE VM bytecode modules.
