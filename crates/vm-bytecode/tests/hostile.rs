//! Hostile files: whatever the bytes, loading ends soon, with a verified module or an error, and what was verified can
//! be used.

use std::path::Path;

use proptest::prelude::*;
use vm_bytecode::{DebugDatabase, Disassembler, Offsets, VerifiedModule};

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let path = folder.join(format!("{name}.vmfb"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Loads a file and, if it verifies, uses all that can be got from it.
fn exercise(file: &[u8]) -> bool {
    match VerifiedModule::load(file) {
        Ok(module) => {
            let text = Disassembler::new(&module, file)
                .offsets(Offsets::Shown)
                .to_string();
            assert!(text.contains("vm.module @"));
            let debug = DebugDatabase::new(module.def(), file);
            for (ordinal, _) in (0u32..).zip(module.functions()) {
                debug.and_then(|debug| debug.location(ordinal, 8));
            }
            true
        }
        Err(error) => {
            assert!(!error.to_string().is_empty());
            assert_ne!(error.status_code(), vm::StatusCode::OK);
            false
        }
    }
}

#[test]
fn every_changed_byte_gives_a_module_or_an_error() {
    for (name, changes) in [
        ("lists-3.13.0", &[0x01, 0x80, 0xFF][..]),
        ("loop-2.9.0", &[0xFF]),
        ("forms", &[0x81]),
    ] {
        let mut file = fixture(name);
        let mut refused = 0;
        for offset in 0..file.len() {
            for change in changes {
                file[offset] ^= change;
                refused += usize::from(!exercise(&file));
                file[offset] ^= change;
            }
        }
        assert!(
            refused > file.len() / 8,
            "{name}: only {refused} changes were refused"
        );
        assert!(exercise(&file));
    }
}

#[test]
fn every_truncation_gives_an_error() {
    for name in ["lists-3.13.0", "forms", "mul-2.9.0-flat"] {
        let file = fixture(name);
        let needed = VerifiedModule::load(&file).unwrap().def().byte_length();
        for length in 0..needed {
            assert!(
                !exercise(&file[..length]),
                "{name} loads with {length} of {needed} bytes"
            );
        }
    }
}

/// A fixture with a few bytes replaced, so that damage in one place meets damage in another.
fn damaged() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8);
    (
        prop::sample::select(vec!["lists-3.13.0", "forms", "mul-3.13.0-stripped"]),
        damage,
    )
        .prop_map(|(name, damage)| {
            let mut file = fixture(name);
            for (index, byte) in damage {
                let offset = index.index(file.len());
                file[offset] = byte;
            }
            file
        })
}

proptest! {
    #[test]
    fn any_bytes_give_a_module_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn any_flatbuffer_behind_a_sound_header_gives_a_module_or_an_error(
        root in 0u32..64,
        rest in prop::collection::vec(prop_oneof![2 => Just(0u8), 2 => 0u8..32, 1 => any::<u8>()], 24..300),
    ) {
        let length = u32::try_from(rest.len() + 8).unwrap();
        let file = [&length.to_le_bytes()[..], &root.to_le_bytes(), b"IREE", &rest].concat();
        exercise(&file);
    }

    #[test]
    fn a_module_damaged_in_several_places_gives_a_module_or_an_error(file in damaged()) {
        exercise(&file);
    }
}
