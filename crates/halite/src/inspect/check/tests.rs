//! Tests of the whole check, on modules of the repository and spoiled copies of them.

use hal_plugin::PluginManager;

use super::*;
use crate::inspect::testing::{repository_file, with_bytecode_version, with_features};

fn fixture(path: &str) -> Vec<u8> {
    repository_file(&format!("tests/fixtures/{path}"))
}

#[track_caller]
fn problems(bytes: &[u8]) -> Vec<(Area, String)> {
    let manager = PluginManager::new();
    let check = check(bytes, Some(&manager));
    check
        .problems
        .into_iter()
        .map(|problem| (problem.area, problem.what))
        .collect()
}

/// Replaces the only place with `from` in a file.
#[track_caller]
fn patched(mut file: Vec<u8>, from: &[u8], to: &[u8]) -> Vec<u8> {
    let places: Vec<_> = file
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from)
        .collect();
    let [(place, _)] = places[..] else {
        panic!("{} places", places.len())
    };
    file[place..place + to.len()].copy_from_slice(to);
    file
}

#[test]
fn modules_of_all_releases_and_models_pass() {
    for path in [
        "2.9.0/vmvx/mul.vmfb",
        "3.10.0/vmvx-inline/mul.vmfb",
        "3.13.0/vmvx/dynsum.vmfb",
        "3.13.0/llvm-cpu/loop.vmfb",
    ] {
        assert_eq!(problems(&fixture(path)), [], "{path}");
    }
    if cfg!(target_arch = "x86_64") {
        for path in [
            "2.9.0/llvm-cpu/mul.vmfb",
            "3.9.0/llvm-cpu-edited/mul.vmfb",
            "3.11.0/llvm-cpu-edited/mul.vmfb",
            "3.13.0/llvm-cpu/mul.vmfb",
            "3.13.0/llvm-cpu-system/mul.vmfb",
        ] {
            assert_eq!(problems(&fixture(path)), [], "{path}");
        }
    }
}

#[test]
fn a_missing_import_is_named_with_the_providers_asked() {
    if !cfg!(target_arch = "x86_64") {
        return;
    }
    let found = problems(&fixture("3.13.0/llvm-cpu/plugin.vmfb"));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, Area::Plugin);
    assert!(
        found[0]
            .1
            .contains("missing 1 required executable import: [lab_scale_add]"),
        "{}",
        found[0].1
    );
    assert!(
        found[0].1.contains("no provider is registered"),
        "{}",
        found[0].1
    );
}

#[test]
fn kernels_for_another_machine_are_told_of_with_both_machines() {
    let path = if cfg!(target_arch = "aarch64") {
        "llvm-cpu"
    } else {
        "llvm-cpu-aarch64"
    };
    let found = problems(&fixture(&format!("3.13.0/{path}/mul.vmfb")));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, Area::Machine);
    assert!(
        found[0].1.contains("arm_64") && found[0].1.contains("x86_64")
            || !cfg!(target_arch = "x86_64")
    );
}

#[test]
fn an_unknown_version_does_not_hide_the_machine() {
    let file = with_bytecode_version("3.13.0/llvm-cpu-aarch64/mul.vmfb", 0x0012_0000);
    let areas: Vec<Area> = problems(&file).into_iter().map(|(area, _)| area).collect();
    assert!(areas.contains(&Area::Version), "{areas:?}");
    if cfg!(target_arch = "x86_64") {
        assert!(areas.contains(&Area::Machine), "{areas:?}");
    }
}

#[test]
fn features_that_are_missing_are_named() {
    let found = problems(&with_features("3.13.0/vmvx/mul.vmfb", 0x118));
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, Area::Features);
    assert!(found[0].1.contains("the features 0x110,"), "{}", found[0].1);
}

#[test]
fn a_program_of_the_asynchronous_model_is_told_how_to_compile_it() {
    // The name of the module that it needs is all that makes it one.
    let file = fixture("3.13.0/vmvx-inline/mul.vmfb");
    let mut patched = file.clone();
    for place in 0..file.len() - 10 {
        if file[place..].starts_with(b"hal_inline") && file[place - 4] == 10 {
            patched[place - 4] = 3;
            patched[place..place + 10].copy_from_slice(b"hal\0\0\0\0\0\0\0");
        }
    }
    let check = check(&patched, None);
    let problem = check
        .problems
        .iter()
        .find(|problem| problem.area == Area::Model)
        .unwrap();
    assert!(
        problem.what.contains("asynchronous execution model"),
        "{}",
        problem.what
    );
    let hint = problem.hint.as_deref().unwrap();
    assert!(
        hint.contains("--iree-execution-model=inline-dynamic"),
        "{hint}"
    );
}

#[test]
fn imports_that_are_not_there_or_of_another_convention_are_named() {
    let file = fixture("3.13.0/vmvx/mul.vmfb");
    let file = patched(file, b"0rIiiiCiDCrIID_v", b"0rIiiiCiDCrIID_i");
    let file = patched(
        file,
        b"hal_loader.executable.lookup.function",
        b"hal_loader.executable.l00kup.function",
    );
    let found: Vec<_> = problems(&file)
        .into_iter()
        .filter(|(area, _)| *area == Area::Import)
        .collect();
    assert_eq!(found.len(), 2, "{found:?}");
    let text = format!("{found:?}");
    assert!(
        text.contains("`hal_loader.executable.l00kup.function`, which does not exist"),
        "{text}"
    );
    assert!(
        text.contains("`0rIiiiCiDCrIID_i`, it has `0rIiiiCiDCrIID_v`, `0riiiiCiDCrIID_v`"),
        "{text}"
    );
}

#[test]
fn a_file_of_another_kind_is_a_problem_that_names_the_kind() {
    assert_eq!(
        problems(b"func.func @f() { return }"),
        [(
            Area::File,
            "the file is not a module but MLIR text, which must be compiled first".to_owned()
        )]
    );
    let elf = repository_file("crates/hal-local/tests/fixtures/mul_3_13_0.embedded.so");
    assert_eq!(
        problems(&elf),
        [(
            Area::File,
            "the file is not a module but an ELF image".to_owned()
        )]
    );
}

#[test]
fn a_file_of_no_kind_and_a_damaged_one_are_problems() {
    let found = problems(&[0xFF, 1, 2, 3, 0, 0]);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].1.starts_with("the file is of no known kind: "),
        "{}",
        found[0].1
    );
    let file = fixture("3.13.0/vmvx/mul.vmfb");
    // The end is the directory of the ZIP archive around the module, which nobody reads.
    for length in 0..3000 {
        assert_ne!(problems(&file[..length]), [], "{length}");
    }
}
