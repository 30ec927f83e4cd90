//! The repr(C) types that cross IREE's executable plugin and dispatch boundaries, per ABI version.
