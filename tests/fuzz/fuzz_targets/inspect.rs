//! The target `inspect`.
#![no_main]

halite_fuzz::target!("inspect");
