//! Every fuzz target with its seeds, its corpus and the inputs that once broke it.

use halite_tests::fuzz::{TARGETS, Target};

#[track_caller]
fn replay(name: &str) {
    let target = Target::find(name).unwrap();
    let inputs = target.inputs();
    assert!(!inputs.is_empty());
    for (input, bytes) in inputs {
        // Says which one it was when it fails.
        println!("{name}: {input}");
        target.exercise(&bytes);
    }
    target.exercise(&[]);
}

macro_rules! replays {
    ($($test:ident: $name:literal,)*) => {
        const REPLAYED: &[&str] = &[$($name),*];

        $(
            #[test]
            fn $test() {
                replay($name);
            }
        )*
    };
}

replays! {
    inputs_of_archive_hold: "archive",
    inputs_of_verify_hold: "verify",
    inputs_of_run_hold: "run",
    inputs_of_session_hold: "session",
    inputs_of_elf_parse_hold: "elf_parse",
    inputs_of_elf_relocate_hold: "elf_relocate",
    inputs_of_fat_elf_hold: "fat_elf",
    inputs_of_inspect_hold: "inspect",
    inputs_of_dispatch_arguments_hold: "dispatch_arguments",
    inputs_of_argument_block_hold: "argument_block",
    inputs_of_convention_hold: "convention",
    inputs_of_input_text_hold: "input_text",
    inputs_of_npy_hold: "npy",
    inputs_of_plugin_header_hold: "plugin_header",
    inputs_of_registry_hold: "registry",
}

#[test]
fn every_target_is_replayed() {
    let mut targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    let mut replayed = REPLAYED.to_vec();
    targets.sort_unstable();
    replayed.sort_unstable();
    assert_eq!(targets, replayed);
}

#[test]
fn every_target_has_a_program_of_the_fuzzer() {
    for target in TARGETS {
        let folder = target.folder("fuzz_targets");
        let program = folder.with_extension("rs");
        let program = std::fs::read_to_string(&program).unwrap();
        assert!(program.contains(&format!("\"{}\"", target.name)));
    }
}
