//! The target `verify`.
#![no_main]

halite_fuzz::target!("verify");
