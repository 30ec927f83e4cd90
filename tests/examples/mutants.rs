//! Tries mutants of real files: `mutants FIRST COUNT STATE PLUGINS`.
//!
//! A child of `cargo xtask mutants`: it writes the number it is at into the file STATE, so that its parent knows which
//! mutant ended it, and prints how many were refused, taken and run of each kind. PLUGINS is a folder of built plugins.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a developer's program, which ends when something is missing"
)]

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use halite_tests::memory::Watched;
use halite_tests::mutants::{kinds, mutant};

#[global_allocator]
static ALLOCATOR: Watched = Watched;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (first, count): (u64, u64) = (arguments[0].parse().unwrap(), arguments[1].parse().unwrap());
    let state = File::create(&arguments[2]).unwrap();
    let kinds = kinds(plugins(&arguments[3]));
    let mut tallies: BTreeMap<&str, [u64; 4]> = BTreeMap::new();
    for number in first..first + count {
        state.write_all_at(&number.to_le_bytes(), 0).unwrap();
        let mutant = mutant(&kinds, number);
        let outcome = catch_unwind(AssertUnwindSafe(|| mutant.exercise()));
        let tally = tallies.entry(mutant.kind()).or_default();
        match outcome {
            Ok(outcome) => tally[outcome as usize] += 1,
            Err(_) => {
                tally[3] += 1;
                println!("panic: mutant {number}: {}", mutant.history);
            }
        }
    }
    for (kind, [refused, taken, ran, panicked]) in tallies {
        println!("{kind}: {refused} {taken} {ran} {panicked}");
    }
}

/// Returns the shared objects of a folder.
fn plugins(folder: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".so"))
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}
