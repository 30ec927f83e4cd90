//! The target `argument_block`.
#![no_main]

halite_fuzz::target!("argument_block");
