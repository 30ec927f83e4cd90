//! The target `input_text`.
#![no_main]

halite_fuzz::target!("input_text");
