//! What the module is to those who link it.

use hal_local::LoaderRegistry;
use vm::StatusCode;

use crate::program::{IMPORTS_0, IMPORTS_1, link};

#[test]
fn programs_of_both_versions_link() {
    for (version, functions) in [(0, IMPORTS_0), (1, IMPORTS_1)] {
        link(LoaderRegistry::new(), version, functions).unwrap();
    }
}

#[test]
fn c12_a_program_that_needs_a_newer_module_is_told_so() {
    let error = link(LoaderRegistry::new(), 2, IMPORTS_1).unwrap_err();
    assert_eq!(error.code(), StatusCode::NOT_FOUND);
    assert_eq!(
        error.message(),
        "required module 'hal_loader' version mismatch; have 1 but module 'program' requires 2"
    );
}

#[test]
fn c11_a_dispatch_of_an_unknown_signature_is_named() {
    let imports = [("executable.dispatch", "0riii_v")];
    let error = link(LoaderRegistry::new(), 0, &imports).unwrap_err();
    assert_eq!(error.code(), StatusCode::INTERNAL);
    assert!(
        error.message().contains("hal_loader.executable.dispatch"),
        "{error}"
    );
    assert!(error.message().contains("0riii_v"), "{error}");
}
