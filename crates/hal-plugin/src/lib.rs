//! Import providers and the executable plugin manager: registration, snapshots, resolution, plugin lifetime.
