//! The target `session`.
#![no_main]

halite_fuzz::target!("session");
