//! Plugins linked into the program: the query, load and unload, resolve, and what goes wrong there.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use hal_abi::{
    PluginEnvironment, PluginFeatures, PluginHeader, PluginQueryFn, Resolution, SanitizerKind,
    Status, StatusCode, StringPair,
};
use hal_plugin::{
    ImportProvider, Plugin, PluginError, PluginManager, PluginOrigin, ResolveError, resolve_imports,
};

use crate::probe::{self, Event, answer, events, forever, header, table, unload_count};
use crate::providers::{Known, tag};

/// Loads a plugin that must be rejected, and checks how.
#[track_caller]
fn check_rejected(query: PluginQueryFn, code: StatusCode, reason: &str) {
    // SAFETY: the plugin is rejected before anything but its query is called.
    let error = unsafe { Plugin::from_static(query, &[("id", "rejected")]) }.unwrap_err();
    let PluginError::Rejected { source, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(source.to_string(), reason);
    assert_eq!(error.to_string(), "linked plugin is not usable here");
    assert_eq!(error.status_code(), code);
    assert_eq!(events("rejected"), [], "neither loaded nor unloaded");
}

#[test]
fn a_plugin_describes_itself_and_is_called_in_order() {
    let plugin = probe::load(&[("id", "order"), ("knows", "f"), ("b", ""), ("a", "1")]).unwrap();
    assert_eq!(plugin.name(), "probe");
    assert_eq!(plugin.description(), "a plugin for tests");
    assert_eq!(plugin.version(), 1);
    assert_eq!(plugin.features(), PluginFeatures::STANDALONE);
    assert_eq!(*plugin.origin(), PluginOrigin::Static);
    let imports = resolve_imports(Some(&plugin), &[c"?g", c"f"]).unwrap();
    assert_eq!(imports.resolution(), Resolution::MISSING_OPTIONAL);
    drop(imports);
    drop(plugin);

    let parameters = [("knows", "f"), ("b", ""), ("a", "1")];
    let parameters = parameters.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let names = vec![("?g".to_owned(), false), ("f".to_owned(), false)];
    assert_eq!(
        events("order"),
        [
            Event::Load(true, parameters.to_vec()),
            Event::Resolve(names, 0),
            Event::Unload(0)
        ]
    );
}

#[test]
fn a_plugin_that_refuses_version_1_is_rejected() {
    unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        ptr::null()
    }
    let reason = "the plugin does not support ABI version 1, the newest this host knows";
    check_rejected(query, StatusCode::FAILED_PRECONDITION, reason);
}

#[test]
fn versions_that_were_not_asked_for_are_rejected() {
    unsafe extern "C" fn query<const VERSION: u32>(
        _: u32,
        _: *mut c_void,
    ) -> *const *const PluginHeader {
        let version = VERSION;
        answer(
            PluginHeader {
                version,
                ..header()
            },
            table(),
        )
    }
    let check = |query: PluginQueryFn, version: u32| {
        let reason = format!(
            "the plugin was asked for ABI version 1 at most but answers with version {version}"
        );
        check_rejected(query, StatusCode::FAILED_PRECONDITION, &reason);
    };
    check(query::<0>, 0);
    check(query::<2>, 2);
    check(query::<77>, 77);
    check(query::<{ u32::MAX }>, u32::MAX);
}

#[test]
fn null_and_misaligned_pointers_are_rejected() {
    unsafe extern "C" fn no_header(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        ptr::from_ref(forever(table())).cast()
    }
    unsafe extern "C" fn no_load(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let mut table = table();
        table.load = None;
        answer(header(), table)
    }
    unsafe extern "C" fn no_resolve(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let mut table = table();
        table.resolve = None;
        answer(header(), table)
    }
    unsafe extern "C" fn odd_answer(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        answer(header(), table()).wrapping_byte_add(1)
    }
    unsafe extern "C" fn odd_header(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let header = ptr::from_ref(forever(header())).wrapping_byte_add(2);
        forever([header, ptr::null(), ptr::null(), ptr::null()]).as_ptr()
    }
    let code = StatusCode::FAILED_PRECONDITION;
    check_rejected(no_header, code, "the plugin's header is NULL");
    check_rejected(no_load, code, "the plugin's load function is NULL");
    check_rejected(no_resolve, code, "the plugin's resolve function is NULL");
    check_rejected(odd_answer, code, "the plugin's structure is misaligned");
    check_rejected(odd_header, code, "the plugin's header is misaligned");
}

#[test]
fn a_null_unload_is_skipped_and_null_texts_are_empty() {
    unsafe extern "C" fn load(
        _: *const PluginEnvironment,
        _: usize,
        _: *const StringPair,
        _: *mut *mut c_void,
    ) -> Status {
        Status::OK
    }
    unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let mut table = table();
        table.load = Some(load);
        table.unload = None;
        let mut header = header();
        (header.name, header.description) = (ptr::null(), ptr::null());
        answer(header, table)
    }
    // SAFETY: a plugin of our own that obeys the ABI.
    let plugin = unsafe { Plugin::from_static(query, &[]) }.unwrap();
    assert_eq!((plugin.name(), plugin.description()), ("", ""));
    assert_eq!(ImportProvider::name(&plugin), "linked plugin");
    drop(plugin);
}

#[test]
fn texts_that_are_not_utf8_are_shown_with_a_replacement() {
    unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let name = c"\xff".as_ptr();
        answer(PluginHeader { name, ..header() }, table())
    }
    // SAFETY: a plugin of our own that obeys the ABI.
    let plugin = unsafe { Plugin::from_static(query, &[("id", "utf8")]) }.unwrap();
    assert_eq!(plugin.name(), "\u{fffd}");
}

#[test]
fn a_plugin_with_full_statuses_is_rejected_with_the_reason() {
    unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let features = PluginFeatures::STANDALONE.union(PluginFeatures::FULL_STATUS);
        answer(
            PluginHeader {
                features,
                ..header()
            },
            table(),
        )
    }
    check_rejected(
        query,
        StatusCode::FAILED_PRECONDITION,
        "plugin `probe` is built with full statuses (feature FULL_STATUS), which only a host with \
         the same C status implementation can read and free; build it without",
    );
}

#[test]
fn unknown_and_missing_features_are_accepted() {
    unsafe extern "C" fn query<const BITS: u32>(
        _: u32,
        _: *mut c_void,
    ) -> *const *const PluginHeader {
        let features = PluginFeatures(BITS);
        answer(
            PluginHeader {
                features,
                ..header()
            },
            table(),
        )
    }
    let queries: [PluginQueryFn; 2] = [query::<0>, query::<0xFFFF_FFF0>];
    for query in queries {
        // SAFETY: a plugin of our own that obeys the ABI.
        unsafe { Plugin::from_static(query, &[("id", "features")]) }.unwrap();
    }
}

#[test]
fn a_plugin_built_for_a_sanitizer_is_rejected_with_the_reason() {
    unsafe extern "C" fn query<const KIND: i32>(
        _: u32,
        _: *mut c_void,
    ) -> *const *const PluginHeader {
        let sanitizer = SanitizerKind(KIND);
        answer(
            PluginHeader {
                sanitizer,
                ..header()
            },
            table(),
        )
    }
    let check = |query: PluginQueryFn, with: &str| {
        let reason = format!("plugin `probe` is built with {with}");
        check_rejected(query, StatusCode::UNAVAILABLE, &reason);
    };
    // Kinds 1 and 3 depend on how this program is built; a unit test of the crate has them.
    check(
        query::<2>,
        "the memory sanitizer (MSan), which no host supports for plugins",
    );
    check(
        query::<4>,
        "the undefined behavior sanitizer (UBSan), which no host supports for plugins",
    );
    check(query::<5>, "a sanitizer of unknown kind 5");
    check(query::<-1>, "a sanitizer of unknown kind -1");
    check(
        query::<0x7fff_ffff>,
        "a sanitizer of unknown kind 2147483647",
    );
}

#[test]
fn reserved_fields_must_be_zero() {
    unsafe extern "C" fn query(_: u32, _: *mut c_void) -> *const *const PluginHeader {
        let mut header = header();
        header.reserved[7] = 0x10;
        answer(header, table())
    }
    check_rejected(
        query,
        StatusCode::FAILED_PRECONDITION,
        "reserved field 7 in the header of plugin `probe` is 0x10, not 0",
    );
}

#[test]
fn a_plugin_whose_load_fails_is_not_unloaded() {
    // The probe's `unload` uses its state, which a failed `load` does not make.
    for (raw, code, name) in [
        ("13", StatusCode::INTERNAL, "INTERNAL"),
        ("1", StatusCode::INTERNAL, "CANCELLED"),
        ("17", StatusCode::INTERNAL, "DEFERRED"),
        ("32", StatusCode::INTERNAL, "OK"),
        ("5", StatusCode::NOT_FOUND, "NOT_FOUND"),
        ("25", StatusCode(25), "25"),
        ("4104", StatusCode::RESOURCE_EXHAUSTED, "RESOURCE_EXHAUSTED"),
    ] {
        let id = format!("failing load {raw}");
        let error = probe::load(&[("id", &id), ("load", raw)]).unwrap_err();
        assert_eq!(error.status_code(), code);
        let value: usize = raw.parse().unwrap();
        assert_eq!(
            error.to_string(),
            format!(
                "`load` of plugin `probe` (linked plugin) returned {name} (raw value {value:#x})"
            )
        );
        assert_eq!(unload_count(&id), 0);
    }
}

#[test]
fn unload_runs_once_when_the_last_user_goes() {
    let plugin = probe::load(&[("id", "once"), ("knows", "f"), ("tag", "3")]).unwrap();
    let manager = PluginManager::new();
    manager.register_plugin(plugin.clone()).unwrap();
    manager.register_plugin(plugin.clone()).unwrap();
    let imports = manager.resolve(&[c"f"]).unwrap();
    let unused = manager.resolve(&[c"?g"]).unwrap();
    drop(plugin);
    manager.unregister("probe").unwrap();
    drop(manager);
    assert_eq!(unload_count("once"), 0);

    // The function is still callable, from another thread too.
    let imports = std::thread::spawn(move || {
        let import = imports.get(0).unwrap();
        // SAFETY: the function ignores its arguments, and its plugin is loaded.
        let result =
            unsafe { import.function()(ptr::null_mut(), import.context(), ptr::null_mut()) };
        assert_eq!((result, tag(import)), (0, 3));
        imports
    })
    .join()
    .unwrap();
    drop(imports);
    assert_eq!(unload_count("once"), 1);
    drop(unused);
    assert_eq!(unload_count("once"), 1);
}

#[test]
fn plugins_are_unloaded_newest_first() {
    let manager = PluginManager::new();
    for tag in ["1", "2", "3"] {
        let plugin = probe::load(&[("id", "newest"), ("tag", tag)]).unwrap();
        manager.register_plugin(plugin).unwrap();
    }
    drop(manager);
    let unloads = [3, 2, 1].map(Event::Unload);
    assert_eq!(events("newest")[3..], unloads);
}

#[test]
fn one_plugin_can_be_loaded_several_times() {
    let first = probe::load(&[("id", "several 1"), ("knows", "f"), ("tag", "1")]).unwrap();
    let second = probe::load(&[("id", "several 2"), ("knows", "f"), ("tag", "2")]).unwrap();
    drop(first);
    assert_eq!(
        (unload_count("several 1"), unload_count("several 2")),
        (1, 0)
    );
    let imports = resolve_imports(Some(&second), &[c"f"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 2);
}

#[test]
fn a_required_slot_left_null_after_ok_is_not_found() {
    let manager = PluginManager::new();
    let older = Arc::new(Known::new("older", 1, &["g"]));
    manager.register_provider("older", older).unwrap();
    let parameters = [("id", "liar"), ("resolve", "0")];
    manager
        .register_plugin(probe::load(&parameters).unwrap())
        .unwrap();
    let error = manager.resolve(&[c"f", c"g"]).unwrap_err();
    assert_eq!(error.status_code(), StatusCode::NOT_FOUND);
    assert_eq!(
        error.to_string(),
        "missing 1 required executable import: [f]; providers asked: [probe, older]"
    );
    assert!(
        manager.resolve(&[c"g"]).is_ok(),
        "the older provider is asked all the same"
    );
}

#[test]
fn slots_filled_jointly_are_enough_even_if_every_plugin_says_not_found() {
    let manager = PluginManager::new();
    for (knows, tag) in [("f", "1"), ("g", "2")] {
        let parameters = [
            ("id", "joint"),
            ("knows", knows),
            ("tag", tag),
            ("resolve", "5"),
        ];
        manager
            .register_plugin(probe::load(&parameters).unwrap())
            .unwrap();
    }
    let imports = manager.resolve(&[c"f", c"g"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 1);
    assert_eq!(tag(imports.get(1).unwrap()), 2);
    assert_eq!(imports.resolution(), Resolution::COMPLETE);
}

#[test]
fn reported_resolution_bits_do_not_count() {
    for bits in ["0", "1", "2", "4294967294", "none"] {
        let manager = PluginManager::new();
        let older = Arc::new(Known::new("older", 1, &["g"]));
        manager.register_provider("older", older).unwrap();
        let parameters = [("id", "bits"), ("knows", "f"), ("bits", bits)];
        manager
            .register_plugin(probe::load(&parameters).unwrap())
            .unwrap();
        let imports = manager.resolve(&[c"f", c"?g"]).unwrap();
        assert_eq!(imports.resolution(), Resolution::COMPLETE, "bits {bits}");
        let imports = manager.resolve(&[c"f", c"?h"]).unwrap();
        assert_eq!(
            imports.resolution(),
            Resolution::MISSING_OPTIONAL,
            "bits {bits}"
        );
    }
    let bits_on_entry = |event: &Event| match event {
        Event::Resolve(_, bits) => *bits,
        _ => 0,
    };
    assert!(
        events("bits")
            .iter()
            .map(bits_on_entry)
            .all(|bits| bits == 0)
    );
}

#[test]
fn a_plugin_cannot_overwrite_what_a_newer_one_resolved() {
    let manager = PluginManager::new();
    let older = [
        ("id", "clobber"),
        ("knows", "f,g"),
        ("tag", "1"),
        ("clobber", ""),
    ];
    let newer = [("id", "newer"), ("knows", "f"), ("tag", "2")];
    manager
        .register_plugin(probe::load(&older).unwrap())
        .unwrap();
    manager
        .register_plugin(probe::load(&newer).unwrap())
        .unwrap();
    let imports = manager.resolve(&[c"f", c"g"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 2);
    assert_eq!(tag(imports.get(1).unwrap()), 1);
    let seen = vec![("f".to_owned(), true), ("g".to_owned(), false)];
    assert!(
        events("clobber").contains(&Event::Resolve(seen, 0)),
        "it sees what is filled"
    );
}

#[test]
fn a_context_without_a_function_is_dropped() {
    let parameters = [
        ("id", "context"),
        ("knows", "f"),
        ("tag", "9"),
        ("context_only", ""),
    ];
    let plugin = probe::load(&parameters).unwrap();
    let imports = resolve_imports(Some(&plugin), &[c"?f"]).unwrap();
    assert!(imports.get(0).is_none());
    // SAFETY: an array of one context.
    assert!(unsafe { *imports.contexts() }.is_null());
}

#[test]
fn every_status_of_resolve_is_an_error_or_goes_on_and_none_crashes() {
    let addresses = [0x20, 0x40, 0x1000 | 13, 0x7fff_0000_1240 | 5, usize::MAX];
    for raw in (1..32).chain(addresses) {
        let manager = PluginManager::new();
        let older = Arc::new(Known::new("older", 1, &["f"]));
        manager
            .register_provider("older", Arc::clone(&older) as _)
            .unwrap();
        let text = raw.to_string();
        let parameters = [("id", "status"), ("resolve", &*text)];
        manager
            .register_plugin(probe::load(&parameters).unwrap())
            .unwrap();
        let result = manager.resolve(&[c"f"]);
        let code = match u32::try_from(raw & 0x1f).unwrap() {
            5 => {
                assert!(result.is_ok());
                continue;
            }
            0 | 1 | 17 => StatusCode::INTERNAL,
            code => StatusCode(code),
        };
        let error = result.unwrap_err();
        assert_eq!(error.status_code(), code, "{raw:#x}");
        assert_eq!(older.calls(), 0);
        let ResolveError::Provider { provider, source } = error else {
            panic!("{error}");
        };
        assert_eq!(provider, "probe");
        assert!(
            source
                .to_string()
                .ends_with(&format!("(raw value {raw:#x})"))
        );
    }
}

#[test]
fn a_plugin_is_not_asked_when_nothing_is_left_to_resolve() {
    let plugin = probe::load(&[("id", "idle"), ("knows", "f")]).unwrap();
    resolve_imports(Some(&plugin), &[]).unwrap();
    assert_eq!(events("idle").len(), 1, "only the load");
}

#[test]
fn memory_that_a_plugin_keeps_is_counted_after_it_is_gone() {
    let leaky = probe::load(&[("id", "leaky"), ("leak", "100")]).unwrap();
    let clean = probe::load(&[("id", "clean")]).unwrap();
    let (leaky_memory, clean_memory) = (leaky.memory(), clean.memory());
    assert_eq!(leaky_memory.live_bytes(), 100);
    drop((leaky, clean));
    assert_eq!(
        (leaky_memory.live_bytes(), leaky_memory.live_blocks()),
        (100, 1)
    );
    assert_eq!(
        (clean_memory.live_bytes(), clean_memory.live_blocks()),
        (0, 0)
    );
}

#[test]
fn default_plugins_come_first() {
    let manager = PluginManager::builder()
        .default_plugin(probe::load(&[("id", "default"), ("knows", "f"), ("tag", "1")]).unwrap())
        .build()
        .unwrap();
    let imports = manager.resolve(&[c"f"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 1);
    let user = probe::load(&[("id", "user"), ("knows", "f"), ("tag", "2")]).unwrap();
    manager.register_plugin(user).unwrap();
    let imports = manager.resolve(&[c"f"]).unwrap();
    assert_eq!(tag(imports.get(0).unwrap()), 2);
}

#[test]
fn plugins_resolve_on_many_threads_at_once() {
    let manager = PluginManager::new();
    let parameters = [("id", "threads"), ("knows", "f,g"), ("tag", "4")];
    manager
        .register_plugin(probe::load(&parameters).unwrap())
        .unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..50 {
                    let imports = manager.resolve(&[c"?e", c"f", c"g"]).unwrap();
                    assert_eq!(tag(imports.get(2).unwrap()), 4);
                }
            });
        }
    });
    drop(manager);
    assert_eq!(unload_count("threads"), 1);
}
