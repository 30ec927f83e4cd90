//! The target `plugin_header`.
#![no_main]

halite_fuzz::target!("plugin_header");
