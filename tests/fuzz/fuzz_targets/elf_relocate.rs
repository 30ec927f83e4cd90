//! The target `elf_relocate`.
#![no_main]

halite_fuzz::target!("elf_relocate");
