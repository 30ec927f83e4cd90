//! Plugins in system libraries.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::{fs, thread};

use hal_abi::StatusCode;
use hal_plugin::{Plugin, PluginError, PluginManager, PluginOrigin, PluginSpec};

use crate::c_plugins::{Workshop, call_f, chain, text};

/// Loads a system library built by a test.
fn load(path: impl Into<PathBuf>) -> Result<Plugin, PluginError> {
    // SAFETY: a plugin of our own that obeys the ABI, or a file that is refused.
    unsafe { Plugin::load(&PluginSpec::system(path)) }
}

#[test]
fn a_shared_object_is_loaded_and_called() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.so", 42, &[]);
    let plugin = load(&path).unwrap();
    assert_eq!(plugin.name(), "c plugin");
    assert_eq!(*plugin.origin(), PluginOrigin::System(path));
    assert_eq!(call_f(&plugin), 42);
}

#[test]
fn reloading_an_overwritten_file_gives_the_new_code() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.so", 1, &[]);
    let other = workshop.numbered("v2.so", 2, &[]);
    let first = load(&path).unwrap();
    assert_eq!(call_f(&first), 1);
    // The same inode with other contents.
    fs::copy(&other, &path).unwrap();
    let second = load(&path).unwrap();
    assert_eq!((call_f(&first), call_f(&second)), (1, 2));
    drop(first);
    // Another inode under the same path.
    let third = workshop.numbered("v3.so", 3, &[]);
    fs::rename(&third, &path).unwrap();
    let third = load(&path).unwrap();
    assert_eq!((call_f(&second), call_f(&third)), (2, 3));
}

#[test]
fn a_loaded_plugin_does_not_need_its_file() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let plugin = load(workshop.numbered("p.so", 7, &[])).unwrap();
    drop(workshop);
    assert_eq!(call_f(&plugin), 7);
}

#[test]
fn no_temporary_file_is_left_behind() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.numbered("p.so", 7, &[]);
    let is_ours = |name: &Path| {
        let copy = name.is_file() && name.to_string_lossy().contains("halite-");
        copy && fs::read(name).is_ok_and(|bytes| bytes == fs::read(&path).unwrap())
    };
    let plugin = load(&path).unwrap();
    let directory = fs::read_dir(std::env::temp_dir()).unwrap();
    assert!(!directory.flatten().any(|entry| is_ours(&entry.path())));
    assert_eq!(call_f(&plugin), 7);
}

#[test]
fn a_missing_dependency_is_reported_with_the_loaders_text_and_the_path() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    workshop.shared_object("libabsent.so", "int absent(void) { return 1; }", &[]);
    let code =
        "int absent(void);\nstatic int value(void *p, void *c, void *r) { return absent(); }";
    let path = workshop.plugin("p.so", code, &["-L.", "-labsent"]);
    fs::remove_file(workshop.path("libabsent.so")).unwrap();
    let error = load(&path).unwrap_err();
    let shown = chain(&error);
    assert!(shown.contains(text(&path)), "{shown}");
    assert!(shown.contains("RTLD_NOW | RTLD_LOCAL"), "{shown}");
    assert!(shown.contains("libabsent.so"), "{shown}");
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
}

#[test]
fn an_undefined_symbol_fails_at_load_and_is_named() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let code = "int no_such_function(void);\nstatic int value(void *p, void *c, void *r) { return no_such_function(); }";
    let error = load(workshop.plugin("p.so", code, &[])).unwrap_err();
    let shown = chain(&error);
    assert!(shown.contains("no_such_function"), "{shown}");
    assert!(shown.contains("p.so"), "{shown}");
}

#[test]
fn symbols_of_one_plugin_are_not_seen_by_another() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let code = "__attribute__((visibility(\"default\"))) int shared(void) { return 1; }\n\
                static int value(void *p, void *c, void *r) { return shared(); }";
    let first = load(workshop.plugin("a.so", code, &[])).unwrap();
    assert_eq!(call_f(&first), 1);
    let code =
        "int shared(void);\nstatic int value(void *p, void *c, void *r) { return shared(); }";
    assert!(load(workshop.plugin("b.so", code, &[])).is_err());
}

#[test]
fn a_library_that_is_no_plugin_is_refused() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let path = workshop.shared_object("p.so", "int other(void) { return 1; }", &[]);
    let error = load(&path).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert_eq!(
        error.to_string(),
        format!(
            "system library `{}` does not export `iree_hal_executable_plugin_query`",
            path.display()
        )
    );
}

#[test]
fn a_library_that_needs_a_sanitizer_is_refused_before_it_can_end_the_process() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    for (symbol, name) in [("__asan_init", "ASan"), ("__tsan_func_entry", "TSan")] {
        let code = format!(
            "void {symbol}(void);\n\
             static int value(void *p, void *c, void *r) {{ {symbol}(); return 0; }}"
        );
        let error = load(workshop.plugin("p.so", &code, &[])).unwrap_err();
        assert_eq!(error.status_code(), StatusCode::UNAVAILABLE);
        let shown = chain(&error);
        assert!(shown.contains(name), "{shown}");
        assert!(
            shown.ends_with("which does not run in this process"),
            "{shown}"
        );
    }
}

#[test]
fn a_weak_reference_to_a_sanitizer_does_not_make_a_library_instrumented() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let code = "__attribute__((weak)) void __asan_init(void);\n\
                static int value(void *p, void *c, void *r) { return __asan_init ? 1 : 2; }";
    assert_eq!(
        call_f(&load(workshop.plugin("p.so", code, &[])).unwrap()),
        2
    );
}

/// The plugin registers a destructor for the thread that calls it, and ends the process with a
/// signal if its code is unmapped by the time that thread ends.
#[test]
fn a_thread_local_destructor_runs_after_the_plugin_is_gone() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    let code = r#"
        #include <pthread.h>
        #include <unistd.h>
        #include <fcntl.h>
        static pthread_key_t key;
        static void destroy(void *p) { close(creat((char *)p, 0600)); }
        static int value(void *p, void *c, void *r) {
            pthread_key_create(&key, destroy);
            return pthread_setspecific(key, p);
        }
    "#;
    let path = workshop.plugin("p.so", code, &["-pthread"]);
    let mark = workshop.path("destroyed");
    let c_mark = CString::new(text(&mark)).unwrap();
    let manager = PluginManager::new();
    manager.register_plugin(load(path).unwrap()).unwrap();
    let imports = manager.resolve(&[c"f"]).unwrap();
    let (called, was_called) = mpsc::channel();
    let (end, may_end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let c_mark = &c_mark;
        let caller = scope.spawn(move || {
            let import = imports.get(0).unwrap();
            // SAFETY: the plugin is loaded; its function takes a path that outlives this thread.
            let result = unsafe {
                import.function()(
                    c_mark.as_ptr().cast_mut().cast(),
                    import.context(),
                    std::ptr::null_mut(),
                )
            };
            drop(imports);
            called.send(result).unwrap();
            may_end.recv().unwrap_err();
        });
        assert_eq!(was_called.recv().unwrap(), 0);
        drop(manager);
        assert!(!mark.exists());
        drop(end);
        caller.join().unwrap();
    });
    assert!(mark.exists(), "the destructor has run");
}

#[test]
fn a_path_that_is_no_plugin_file_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("text.so");
    fs::write(&file, "not a library").unwrap();
    let error = load(&file).unwrap_err();
    assert!(matches!(error, PluginError::Open { .. }), "{error}");
    assert!(error.to_string().contains(text(&file)));

    let error = load(directory.path()).unwrap_err();
    assert!(matches!(error, PluginError::NotAFile { .. }), "{error}");
    assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);

    let error = load("/dev/zero").unwrap_err();
    assert!(matches!(error, PluginError::NotAFile { .. }), "{error}");

    let error = load(directory.path().join("absent.so")).unwrap_err();
    assert!(matches!(error, PluginError::Read { .. }), "{error}");
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);

    fs::write(&file, "").unwrap();
    assert!(load(&file).is_err());
}

#[test]
fn an_empty_path_and_a_path_with_a_nul_are_refused() {
    for (path, problem) in [("", "is empty"), ("good.so\0evil", "has a NUL in it")] {
        let error = load(path).unwrap_err();
        assert!(matches!(error, PluginError::InvalidPath { .. }), "{error}");
        assert_eq!(error.to_string(), format!("plugin path {path:?} {problem}"));
        assert_eq!(error.status_code(), StatusCode::INVALID_ARGUMENT);
    }
}

#[test]
fn a_bare_file_name_is_searched_by_the_systems_loader() {
    // The directory of the tests has this file, but it is not on the search path.
    let error = load("Cargo.toml").unwrap_err();
    let PluginError::Open { .. } = &error else {
        panic!("{error}");
    };
    assert!(
        chain(&error).contains("cannot open shared object file"),
        "{}",
        chain(&error)
    );
}

#[test]
fn parameters_of_the_specification_reach_load() {
    let Some(workshop) = Workshop::open() else {
        return;
    };
    // `load` fails with a code that tells the number of parameters.
    let path = workshop.numbered("p.so", 0, &["-DLOAD_STATUS=16+n"]);
    let spec = format!("{}?a=1&b=2&c=", path.display());
    // SAFETY: a plugin of our own that obeys the ABI.
    let error = unsafe { Plugin::load(&PluginSpec::parse(&spec).unwrap()) }.unwrap_err();
    assert_eq!(error.status_code(), StatusCode(19));
}
