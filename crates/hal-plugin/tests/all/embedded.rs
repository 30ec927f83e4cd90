//! Plugins in freestanding images and FatELF files.

use std::fs;

use hal_abi::StatusCode;
use hal_plugin::{Plugin, PluginError, PluginFormat, PluginOrigin, PluginSpec};

use crate::c_plugins::{FREESTANDING, Workshop, call_f, chain, text};

fn load(spec: &str) -> Result<Plugin, PluginError> {
    // SAFETY: a plugin of our own that obeys the ABI, or a file that is refused.
    unsafe { Plugin::load(&PluginSpec::parse(spec).unwrap()) }
}

#[test]
fn a_freestanding_image_is_loaded_by_prefix_and_by_extension() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.so", 11, FREESTANDING);
    let plugin = load(&format!("embedded:{}?k=v", text(&path))).unwrap();
    assert_eq!(*plugin.origin(), PluginOrigin::Embedded(path));
    assert_eq!(call_f(&plugin), 11);

    let path = workshop.numbered("p.sos", 12, FREESTANDING);
    let plugin = load(text(&path)).unwrap();
    assert_eq!(call_f(&plugin), 12);
    // Nothing is shared with the file, and a new file under the path is new code.
    workshop.numbered("p.sos", 13, FREESTANDING);
    assert_eq!(call_f(&load(text(&path)).unwrap()), 13);
    assert_eq!(call_f(&plugin), 12);
}

#[test]
fn an_image_stays_mapped_while_an_import_uses_it() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.sos", 14, FREESTANDING);
    let bytes = fs::read(path).unwrap();
    // SAFETY: a plugin of our own that obeys the ABI.
    let plugin = unsafe { Plugin::from_bytes(&bytes, &[]) }.unwrap();
    drop(bytes);
    assert_eq!(*plugin.origin(), PluginOrigin::Memory);
    let imports = hal_plugin::resolve_imports(Some(&plugin), &[c"f"]).unwrap();
    drop(plugin);
    let import = imports.get(0).unwrap();
    // SAFETY: the function uses none of its arguments, and the result keeps its plugin loaded.
    let result =
        unsafe { import.function()(std::ptr::null_mut(), import.context(), std::ptr::null_mut()) };
    assert_eq!(result, 14);
}

#[test]
fn an_image_that_needs_symbols_is_refused_by_name() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let code = "void *memset(void *, int, size_t); int fmaf_(int);\n\
                static int value(void *p, void *c, void *r) { return fmaf_(1); }";
    let path = workshop.plugin("p.sos", code, FREESTANDING);
    let error = load(text(&path)).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
    let shown = chain(&error);
    assert!(
        shown.contains("fmaf_") && shown.contains("p.sos"),
        "{shown}"
    );
}

#[test]
fn an_image_that_is_no_plugin_is_refused() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let code = "__attribute__((visibility(\"default\"))) int other(void) { return 1; }";
    let path = workshop.shared_object("p.sos", code, FREESTANDING);
    let error = load(text(&path)).unwrap_err();
    assert!(matches!(error, PluginError::NotAPlugin { .. }), "{error}");
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
}

#[test]
fn any_other_bytes_are_refused() {
    for bytes in [&b""[..], b"\x7fELF", b"not an image at all", &[0; 4096]] {
        // SAFETY: the bytes hold no code.
        let error = unsafe { Plugin::from_bytes(bytes, &[]) }.unwrap_err();
        assert!(matches!(error, PluginError::Image { .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "cannot load freestanding image in memory"
        );
    }
}

#[test]
fn a_missing_file_is_named() {
    let error = load("embedded:/no/such/file").unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert_eq!(error.to_string(), "cannot read plugin file `/no/such/file`");
    assert!(load("/dev/null?x=y").is_err());
}

#[test]
fn the_member_of_a_fat_file_for_this_host_is_chosen() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let image = fs::read(workshop.numbered("p.so", 15, FREESTANDING)).unwrap();
    // Two records: one for a machine that does not exist, one for the host.
    let word_size = image[4];
    let mut file = vec![0xFA, 0x70, 0x0E, 0x1F, 1, 0, 2, 0];
    for machine in [[0xFE, 0xFF], [image[18], image[19]]] {
        file.extend(machine);
        file.extend([0, 0, word_size, 1, 0, 0]);
        file.extend(4096_u64.to_le_bytes());
        file.extend((image.len() as u64).to_le_bytes());
    }
    file.resize(4096, 0);
    file.extend(&image);
    // SAFETY: a plugin of our own that obeys the ABI.
    let plugin = unsafe { Plugin::from_bytes(&file, &[]) }.unwrap();
    assert_eq!(call_f(&plugin), 15);
}

#[test]
fn an_embedded_failure_is_final() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    // A good system library that is no freestanding image.
    let code =
        "#include <stdlib.h>\nstatic int value(void *p, void *c, void *r) { return abs(-1); }";
    let path = workshop.plugin("p.sos", &format!("{code}\nvoid *keep = malloc;"), &[]);
    let spec = PluginSpec::parse(text(&path)).unwrap();
    assert_eq!(spec.format(), PluginFormat::Embedded);
    assert!(load(text(&path)).is_err());
}
