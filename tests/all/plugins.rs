//! The built sample plugins, correct and faulty ones, go through the plugin manager.
//!
//! The faults are those of `tests/plugins/artifacts.txt`; [`EXPECTED`] says what each must come to.

use std::error::Error;
use std::ffi::c_void;
use std::path::{Path, PathBuf};

use hal_elf::ElfFile;
use hal_plugin::{Plugin, PluginManager, PluginSpec};

/// What loading a plugin, resolving `lab_scale_add` and calling it comes to.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// It computes the right numbers.
    Works,
    /// Loading fails; the error and its causes hold this text.
    Refused(&'static str),
    /// Resolving fails; the error and its causes hold this text.
    Unresolved(&'static str),
    /// The call returns this.
    Fails(i32),
    /// The call returns and has done nothing.
    Idle,
}

use Outcome::{Fails, Idle, Refused, Unresolved, Works};

/// Every artifact and its outcome.
const EXPECTED: &[(&str, Outcome)] = &[
    ("scale_add_rust.so", Works),
    ("scale_add_rust.sos", Works),
    (
        "thread_local_rust.so",
        Unresolved("[lab_scale_add]; providers asked: [thread_local_rust]"),
    ),
    ("scale_add_c.so", Works),
    ("scale_add_c.sos", Works),
    (
        "no_query.so",
        Refused("does not export `iree_hal_executable_plugin_query`"),
    ),
    (
        "no_query.sos",
        Refused("does not export `iree_hal_executable_plugin_query`"),
    ),
    ("faulty_none.so", Works),
    (
        "faulty_null_query.so",
        Refused("does not support ABI version 1"),
    ),
    ("faulty_null_header.so", Refused("header is NULL")),
    ("faulty_null_load.so", Refused("load function is NULL")),
    (
        "faulty_null_resolve.so",
        Refused("resolve function is NULL"),
    ),
    ("faulty_null_unload.so", Works),
    ("faulty_null_name.so", Works),
    ("faulty_version_0.so", Refused("version 0")),
    ("faulty_version_77.so", Refused("version 77")),
    ("faulty_reserved.so", Refused("reserved field 0")),
    ("faulty_full_status.so", Refused("FULL_STATUS")),
    ("faulty_unknown_features.so", Works),
    ("faulty_sanitizer_1.so", Refused("ASan")),
    ("faulty_sanitizer_2.so", Refused("MSan")),
    ("faulty_sanitizer_3.so", Refused("TSan")),
    ("faulty_sanitizer_4.so", Refused("UBSan")),
    ("faulty_sanitizer_5.so", Refused("sanitizer")),
    ("faulty_sanitizer_max.so", Refused("sanitizer")),
    ("faulty_load_fails.so", Refused("RESOURCE_EXHAUSTED")),
    ("faulty_load_deferred.so", Refused("DEFERRED")),
    ("faulty_load_address.so", Refused("0x12300048")),
    (
        "faulty_resolve_fills_nothing.so",
        Unresolved("[lab_scale_add]"),
    ),
    ("faulty_resolve_1.so", Unresolved("CANCELLED")),
    // The slots tell, not the status: NOT_FOUND, also as the code of an address, only means that others may know more.
    ("faulty_resolve_5.so", Works),
    ("faulty_resolve_17.so", Unresolved("DEFERRED")),
    ("faulty_resolve_18.so", Unresolved("INCOMPATIBLE")),
    ("faulty_resolve_19.so", Unresolved("19")),
    ("faulty_resolve_31.so", Unresolved("31")),
    ("faulty_resolve_0x20.so", Unresolved("0x20")),
    ("faulty_resolve_address.so", Works),
    ("faulty_resolve_overwrites.so", Works),
    ("faulty_resolve_keeps_bits.so", Works),
    ("faulty_resolve_extra_bits.so", Works),
    ("faulty_import_fails.so", Fails(5)),
    // Its function computes nothing unless a parameter says how to crash.
    ("crashing.so", Idle),
];

/// The parameter block of `lab_scale_add`.
#[repr(C)]
struct Block {
    a: *const f32,
    a_offset: usize,
    b: *const f32,
    b_offset: usize,
    c: *mut f32,
    c_offset: usize,
    len: usize,
}

/// Returns the folder of the built sample plugins.
pub(crate) fn folder() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    target.join("plugins")
}

/// Tells whether a plugin was built; prints why nothing is tested when it was not.
pub(crate) fn is_built(file: &str) -> bool {
    let built = folder().join(file).is_file();
    if !built {
        println!("skipped: {file} is not built, see `cargo xtask build-plugins`");
    }
    built
}

/// Loads a sample plugin.
fn load(file: &str) -> Result<Plugin, hal_plugin::PluginError> {
    let path = folder().join(file);
    let spec = PluginSpec::parse(path.to_str().unwrap()).unwrap();
    // SAFETY: the sample plugins are our own; their faults are among those a host must contain.
    unsafe { Plugin::load(&spec) }
}

/// Loads a sample plugin, lets it resolve `lab_scale_add` and calls that; an error is the text of the whole chain.
///
/// Returns what the call returned, `None` if it did nothing.
fn outcome(file: &str) -> Result<Option<i32>, (Stage, String)> {
    let plugin = load(file).map_err(|error| (Stage::Load, chain(&error)))?;
    let manager = PluginManager::new();
    manager.register_plugin(plugin).unwrap();
    let imports = manager.resolve(&[c"lab_scale_add"]);
    let imports = imports.map_err(|error| (Stage::Resolve, chain(&error)))?;
    // The imports keep what they need.
    drop(manager);
    let import = imports.get(0).unwrap();

    let (a, b, mut c) = ([1.0_f32, 2.0, 3.0], [0.5_f32, 0.25, 0.0], [0.0_f32; 3]);
    let mut block = Block {
        a: a.as_ptr(),
        a_offset: 1,
        b: b.as_ptr(),
        b_offset: 1,
        c: c.as_mut_ptr(),
        c_offset: 0,
        len: 2,
    };
    let parameters = (&raw mut block).cast::<c_void>();
    // SAFETY: the block is the one that `lab_scale_add` takes, and its spans lie in the arrays above.
    let result = unsafe { import.function()(parameters, import.context(), std::ptr::null_mut()) };
    if c == [0.0; 3] {
        return Ok(None);
    }
    assert_eq!(c, [20.25, 30.0, 0.0], "{file}");
    Ok(Some(result))
}

/// How far a plugin came.
#[derive(Debug, PartialEq, Eq)]
enum Stage {
    Load,
    Resolve,
}

/// Returns an error with all its causes as one text.
fn chain(error: &dyn Error) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes
        .map(|error| error.to_string())
        .collect::<Vec<_>>()
        .join(": ")
}

#[test]
fn every_sample_plugin_comes_to_what_its_fault_asks_for() {
    for (file, expected) in EXPECTED.iter().filter(|(file, _)| is_built(file)) {
        let found = outcome(file);
        let agrees = match (expected, &found) {
            (Works, Ok(result)) => *result == Some(0),
            (Fails(code), Ok(result)) => *result == Some(*code),
            (Idle, Ok(result)) => result.is_none(),
            (Refused(text), Err((Stage::Load, error))) => error.contains(text),
            (Unresolved(text), Err((Stage::Resolve, error))) => error.contains(text),
            _ => false,
        };
        assert!(agrees, "{file}: expected {expected:?}, found {found:?}");
    }
}

#[test]
fn every_artifact_is_expected_to_come_to_something() {
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("plugins/artifacts.txt");
    let text = std::fs::read_to_string(list).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let listed: Vec<&str> = lines
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let expected: Vec<&str> = EXPECTED.iter().map(|(file, _)| *file).collect();
    assert_eq!(listed, expected);
}

/// The image is linked without the standard library and libc, with a panic handler of its own: a crate that brought
/// `std` along would have given it two, and one that needed more than `core` would have left symbols open.
#[test]
fn the_abi_and_the_plugin_sdk_need_no_std() {
    if !is_built("scale_add_rust.sos") {
        return;
    }
    let bytes = std::fs::read(folder().join("scale_add_rust.sos")).unwrap();
    let image = ElfFile::parse(&bytes).unwrap();
    assert!(image.needed_libraries().is_empty());
    assert_eq!(image.undefined_symbols().count(), 0);
}

#[test]
fn an_older_plugin_cannot_replace_what_a_newer_one_resolved() {
    if !is_built("scale_add_c.so") || !is_built("faulty_resolve_overwrites.so") {
        return;
    }
    let newer = load("scale_add_c.so").unwrap();
    let alone = hal_plugin::resolve_imports(Some(&newer), &[c"lab_scale_add"]).unwrap();
    let manager = PluginManager::new();
    manager
        .register_plugin(load("faulty_resolve_overwrites.so").unwrap())
        .unwrap();
    manager.register_plugin(newer).unwrap();
    // The absent optional import makes the manager ask the older plugin too.
    let both = manager.resolve(&[c"lab_scale_add", c"?absent"]).unwrap();
    let function = |import: hal_plugin::Import| import.function() as usize;
    assert_eq!(both.get(0).map(function), alone.get(0).map(function));
    assert!(both.get(1).is_none());
}

#[test]
fn a_thread_may_end_after_the_plugin_that_it_called_is_gone() {
    if !is_built("thread_local_rust.so") {
        return;
    }
    let imports = {
        let plugin = load("thread_local_rust.so").unwrap();
        hal_plugin::resolve_imports(Some(&plugin), &[c"lab_touch"]).unwrap()
    };
    let thread = std::thread::spawn(move || {
        let import = imports.get(0).unwrap();
        let none = std::ptr::null_mut();
        // SAFETY: `lab_touch` takes no parameters, and `imports` keeps the plugin loaded.
        let result = unsafe { import.function()(none, import.context(), none) };
        drop(imports);
        result
    });
    assert_eq!(thread.join().unwrap(), 0);
}
