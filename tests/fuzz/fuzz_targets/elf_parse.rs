//! The target `elf_parse`.
#![no_main]

halite_fuzz::target!("elf_parse");
