//! The target `registry`.
#![no_main]

halite_fuzz::target!("registry");
