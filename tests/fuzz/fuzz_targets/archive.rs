//! The target `archive`.
#![no_main]

halite_fuzz::target!("archive");
