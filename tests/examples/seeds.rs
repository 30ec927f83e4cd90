//! Writes the inputs to begin with into files, for the fuzzer: `seeds FOLDER` makes a folder in it for each target.
#![expect(
    clippy::unwrap_used,
    reason = "a developer's program, which ends when something is missing"
)]

use std::fs;
use std::path::PathBuf;

use halite_tests::fuzz::TARGETS;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).unwrap());
    for target in TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder).unwrap();
        for (index, (_, bytes)) in target.inputs().into_iter().enumerate() {
            fs::write(folder.join(format!("{index:03}")), bytes).unwrap();
        }
    }
}
