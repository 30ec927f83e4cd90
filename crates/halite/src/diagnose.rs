//! What can be found out about a program that does not start, from what it carries.
#![forbid(unsafe_code)]

use hal_elf::{ElfFile, FatElf, Target};

use crate::Program;

/// Returns the machines that a program's native kernels are for, each once in the order found.
pub(crate) fn kernel_targets(program: &Program) -> Vec<Target> {
    let mut targets = Vec::new();
    let file = program.bytes();
    for segment in &program.module().def().rodata {
        let bytes = file.get(segment.range.clone()).unwrap_or_default();
        let found = match FatElf::parse(bytes) {
            Ok(fat) => fat
                .records()
                .iter()
                .filter_map(|record| record.target())
                .collect(),
            Err(_) => ElfFile::parse(bytes)
                .map(|elf| vec![elf.target()])
                .unwrap_or_default(),
        };
        for target in found {
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
    }
    targets
}

/// Returns the name of a machine as executable formats spell it, or its number for one that they do not know.
pub(crate) fn target_name(target: Target) -> String {
    target
        .arch_name()
        .map_or_else(|| target.machine.to_string(), str::to_owned)
}
