//! `halite check`.

use std::fs;

use serde_json::Value;

use crate::support::{
    SamplePlugin, halite, halite_with_stdin, prints, prints_and_fails, root, says,
};

#[test]
fn a_program_with_portable_kernels_will_run_anywhere() {
    prints(
        "check_vmvx.txt",
        &["check", "{fixtures}/3.13.0/vmvx/mul.vmfb"],
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn every_reason_is_told_and_every_file_checked() {
    prints_and_fails(
        "check_reasons.txt",
        &[
            "check",
            "{fixtures}/3.13.0/llvm-cpu/mul.vmfb",
            "{fixtures}/3.13.0/llvm-cpu-aarch64/mul.vmfb",
            "{fixtures}/3.13.0/llvm-cpu/plugin.vmfb",
        ],
        &[],
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn plugins_are_asked_for_the_imports_of_kernels() {
    let Some(plugin) = SamplePlugin::build() else {
        return;
    };
    let flag = format!("--executable_plugin={}", plugin.path());
    let outcome = halite(&["check", &flag, "{fixtures}/3.13.0/llvm-cpu/plugin.vmfb"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stdout);
}

#[test]
fn c13_a_module_with_other_bytecode_is_told_which_releases_are_known() {
    let file = fs::read(root().join("tests/fixtures/3.13.0/vmvx/mul.vmfb")).unwrap();
    // The version stands in the module and in the one inside it; one place at a time is enough.
    let version = [0, 0, 0x11, 0];
    let places = (0..file.len() - 4).filter(|at| file[*at..].starts_with(&version));
    let mut told = 0;
    for place in places {
        let mut patched = file.clone();
        patched[place + 2] = 0x12;
        let outcome = halite_with_stdin(&["check", "-"], &patched);
        if outcome
            .stdout
            .contains("bytecode version 18.0, known are 15.0 (IREE 2.9 to 3.9)")
        {
            assert_eq!(outcome.status, 1);
            assert!(
                outcome.stdout.contains("made by a newer compiler"),
                "{}",
                outcome.stdout
            );
            told += 1;
        }
    }
    assert!(told >= 2, "{told}");
}

#[test]
fn c11_an_import_of_another_convention_is_named_with_both() {
    let mut file = fs::read(root().join("tests/fixtures/3.13.0/vmvx/mul.vmfb")).unwrap();
    let convention = b"0rIiiiCiDCrIID_v";
    let place = (0..file.len())
        .find(|at| file[*at..].starts_with(convention))
        .unwrap();
    file[place + 15] = b'i';
    let outcome = halite_with_stdin(&["check", "-"], &file);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stdout.contains(
            "`hal_loader.executable.dispatch` with the calling convention `0rIiiiCiDCrIID_i`, it has `0rIiiiCiDCrIID_v`"
        ),
        "{}",
        outcome.stdout
    );
    assert!(
        outcome
            .stdout
            .contains("hint: the module was made for another release"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn json_has_problems_and_notes() {
    let outcome = halite_with_stdin(&["check", "--json", "-"], b"func.func @f() { return }");
    assert_eq!(outcome.status, 1);
    let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(answer["runs"], false);
    assert_eq!(answer["problems"][0]["area"], "file");
    assert!(answer["notes"].as_array().unwrap().is_empty());
}

#[test]
fn c15_files_of_other_kinds_are_named() {
    let zip = [&b"PK\x03\x04"[..], &[0; 80]].concat();
    for (file, kind) in [
        (&b"module @m {"[..], "MLIR text"),
        (b"", "an empty file"),
        (&zip, "a ZIP archive of something else"),
    ] {
        let outcome = halite_with_stdin(&["check", "-"], file);
        assert_eq!(outcome.status, 1);
        let expected = format!("file: the file is not a module but {kind}");
        assert!(outcome.stdout.contains(&expected), "{}", outcome.stdout);
    }
}

#[test]
fn plugins_and_files_that_cannot_be_read_do_not_hide_the_others() {
    let outcome = halite(&[
        "check",
        "--executable_plugin=/nonexistent/p.so",
        "/nonexistent/a.vmfb",
        "{fixtures}/3.13.0/vmvx/mul.vmfb",
    ]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.stdout,
        "{fixtures}/3.13.0/vmvx/mul.vmfb: will run here\n"
    );
    says(
        &outcome,
        &[
            "error: NOT_FOUND: cannot load the plugin `/nonexistent/p.so`",
            "error: NOT_FOUND: cannot read `/nonexistent/a.vmfb`",
        ],
    );
}

#[test]
fn a_damaged_file_has_its_reason() {
    let file = fs::read(root().join("tests/fixtures/3.13.0/vmvx/mul.vmfb")).unwrap();
    for length in [1, 100, 1000, 3000] {
        let outcome = halite_with_stdin(&["check", "-"], &file[..length]);
        assert_eq!((outcome.status, outcome.stderr.as_str()), (1, ""));
        assert!(
            outcome
                .stdout
                .starts_with("<standard input>: will not run here, for 1 reason\n  "),
            "{length}: {}",
            outcome.stdout
        );
    }
}

#[test]
fn every_reason_is_told_at_once() {
    // A program for another machine, of an unknown version, and with an import that is not there.
    let mut file =
        fs::read(root().join("tests/fixtures/3.13.0/llvm-cpu-aarch64/mul.vmfb")).unwrap();
    let version = (0..file.len())
        .filter(|at| file[*at..].starts_with(&[0, 0, 0x11, 0]))
        .collect::<Vec<_>>();
    let import = (0..file.len())
        .find(|at| file[*at..].starts_with(b"hal_inline.buffer.storage"))
        .unwrap();
    file[import + 11..import + 17].copy_from_slice(b"BUFFER");
    let answers = version.into_iter().map(|place| {
        let mut patched = file.clone();
        patched[place + 2] = 0x12;
        halite_with_stdin(&["check", "-"], &patched).stdout
    });
    let all = [
        "  version: module `module` has bytecode version 18.0",
        "  import: the module imports `hal_inline.BUFFER.storage`, which does not exist",
        "  machine: the kernels are for arm_64",
    ];
    let all: Vec<&str> = match cfg!(target_arch = "aarch64") {
        true => all[..2].to_vec(),
        false => all.to_vec(),
    };
    assert!(
        answers.into_iter().any(|answer| {
            all.iter().all(|text| answer.contains(text))
                && answer.contains(&format!("for {} reasons", all.len()))
        }),
        "no answer has all of {all:?}"
    );
}
