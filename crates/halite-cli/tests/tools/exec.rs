//! `halite exec`.

use std::fs;

use tempfile::TempDir;

use crate::support::{fails, halite, prints, root, says};

const PORTABLE: &str = "--executable={fixtures}/3.13.0/vmvx/mul.vmfb";

#[test]
fn a_kernel_of_a_program_is_run_on_its_bindings() {
    prints(
        "exec_mul.txt",
        &[
            "exec",
            PORTABLE,
            "--binding=4xf32=1,2,3,4",
            "--binding=4xf32=10",
            "--binding=4xf32",
        ],
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn a_kernel_of_a_library_is_run_by_name_and_by_ordinal() {
    let path = root().join("crates/hal-local/tests/fixtures/mul_3_13_0.embedded.so");
    let file = format!("--executable_file={}", path.display());
    for entry_point in ["0", "mul_dispatch_0_elementwise_4_f32"] {
        prints(
            "exec_mul.txt",
            &[
                "exec",
                &file,
                "--executable_format=embedded-elf-x86_64",
                &format!("--entry_point={entry_point}"),
                "--workgroup_count=1,1,1",
                "--threads=2",
                "--binding=4xf32=1,2,3,4",
                "--binding=4xf32=10",
                "--binding=4xf32",
            ],
        );
    }
    fails(
        1,
        &["exec", &file, "--entry_point=nope"],
        &[
            "error: NOT_FOUND: no function `nope`",
            "hint: it has `mul_dispatch_0_elementwise_4_f32`",
        ],
    );
    let outcome = halite(&["exec", &file, "--binding=4xf32=1", "--constant=7"]);
    assert_eq!(outcome.status, 1);
    says(&outcome, &["takes 0 constants, not 1"]);
    let outcome = halite(&["exec", &file, "--entry_point=5", "--binding=4xf32=1"]);
    says(
        &outcome,
        &["error: OUT_OF_RANGE: cannot dispatch function 5"],
    );
}

#[test]
fn what_cannot_be_run_is_an_error() {
    fails(
        1,
        &["exec", PORTABLE, "--binding=4xf32=x"],
        &["cannot read --binding 0, `4xf32=x`"],
    );
    fails(
        1,
        &["exec", PORTABLE, "--binding=&4xf32"],
        &["--binding 0 must be a tensor"],
    );
    fails(
        1,
        &["exec", PORTABLE, "--executable_format=embedded-elf-pdp_11"],
        &[
            "error: NOT_FOUND: the program",
            "has no executable of this format",
        ],
    );
    fails(
        2,
        &["exec", PORTABLE, "--workgroup_count=1,2,3,4"],
        &["at most three numbers"],
    );
    fails(
        2,
        &["exec", PORTABLE, "--constant=4294967296"],
        &["does not fit 32 bits"],
    );
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("bytes");
    fs::write(&path, [0xFF, 0, 1, 2]).unwrap();
    fails(
        1,
        &["exec", &format!("--executable={}", path.display())],
        &[
            "cannot be told from its data",
            "hint: name it with --executable_format=FORMAT",
        ],
    );
}
