//! The target `dispatch_arguments`.
#![no_main]

halite_fuzz::target!("dispatch_arguments");
