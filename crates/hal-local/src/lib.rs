//! The executable loader trait, the loaders, loaded executables and the CPU dispatchers.
