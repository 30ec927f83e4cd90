//! The target `fat_elf`.
#![no_main]

halite_fuzz::target!("fat_elf");
