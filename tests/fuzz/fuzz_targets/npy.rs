//! The target `npy`.
#![no_main]

halite_fuzz::target!("npy");
