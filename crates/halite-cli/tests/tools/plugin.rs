//! `halite plugin`.

use crate::support::{SamplePlugin, fails, halite};

#[test]
fn a_plugin_is_loaded_and_asked_by_name() {
    let Some(plugin) = SamplePlugin::build() else {
        return;
    };
    let path = plugin.path();
    let outcome = halite(&["plugin", &path, "lab_scale_add", "?lab_nothing"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let expected = format!(
        "{path}: plugin `scale_add_c`
  description     lab_scale_add: c[i] = a[i] * 10 + b[i]
  code            system library `{path}`
  ABI             0.1
  features        STANDALONE
  function        lab_scale_add: found
  function        ?lab_nothing: missing, which is allowed
"
    );
    assert_eq!(outcome.stdout, expected);

    let outcome = halite(&["plugin", &path, "lab_nothing"]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stdout.ends_with("lab_nothing: missing\n"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_plugin_is_asked_for_the_imports_of_a_program() {
    let Some(plugin) = SamplePlugin::build() else {
        return;
    };
    let module = "--module={fixtures}/3.13.0/llvm-cpu/plugin.vmfb";
    let outcome = halite(&["plugin", &plugin.path(), module]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.ends_with("lab_scale_add: found\n"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn what_is_no_plugin_is_an_error() {
    fails(
        1,
        &["plugin", "{fixtures}/3.13.0/vmvx/mul.vmfb"],
        &["cannot load the plugin", "caused by:"],
    );
    fails(1, &["plugin", "p.so?key"], &["error: INVALID_ARGUMENT"]);
    fails(2, &["plugin"], &["SPEC"]);
}
