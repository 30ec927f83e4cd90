//! What each subcommand prints, on success and on failure, byte for byte: `snapshots/*.md`.
//!
//! `TRYCMD=overwrite` makes this test write what is printed; `[..]` stands for the rest of a line and stays. Paths are
//! relative to the package. What the system says is Linux's.
#![cfg(target_os = "linux")]

#[test]
fn commands_print_what_their_snapshots_show() {
    let cases = trycmd::TestCases::new();
    cases.case("tests/snapshots/*.md");
    if cfg!(target_arch = "x86_64") {
        cases.case("tests/snapshots/x86_64/*.md");
    }
}
