//! ELF and FatELF images, and the description of any file. Nothing here runs what it reads.

use hal_elf::{ElfFile, FatElf, LoadPlan, Protection, Target};
use hal_plugin::PluginManager;
use halite::inspect;

use super::{Outcome, fixtures};

/// Everything that a file says of itself.
pub(super) fn elf_parse(input: &[u8]) -> Outcome {
    let Ok(file) = ElfFile::parse(input) else {
        return Outcome::Refused;
    };
    let _ = file.packed_relocation_count();
    let counted: usize = file.relocation_counts().values().sum();
    assert_eq!(counted, file.relocations().len());
    for symbol in file.exported_symbols().chain(file.undefined_symbols()) {
        assert!(symbol.name.len() <= hal_elf::MAX_NAME_LENGTH);
    }
    for segment in file.segments() {
        let _ = format!("{segment:?}");
    }
    for name in file.needed_libraries() {
        assert!(name.len() <= input.len());
    }
    Outcome::Taken
}

/// The image in a block of the heap, at two addresses and with two sizes of pages.
///
/// The first byte chooses the high bits of the second address.
pub(super) fn elf_relocate(input: &[u8]) -> Outcome {
    let Some((&choice, input)) = input.split_first() else {
        return Outcome::Refused;
    };
    let Ok(file) = ElfFile::parse(input) else {
        return Outcome::Refused;
    };
    let mut outcome = Outcome::Refused;
    for page_size in [4096, 65536] {
        let Ok(plan) = LoadPlan::new(&file, page_size) else {
            continue;
        };
        assert!(plan.byte_length().is_multiple_of(page_size));
        assert!(plan.alignment().is_power_of_two());
        check_pages(&plan, page_size);
        let addresses = [0, u64::from(choice) << 40 | 0x1000_0000];
        for address in addresses {
            let mut memory = vec![0; plan.byte_length()];
            if plan.write_image(&mut memory, address).is_err() {
                continue;
            }
            outcome = Outcome::Taken;
            if let Ok(initializers) = plan.initializers(&memory, address) {
                for offset in initializers {
                    let page = offset / page_size * page_size;
                    let mut runs = plan.page_runs().iter();
                    let run = runs.find(|run| run.range.contains(&page));
                    assert_eq!(run.map(|run| run.protection), Some(Protection::ReadExecute));
                }
            }
        }
    }
    outcome
}

/// Checks that the pages of an image lie in it, one after the other.
fn check_pages(plan: &LoadPlan<'_>, page_size: usize) {
    let mut end = 0;
    for run in plan.page_runs() {
        assert!(run.range.start >= end && run.range.end > run.range.start);
        assert!(run.range.start.is_multiple_of(page_size));
        end = run.range.end;
    }
    assert!(end <= plan.byte_length());
}

/// The table of a FatELF file, and its choice for every target.
pub(super) fn fat_elf(input: &[u8]) -> Outcome {
    let Ok(file) = FatElf::parse(input) else {
        return Outcome::Refused;
    };
    let targets = file.records().iter().filter_map(|record| record.target());
    for target in targets.chain([Target::HOST]) {
        if let Ok(member) = file.select(target) {
            assert!(member.len() <= input.len());
            elf_parse(member);
        }
    }
    Outcome::Taken
}

/// The description of any file, its listing, and whether it would run.
pub(super) fn inspect(input: &[u8]) -> Outcome {
    let outcome = match inspect::describe(input) {
        Ok(description) => {
            let _ = format!("{description:?}");
            Outcome::Taken
        }
        Err(error) => {
            assert!(!inspect::error_line(&error).is_empty());
            Outcome::Refused
        }
    };
    let _ = inspect::disassemble(input, None);
    let manager = PluginManager::new();
    let _ = inspect::check(input, Some(&manager));
    outcome
}

/// Every image of the repository, of several machines.
pub(super) fn images() -> Vec<Vec<u8>> {
    let mut images = fixtures("crates/hal-elf/tests/fixtures", ".so");
    images.extend(fixtures("crates/hal-local/tests/fixtures", ".so"));
    images
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let images = images();
    let chosen = images.iter().map(|image| [&[0x7F], &image[..]].concat());
    chosen.chain(images.iter().cloned()).collect()
}

/// A FatELF file of each image alone, and one of two.
pub(super) fn fat_elf_seeds() -> Vec<Vec<u8>> {
    let images = images();
    let mut seeds: Vec<Vec<u8>> = images.iter().map(|image| fat(&[image])).collect();
    seeds.push(fat(&[&images[0], &images[1]]));
    seeds
}

/// Joins images (`docs/abi.md`, section 10.8).
fn fat(images: &[&[u8]]) -> Vec<u8> {
    let count = u8::try_from(images.len()).unwrap();
    let mut bytes = vec![0xFA, 0x70, 0x0E, 0x1F, 1, 0, count, 0];
    let mut offset = 8 + 24 * images.len() as u64;
    for image in images {
        // Machine, OS ABI and its version, word size, byte order (ELF has 1 for little).
        let byte_order = u8::from(image[5] == 1);
        bytes.extend([
            image[18], image[19], image[7], 0, image[4], byte_order, 0, 0,
        ]);
        bytes.extend(offset.to_le_bytes());
        bytes.extend((image.len() as u64).to_le_bytes());
        offset += image.len() as u64;
    }
    bytes.extend(images.concat());
    bytes
}

pub(super) fn inspect_seeds() -> Vec<Vec<u8>> {
    let mut seeds = images();
    seeds.extend(fat_elf_seeds().pop());
    seeds.extend(super::modules::seeds());
    seeds
}
