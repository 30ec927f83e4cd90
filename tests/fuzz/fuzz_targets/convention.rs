//! The target `convention`.
#![no_main]

halite_fuzz::target!("convention");
