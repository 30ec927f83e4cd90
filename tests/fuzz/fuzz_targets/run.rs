//! The target `run`.
#![no_main]

halite_fuzz::target!("run");
